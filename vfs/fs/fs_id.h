/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of a file system: it stays the same over remounts, restarts and reboots, and changes
 * when a different file system takes the place. doc/design/exports.md has the reasons. */
#ifndef RN_VFS_FS_ID_H
#define RN_VFS_FS_ID_H

#include <stdint.h>

enum vfs_fs_id_kind {
	VFS_FS_ID_GIVEN,  /* fsid= of exports(5) replaces it: the export's id is enough */
	VFS_FS_ID_UUID,	  /* UUID as text, as libblkid and the kernel have it */
	VFS_FS_ID_STATFS, /* f_fsid of statfs(2) */
	VFS_FS_ID_DEVICE, /* device number, for want of anything better */
};

#define VFS_FS_ID_MAX 46u /* padding: with the two members before it a multiple of 8 */

struct vfs_fs_id {
	uint8_t kind;
	uint8_t len;
	uint8_t bytes[VFS_FS_ID_MAX];
};

/* The identity of the file system that fd (O_PATH will not do) lies on. May read its device; the
 * thread must be root. 0 or -errno. */
int vfs_fs_id_of(int fd, struct vfs_fs_id *out);

#endif
