/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate of a file that a client has a write delegation of, or writes though it has a read delegation:
 * every local process that opens the file, in whatever mode, waits until the delegation has ended. A lease of the kernel cannot be had
 * for that, since it would allow this server one open file description only.
 *
 * The file is marked for the kernel's permission events of opens (FAN_OPEN_PERM, fanotify(7)). Then
 * F_SETLEASE with F_WRLCK is tried, and given up at once. It succeeds only if the file is open by one
 * description, ours, and mapped by nobody. The kernel counts a description before it asks for
 * permission, so no open is missed: it has been counted when the lease is tried, or sees the mark.
 *
 * For a read delegation, whose lease it replaces (F_RDLCK), only descriptors to write matter: F_SETLEASE is tried
 * again by the lease's descriptor behind the mark, and given up.
 *
 * A gate has a descriptor (O_PATH, or the lease's before) in vfs_file.lease_fd and counts as a lease there: that it is marked
 * for changes without a descriptor, its budget and the table of leases are those of vfs/hold/lease.h.
 * The mark also tells of truncate(2) by a path, which opens nothing.
 *
 * This server's own opens pass, but wait for the thread that allows them (vfs/hold/gate_thread.h). So
 * no open of a file may be made under a lock that this thread takes: vfs_file.lock and what comes
 * after it, and the locks that vfs_deleg_ops.recall takes.
 *
 * Lock order: vfs_file.lock -> vfs_gates.lock, a leaf.
 */
#ifndef RN_VFS_OPEN_GATE_H
#define RN_VFS_OPEN_GATE_H

#include "vfs/hold/file.h"

/* True if local opens can be made to wait. */
bool vfs_gate_possible(const struct vfs *vfs);

/* The descriptor by which the lease is tried. */
struct vfs_gate_probe {
	int fd;
	bool is_data_fd; /* the node's, else the caller's to close */
};
/* Closes as many of the node's data descriptors as can be. -RN_ENOTNOW: more than one is open; or
 * -errno. The thread is root before. */
int vfs_gate_probe_open(struct vfs_node *n, struct vfs_gate_probe *out);
void vfs_gate_probe_close(struct vfs *vfs, const struct vfs_gate_probe *p);

/* The rest is called under f->lock. */

/* Puts the gate up; f->lease_fd is its descriptor. -RN_ENOTNOW: somebody has the file open; -EOPNOTSUPP. */
int vfs_gate_take(struct vfs_file *f, int probe);
/* Puts the gate up in place of the unbroken lease of a file with read delegations, unless somebody has the
 * file open to write. False: the lease stays as it is. The file is watched for changes of data before. */
bool vfs_gate_replace_lease(struct vfs_file *f);
/* Takes the gate away: local opens go on. */
void vfs_gate_drop(struct vfs_file *f);

#endif
