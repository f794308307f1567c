/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file system in an image behind a loop device. A copy of the image holds the same as the disk
 * after a power failure: all data written by the file system, and none that are only in memory.
 */
#ifndef TEST_VFS_DISK_H
#define TEST_VFS_DISK_H

#include <sys/stat.h>

#include "tests/unit/vfs_io_fixture.h"

struct disk {
	const char *fs;
	char base[FX_PATH];
	char mnt[80], copy[80];
	struct fx f;
};

/* Skips the test where such a file system cannot be mounted. */
void disk_open(struct disk *d, const char *fs, const char *mkfs_options);
void disk_close(struct disk *d);
/* Writes all that is in memory to the disk. */
void disk_settle(struct disk *d);
/* Mounts a copy at copy, as after a power failure; and ends that. */
void disk_copy_open(struct disk *d);
void disk_copy_close(struct disk *d);
/* Status of the file as after a power failure; all zero: there is none. */
void disk_after_power_failure(struct disk *d, const char *name, struct stat *st);

#endif
