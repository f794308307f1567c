/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of `ringnfsctl support-bundle`. */
#ifndef RN_CTL_BUNDLE_H
#define RN_CTL_BUNDLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "ctl/tar.h"

struct bundle {
	const char *socket;
	struct tar tar;
	FILE *missing;	 /* a line for each part that could not be had, with the reason */
	bool silent;	 /* the server does not answer, and is not asked again */
	pid_t pid;	 /* of the server; 0: not known */
	json_t *exports; /* the server's answer; NULL: none */
};

/* The server's answers, and bundle.pid and .exports. with_paths: files that clients have open, too. */
void bundle_server(struct bundle *b, bool with_paths);
/* Facts about the machine and the server's process. */
void bundle_host(struct bundle *b);
/* The last lines of the log. */
void bundle_log(struct bundle *b);

/* For the parts: adds the file, or notes why it is missing. */
void bundle_file(struct bundle *b, const char *name, const char *path);
void bundle_missing(struct bundle *b, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes a line of mountinfo without passwords: of a source that is a URL, and of options of file systems. */
void bundle_put_mount(FILE *out, const char *line);

#endif
