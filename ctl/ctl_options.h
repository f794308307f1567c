/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of one command: `--name VALUE`, `--name=VALUE`, or `--name` alone. main() has taken those of the tool. */
#ifndef RN_CTL_CTL_OPTIONS_H
#define RN_CTL_CTL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct ctl_option {
	const char *name;   /* without its -- */
	const char **value; /* set to the value; NULL: the option has none, and sets given */
	bool *given;
};

/* Takes the options out of argv, whose other words move together behind argv[0]; a word -- ends the options. The
 * number of words that are left, or -1: an option is unknown, is given twice or lacks its value, which is printed. */
int ctl_options(const struct ctl_option *options, size_t n, int argc, char **argv);

#endif
