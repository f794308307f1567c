/* SPDX-License-Identifier: BSD-2-Clause */
/* A tar archive (POSIX.1 ustar) of small files that lie in memory, all in one folder. */
#ifndef RN_CTL_TAR_H
#define RN_CTL_TAR_H

#include <stddef.h>
#include <time.h>

struct tar {
	int fd;
	int error; /* 0, or -errno: the first that there was */
	time_t now;
	const char *folder; /* name of the folder, below 100 bytes together with a file's */
};

/* Makes the file, which only its owner may read; it must not be there. 0 or -errno. */
int tar_open(struct tar *t, const char *path, const char *folder);
/* Adds a file; an error shows at the end. */
void tar_add(struct tar *t, const char *name, const void *data, size_t len);
/* Writes the end, and the archive to disk. 0 or -errno. */
int tar_close(struct tar *t);

#endif
