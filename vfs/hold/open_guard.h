/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The open guard of a file that a client has a write delegation of, or writes though it has a read delegation:
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
 * An open guard has a descriptor (O_PATH, or the lease's before) in vfs_file.lease_fd and counts as a lease there: that it is marked
 * for changes without a descriptor, its budget and the table of leases are those of vfs/hold/lease.h.
 * The mark also tells of truncate(2) by a path, which opens nothing.
 *
 * This server's own opens pass, but wait for the thread that allows them (below). So
 * no open of a file may be made under a lock that this thread takes: vfs_file.lock and what comes
 * after it, and the locks that vfs_deleg_ops.recall takes.
 *
 * Lock order: vfs_file.lock -> vfs_guards.lock, a leaf.
 */
#ifndef RN_VFS_OPEN_GUARD_H
#define RN_VFS_OPEN_GUARD_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "vfs/hold/file.h"

/* True if local opens can be made to wait. */
bool vfs_guard_possible(const struct vfs *vfs);

/* The descriptor by which the lease is tried. */
struct vfs_guard_probe {
	int fd;
	bool is_data_fd; /* the node's, else the caller's to close */
};
/* Closes as many of the node's data descriptors as can be. -RN_ENOTNOW: more than one is open; or
 * -errno. The thread is root before. */
int vfs_guard_probe_open(struct vfs_node *n, struct vfs_guard_probe *out);
void vfs_guard_probe_close(struct vfs *vfs, const struct vfs_guard_probe *p);

/* The rest is called under f->lock. */

/* Puts the guard up; f->lease_fd is its descriptor. -RN_ENOTNOW: somebody has the file open; -EOPNOTSUPP. */
int vfs_guard_take(struct vfs_file *f, int probe);
/* Puts the guard up in place of the unbroken lease of a file with read delegations, unless somebody has the
 * file open to write. False: the lease stays as it is. The file is watched for changes of data before. */
bool vfs_guard_replace_lease(struct vfs_file *f);
/* Counts the guard that the program before has put up. */
void vfs_guard_load(struct vfs_file *f);
/* Takes the guard away: local opens go on. */
void vfs_guard_drop(struct vfs_file *f);

/*
 * The thread that answers whether a file behind an open guard may be opened. It allows
 * opens by this process at once. For any other it recalls the delegation, and goes on; the open is
 * allowed by the thread that ends the delegation, or after vfs_leases.patience_s in any case. It waits
 * for nothing but events and short locks, and opens nothing.
 *
 * The kernel opens the file for each event. That description is replaced by another file's at once,
 * so that it stands against no later guard; the number must stay, as the answer names it.
 *
 * The kernel refuses an open (EPERM) for which this process has no descriptor left, and so does the
 * thread if too many wait (of this file, or in all), or if it cannot tell which file is opened. When the
 * process ends, in whatever way, the kernel allows all. While the process is stopped, local opens of
 * files behind open guards wait; they can be killed.
 */

struct vfs_opener;
struct vfs_guards {
	pthread_mutex_t lock;
	/* A leaf: held while somebody has a lease to see that he is alone. The kernel could not open the file of an event then, and would
	 * refuse the open that waits. */
	pthread_mutex_t probing;
	TAILQ_HEAD(, vfs_opener) openers; /* the one that came first is first */
	uint32_t nopeners;
	int group; /* fanotify group; -1: none, and no thread */
	int stop;  /* eventfd */
	unsigned within_s, patience_s;
	pthread_t thread;
	bool runs; /* the thread, which has not been joined */
	pid_t self;
};

struct vfs_guards *vfs_guards_new(void);     /* NULL: no memory */
void vfs_guards_free(struct vfs_guards *gs); /* NULL is allowed */

/* From vfs_leases_start and vfs_leases_stop. within_s: seconds in which delegations must end for a
 * local process; patience_s: after which it goes on in any case. 0 (perhaps without a thread: the kernel
 * has no such events, or not for this process) or -errno. */
int vfs_guards_start(struct vfs *vfs, unsigned within_s, unsigned patience_s);
void vfs_guards_stop(struct vfs *vfs);
/* Ends the thread: opens wait in the kernel. */
void vfs_guards_rest(struct vfs_guards *gs);

#endif
