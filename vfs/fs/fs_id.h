/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity of a file system: what stays the same over remounts, restarts and reboots, and is
 * another when a different file system has taken the place. doc/design/exports.md has the reasons.
 */
#ifndef RN_VFS_FS_ID_H
#define RN_VFS_FS_ID_H

#include <stdint.h>

enum vfs_fs_id_kind {
	VFS_FS_ID_GIVEN,  /* fsid= of exports(5) stands for it: the export's id says all */
	VFS_FS_ID_UUID,	  /* as text, as libblkid and the kernel have it */
	VFS_FS_ID_STATFS, /* f_fsid of statfs(2) */
	VFS_FS_ID_DEVICE, /* nothing better than the device number */
};

#define VFS_FS_ID_MAX 46u /* with the two before it a multiple of 8 */

struct vfs_fs_id {
	uint8_t kind;
	uint8_t len;
	uint8_t bytes[VFS_FS_ID_MAX];
};

/* The identity of the file system that fd (O_PATH will not do) lies on. May read its device; the
 * thread must be root. 0 or -errno. */
int vfs_fs_id_of(int fd, struct vfs_fs_id *out);

#endif
