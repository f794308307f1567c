/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that learns of what local processes do to files with leases (vfs/hold/lease.h).
 *
 * Broken leases: signals are queued with the number of the lease's descriptor. When the queue is full
 * the kernel sends a plain SIGIO, which says no more than that some lease is broken: then all are looked
 * at.
 *
 * Changes without a descriptor (chmod, chown, utimes, setxattr, link, rename, unlink): the kernel's
 * events (fanotify(7)) of the files themselves, after the fact. Events of this process are passed over.
 * Of directories all changes are learned of in that way, and of files with gates truncate(2) by a
 * path. There the holder's own WRITEs make events, too. So after events of this process only, the
 * thread lets some time pass before it reads again; the kernel merges what comes meanwhile.
 */
#ifndef RN_VFS_LEASE_THREAD_H
#define RN_VFS_LEASE_THREAD_H

#include <semaphore.h>
#include <signal.h>
#include <sys/types.h>

#include "vfs/hold/lease_table.h"

#define VFS_LEASE_SIGNAL SIGRTMIN

struct vfs_leases {
	struct vfs_lease_table table;
	unsigned within_s; /* seconds in which delegations must end for a local process */
	_Atomic pid_t tid; /* of the thread; 0: it does not run */
	pthread_t thread;
	sem_t started;
	int stop;    /* eventfd; -1: there is no thread */
	int signals; /* signalfd */
	int changes; /* fanotify group; -1: none */
	pid_t self;
};

/* Has breaks of a lease by that descriptor told to the thread. 0 or -errno. */
int vfs_leases_own(const struct vfs_leases *ls, int fd);
/* Under f->lock: events of the file, by a descriptor of it that stays open. data: of changes of its data,
 * too. False: there are none. */
bool vfs_leases_watch(struct vfs_leases *ls, const struct vfs_file *f, int fd, bool data);
/* Ends what data has added. */
void vfs_leases_watch_data_no_more(struct vfs_leases *ls, int fd);
void vfs_leases_unwatch(struct vfs_leases *ls, const struct vfs_file *f, int fd);

#endif
