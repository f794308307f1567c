/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that hold tables of exports: one by name, and those of a directory. Internal to conf/. */
#ifndef RINGNFS_CONF_EXPORTS_FILES_H
#define RINGNFS_CONF_EXPORTS_FILES_H

#include <stddef.h>

struct exp_file_sink {
	/* One file that was read; a result other than 0 ends the reading. */
	int (*text)(void *arg, const char *path, const char *text, size_t len);
	/* A file or the directory that cannot be read. */
	void (*unread)(void *arg, const char *path, int error);
	void *arg;
};

/*
 * Reads the file, then the directory's *.exports in version order; either may be NULL. A directory that does not exist
 * holds no tables. 0, -ENOMEM, or what the sink returned.
 */
int exp_files_read(const char *file, const char *dir, const struct exp_file_sink *sink);

#endif
