/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Before a node with uncommitted data can be closed, it is flushed: fsync of the whole file, whose
 * failure changes the write verifier. That has a thread and a ring of its own, so that no worker
 * and no timer waits for a disk; the node stays open until it is done. Without the thread (a test,
 * or the end of the daemon) whoever closes waits.
 *
 * Lock order: vfs_flusher.lock is a leaf.
 */
#ifndef RN_VFS_FLUSH_H
#define RN_VFS_FLUSH_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "vfs/vfs.h"

struct vfs_flush;
STAILQ_HEAD(vfs_flush_list, vfs_flush);

struct vfs_flusher {
	pthread_mutex_t lock;
	struct vfs_flush_list waiting;
	bool running; /* there is a thread to wake */
	bool stop;
	int wake; /* eventfd */
	pthread_t thread;
	struct vfs_worker *w; /* the thread's own, as what follows */
	unsigned under_way;
};

void vfs_flusher_init(struct vfs_flusher *fl);
void vfs_flusher_fini(struct vfs_flusher *fl);

/* The nodes of one export that idle closing and eviction may have flushed at a time: one whose disk
 * does not answer must not take all of the ring's threads. */
bool vfs_flush_may(const struct vfs_node *n);
/* Flushes the node. False: the thread does so, and puts the caller's reference afterwards; true: it
 * is done, and the reference is still the caller's. No lock is held. */
bool vfs_flush(struct vfs_node *n);

#endif
