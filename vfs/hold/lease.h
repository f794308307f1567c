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
 * data has been done, or waits for such a descriptor and is refused (-RN_ELEASE).
 *
 * Breaks are told by a signal to a thread of vfs/'s own, which recalls the delegations
 * (vfs/hold/lease_thread.h). It also learns of local changes that need no descriptor.
 *
 * The kernel has no leases of directories. A directory with delegations has a descriptor all the same,
 * which counts as a lease that is never broken: the thread learns of all changes by events.
 *
 * A file with a write delegation has a gate instead (vfs/hold/open_gate.h). It is a lease for the
 * functions below, and for the thread as far as that learns of changes without a descriptor.
 *
 * Lock order: vfs_file.lock -> vfs_lease_table.lock -> the lock of a shard of files.
 */
#ifndef RN_VFS_LEASE_H
#define RN_VFS_LEASE_H

#include "vfs/hold/file.h"
#include "vfs/hold/open_gate.h"

struct vfs_leases;

struct vfs_leases *vfs_leases_new(void);     /* NULL: no memory */
void vfs_leases_free(struct vfs_leases *ls); /* NULL is allowed */

/* True if it would be learned of uses of that file that stand against a delegation of that type. */
bool vfs_lease_possible(const struct vfs_node *n, enum vfs_deleg_type type);

/* Descriptors to take a lease by. */
struct vfs_lease_fds {
	int fd; /* the lease's; -1: none, or it is the file's by now */
	bool gate;
	struct vfs_gate_probe probe; /* of a gate */
};
#define VFS_LEASE_NO_FDS ((struct vfs_lease_fds){ .fd = -1, .probe.fd = -1 })
/* Opens them, to be closed by vfs_lease_close. A regular file's own descriptors that are in the way are
 * closed before, if nobody else uses the node. -RN_ENOTNOW: some are in the way; or
 * -errno: then nothing is open. The thread is root afterwards. */
int vfs_lease_open(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_deleg_type type,
		   struct vfs_lease_fds *out);
void vfs_lease_close(struct vfs *vfs, const struct vfs_lease_fds *fds);

/* The rest is called under f->lock. */

/* Takes the lease by fds->fd, which is the file's then, and -1 here. -RN_ENOTNOW: somebody has the file open, for a
 * lease: to write; -EOPNOTSUPP: the file system has no leases. */
int vfs_lease_take(struct vfs_file *f, struct vfs_lease_fds *fds);
/* The only client with a delegation of the file is about to write it, for which this server needs descriptors
 * that would break the lease: a gate takes its place, so that local processes wait as before. Where that cannot
 * be the lease stays, and is broken. */
void vfs_lease_let_holder_write(struct vfs_file *f);
/* True if the file has a lease that nobody has broken. A gate is never broken. */
bool vfs_lease_holds(const struct vfs_file *f);
/* Gives up the lease, if the file has one: returns the descriptor for the caller to close, or -1. */
int vfs_lease_drop(struct vfs_file *f);

#endif
