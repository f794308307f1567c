/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file system identity of one worker thread: fsuid, fsgid and supplementary groups, set by raw
 * system calls (glibc's setgroups would change every thread) and only where they differ from what
 * the thread has already. The kernel gives fsuid 0 the file system capabilities back and takes them
 * from every other, so root here needs no more than fsuid 0.
 *
 * setfsuid and setfsgid report no error: both are read back, and a thread that could not get the
 * asked identity is marked unknown, so that the next call sets all of it again. A caller that gets
 * an error must not touch the file system.
 */
#ifndef RN_VFS_IDENTITY_H
#define RN_VFS_IDENTITY_H

#include "vfs/types.h"

/* Zeroed is right: unknown, so that the first switch sets everything. Belongs to one thread. */
struct vfs_identity {
	bool known;
	struct vfs_cred now; /* what the thread has, if known */
};

/* Acts as cred from here on. 0 or -EPERM. */
int vfs_identity_become(struct vfs_identity *id, const struct vfs_cred *cred);

/* Writes of users run as this one. */
extern const struct vfs_cred vfs_nobody;

/* Has root's file system capabilities from here on: for opening by handle and for cached data
 * descriptors. The groups stay as they were: with the capabilities they decide nothing. 0 or
 * -EPERM. */
int vfs_identity_root(struct vfs_identity *id);

#endif
