/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that answers whether a file behind a gate (vfs/hold/open_gate.h) may be opened. It allows
 * opens by this process at once. For any other it recalls the delegation, and goes on; the open is
 * allowed by the thread that ends the delegation, or after vfs_leases.patience_s in any case. It waits
 * for nothing but events and short locks, and opens nothing.
 *
 * The kernel opens the file for each event. That description is replaced by another file's at once,
 * so that it stands against no later gate; the number must stay, as the answer names it.
 *
 * The kernel refuses an open (EPERM) for which this process has no descriptor left, and so does the
 * thread if too many wait (of this file, or in all), or if it cannot tell which file is opened. When the
 * process ends, in whatever way, the kernel allows all. While the process is stopped, local opens of
 * files behind gates wait; they can be killed.
 */
#ifndef RN_VFS_GATE_THREAD_H
#define RN_VFS_GATE_THREAD_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "vfs/hold/file.h"

/* A local open that waits. */
struct vfs_opener {
	struct vfs_file *file; /* its gate keeps it: openers leave before the gate ends */
	int fd;		       /* of its event */
	uint64_t until_s;      /* by rn_now_coarse_seconds() */
	LIST_ENTRY(vfs_opener) file_link;
	TAILQ_ENTRY(vfs_opener) link;
};

struct vfs_gates {
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
	pid_t self;
};

struct vfs_gates *vfs_gates_new(void);	   /* NULL: no memory */
void vfs_gates_free(struct vfs_gates *gs); /* NULL is allowed */

/* From vfs_leases_start and vfs_leases_stop. within_s: seconds in which delegations must end for a
 * local process; patience_s: after which it goes on in any case. 0 (perhaps without a thread: the kernel
 * has no such events, or not for this process) or -errno. */
int vfs_gates_start(struct vfs *vfs, unsigned within_s, unsigned patience_s);
void vfs_gates_stop(struct vfs *vfs);

/* Allows all opens of the file that wait. */
void vfs_gates_allow(struct vfs_file *f);

#endif
