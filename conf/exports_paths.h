/* SPDX-License-Identifier: BSD-2-Clause */
/* The paths that the tables of exports name, without the rest of the tables. */
#ifndef RINGNFS_CONF_EXPORTS_PATHS_H
#define RINGNFS_CONF_EXPORTS_PATHS_H

/* MNTPATHLEN of RFC 1813 appendix I: a longer path cannot be mounted. */
enum { EXP_PATH_MAX = 1024 };

/*
 * Calls fn with the cleaned path of each line, in the order of the files, whether or not the rest of the line is right.
 * Takes time in proportion to the files, and looks at nothing else. A file that does not exist has no lines. 0, -ENOMEM,
 * or -errno if a file cannot be read or the first is no regular file; fn has then had the paths of the others.
 */
int exp_paths_each(const char *file, const char *dir, void (*fn)(void *arg, const char *path),
		   void *arg);

#endif
