/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An export from inside: its path, and the mounts that may be seen through it. Mount 0 is the
 * export's own; others exist with VFS_CROSSMNT only and are found in /proc/self/mountinfo when they
 * are met.
 */
#ifndef RN_VFS_EXPORT_PRIVATE_H
#define RN_VFS_EXPORT_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>

#include "vfs/vfs.h"

struct vfs_mount {
	_Atomic unsigned refs;
	uint32_t id;	 /* 0: the export's own; otherwise a hash of its path below the export */
	uint64_t mnt_id; /* the kernel's, of this boot: statx's stx_mnt_id */
	int fd;		 /* its root, readable: what open_by_handle_at wants */
	uint64_t fsid;	 /* the same after a restart */
	bool subtree;	 /* the root is not the file system's root: handles may lead outside */
	struct vfs_fh root_fh;
	char *path; /* relative to the export; "" for mount 0 */
	TAILQ_ENTRY(vfs_mount) link;
};
TAILQ_HEAD(vfs_mount_list, vfs_mount);

struct vfs_export {
	_Atomic unsigned refs;
	struct vfs *vfs;
	uint32_t id;
	enum vfs_io_mode mode;
	bool crossmnt;
	bool detached;	    /* the mount is a private clone: lookups cannot leave it */
	uint32_t root_type; /* S_IFDIR or S_IFREG */
	char *path;
	pthread_mutex_t mounts_lock;
	struct vfs_mount_list mounts; /* mount 0 first */
};

#endif
