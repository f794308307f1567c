/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's lease (fcntl(2), F_SETLEASE) of a file that clients have read delegations of. It makes
 * a local process that opens the file to write, or truncates it, wait until the delegations have
 * ended, or the kernel's lease-break-time is over.
 *
 * One lease, F_RDLCK, serves all delegations of a file. Its descriptor is O_RDONLY and used for
 * nothing else. The kernel refuses it while anybody has the file open to write, this server included
 * (EAGAIN), and any later open to write breaks it, this server's included. So as long as it holds there is
 * no descriptor by which anybody could write: what an operation that has begun before could do to the
 * data has been done, or waits for such a descriptor and is refused (-VFS_ELEASE).
 *
 * Breaks are told by a signal to a thread of vfs/'s own, which recalls the delegations
 * (vfs/hold/lease_thread.h). It also learns of local changes that need no descriptor.
 *
 * The kernel has no leases of directories. A directory with delegations has a descriptor all the same,
 * which counts as a lease that is never broken: the thread learns of all changes by events.
 *
 * Lock order: vfs_file.lock -> vfs_lease_table.lock -> the lock of a shard of files.
 */
#ifndef RN_VFS_LEASE_H
#define RN_VFS_LEASE_H

#include "vfs/hold/file.h"

struct vfs_leases;

struct vfs_leases *vfs_leases_new(void);     /* NULL: no memory */
void vfs_leases_free(struct vfs_leases *ls); /* NULL is allowed */

/* True if breaks of a lease of that file would be learned of. */
bool vfs_lease_possible(const struct vfs_node *n);
/* A descriptor to take a lease by, for vfs_fd_close. A regular file's own descriptors to write are closed
 * before, if nobody else uses the node. -EAGAIN: there are none left; -errno. The thread is root
 * afterwards. */
int vfs_lease_open(struct vfs_ctx *ctx, struct vfs_node *n);

/* The rest is called under f->lock. */

/* Takes the lease by that descriptor, which is the file's then. -EAGAIN: somebody has the file open to write;
 * -EOPNOTSUPP: the file system has no leases. */
int vfs_lease_take(struct vfs_file *f, int fd);
/* True if the file has a lease that nobody has broken. */
bool vfs_lease_holds(const struct vfs_file *f);
/* Gives up the lease, if the file has one: returns the descriptor for the caller to close, or -1. */
int vfs_lease_drop(struct vfs_file *f);

#endif
