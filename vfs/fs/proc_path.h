/* SPDX-License-Identifier: BSD-2-Clause */
/* The path of a descriptor under /proc: for calls that take no descriptor of an O_PATH file. */
#ifndef RN_VFS_PROC_PATH_H
#define RN_VFS_PROC_PATH_H

#include <stdio.h>

/* "/proc/self/fd/N" */
struct vfs_proc_path {
	char s[32];
};

static inline struct vfs_proc_path vfs_proc_path(int fd)
{
	struct vfs_proc_path p;

	snprintf(p.s, sizeof(p.s), "/proc/self/fd/%d", fd);
	return p;
}

#endif
