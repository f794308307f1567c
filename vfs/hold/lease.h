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
 * (below). It also learns of local changes that need no descriptor.
 *
 * The kernel has no leases of directories. A directory with delegations has a descriptor all the same,
 * which counts as a lease that is never broken: the thread learns of all changes by events.
 *
 * A file with a write delegation has an open guard instead (vfs/hold/open_guard.h). It is a lease for the
 * functions below, and for the thread as far as that learns of changes without a descriptor.
 *
 * Lock order: vfs_file.lock -> vfs_lease_table.lock -> the lock of a shard of files.
 */
#ifndef RN_VFS_LEASE_H
#define RN_VFS_LEASE_H

#include <semaphore.h>
#include <signal.h>
#include <sys/types.h>

#include "vfs/fs/dir_watch.h"
#include "vfs/hold/file.h"
#include "vfs/hold/open_guard.h"

struct vfs_leases;

struct vfs_leases *vfs_leases_new(void);     /* NULL: no memory */
void vfs_leases_free(struct vfs_leases *ls); /* NULL is allowed */

/* True if it would be learned of uses of that file that stand against a delegation of that type. */
bool vfs_lease_possible(const struct vfs_node *n, enum vfs_deleg_type type);

/* Descriptors to take a lease by. */
struct vfs_lease_fds {
	int fd; /* the lease's; -1: none, or it is the file's by now */
	bool guard;
	struct vfs_guard_probe probe; /* of an open guard */
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
 * that would break the lease: an open guard takes its place, so that local processes wait as before. Where that cannot
 * be the lease stays, and is broken. */
void vfs_lease_let_holder_write(struct vfs_file *f);
/* The file, which no other thread uses yet, has the lease or open guard of the program before by that descriptor, which is the file's now. */
void vfs_lease_load(struct vfs_file *f, int fd, bool guarded);
/* True if the file has a lease that nobody has broken. An open guard is never broken. */
bool vfs_lease_holds(const struct vfs_file *f);
/* Gives up the lease, if the file has one: returns the descriptor for the caller to close, or -1. */
int vfs_lease_drop(struct vfs_file *f);

/* Files that have a lease, by the lease's descriptor and by their handle. A file in
 * the table has a delegation, and so a reference. */
#define VFS_LEASE_BUCKETS 1024u

LIST_HEAD(vfs_lease_list, vfs_file);

struct vfs_lease_table {
	pthread_mutex_t lock;
	struct vfs_lease_list by_fd[VFS_LEASE_BUCKETS], by_file[VFS_LEASE_BUCKETS];
	uint64_t sweep; /* number of the last sweep */
};

/*
 * The thread that learns of what local processes do to files with leases.
 *
 * Broken leases: signals are queued with the number of the lease's descriptor. When the queue is full
 * the kernel sends a plain SIGIO, which says no more than that some lease is broken: then all are looked
 * at.
 *
 * Changes without a descriptor (chmod, chown, utimes, setxattr, link, rename, unlink): the kernel's
 * events (fanotify(7)) of the files themselves, after the fact. Events of this process are passed over.
 * Of directories all changes are learned of in that way, and of files with open guards truncate(2) by a
 * path. There the holder's own WRITEs make events, too. So after events of this process only, the
 * thread lets some time pass before it reads again; the kernel merges what comes meanwhile.
 */
#define VFS_LEASE_SIGNAL SIGRTMIN

struct vfs_leases {
	struct vfs_lease_table table;
	unsigned within_s; /* seconds in which delegations must end for a local process */
	_Atomic pid_t tid; /* of the thread; 0: it does not run */
	pthread_t thread;
	bool runs; /* the thread, which has not been joined */
	sem_t started;
	int stop;    /* eventfd; -1: there is no thread */
	int signals; /* signalfd */
	int changes; /* fanotify group; -1: none */
	pid_t self;
};

/* Ends the threads of leases and guards; what they would learn of waits in the kernel. */
void vfs_leases_rest(struct vfs *vfs);
/* Has breaks of a lease by that descriptor told to the thread. 0 or -errno. */
int vfs_leases_own(const struct vfs_leases *ls, int fd);

#endif
