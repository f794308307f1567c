/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options as text: every one that is in force, in a fixed order, as exportfs -v shows them. Two clients
 * with the same options have the same text, and an exports(5) file may have it, quoted if a mount point has blanks in it.
 */
#ifndef RINGNFS_CONF_EXPORTS_FORMAT_H
#define RINGNFS_CONF_EXPORTS_FORMAT_H

#include <stddef.h>

#include "conf/exports.h"

/* Longest text of one option: a mount point or locations. */
enum { EXP_OPTION_TEXT = 8300 };

/* Calls each for every option in force. bit: of enum exp_flag or enum exp_given, to be looked for in
 * exp_client.own and exp_client.inherited. */
void exp_opts_each(const struct exp_opts *opts,
		   void (*each)(void *ctx, uint32_t bit, const char *text), void *ctx);

/* All of them with commas between, by malloc(). NULL: no memory. */
char *exp_opts_text(const struct exp_opts *opts);

#endif
