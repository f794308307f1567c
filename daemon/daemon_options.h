/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of ringnfsd(8), laid over ringnfs.conf(5). */
#ifndef RN_DAEMON_DAEMON_OPTIONS_H
#define RN_DAEMON_DAEMON_OPTIONS_H

#include <stdbool.h>

#include "conf/settings.h"

enum options_action {
	OPTIONS_RUN,
	OPTIONS_CHECK_CONFIG,
	OPTIONS_PRINT_CONFIG,
	OPTIONS_RELOAD,
	OPTIONS_IMAGE_FORMATS,
	OPTIONS_DONE,	/* --help or --version was answered */
	OPTIONS_FAILED, /* the diagnostics have the reason */
};

/* Defaults, then the file, then the command line, in this order. settings are the caller's to free
 * in every case. A default configuration file that does not exist is no error; a named one is. */
enum options_action options_load(int argc, char **argv, struct cfg_settings *settings,
				 struct cfg_diags *diags);

#endif
