/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait for a worker, in the queue of their file system, while all are busy: clients take
 * turns, whatever the number of their connections. A call costs CALL_COST bytes and the data that
 * it moves, so that a client of large READs and one of GETATTRs get about the same time. Calls that have begun, and go on
 * after a wait, have had their turn: they come first, and alone where there is no stack for another call.
 * Thread-safe.
 */
#ifndef RN_DAEMON_WORKERS_FS_QUEUES_H
#define RN_DAEMON_WORKERS_FS_QUEUES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/fair_queue.h"
#include "rpc/client.h"
#include "rpc/request.h"

/* Cost of a call without data: the bytes that are copied in the time of a small call. */
#define CALL_COST (32u << 10)

struct call_queue {
	pthread_mutex_t lock;
	struct rn_fq queue[RPC_FS_QUEUES];
	/* Requests that have begun, by their inbox nodes, the oldest first. */
	struct {
		struct rn_inbox_node *first, **last;
		unsigned n;
	} begun[RPC_FS_QUEUES];
	_Atomic unsigned waiting[RPC_FS_QUEUES]; /* changed under the lock, read without */
};

void call_queue_init(struct call_queue *t);
void call_queue_fini(struct call_queue *t);

/* Queues req in the queue req->fs_queue; req->conn->client is set. */
void call_queue_push(struct call_queue *t, struct rpc_request *req);
/* Calls to take out of the queue. */
enum call_kind {
	CALL_ANY,
	CALL_BEGUN,
	CALL_OUTSIDE, /* have not entered a file system */
};
/* NULL: none waits. */
struct rpc_request *call_queue_pop(struct call_queue *t, unsigned fs_queue, enum call_kind kind);
/* Charges the client for a reply, in req->out. */
void call_queue_charge(struct call_queue *t, const struct rpc_request *req);

/*
 * Requests waiting in the queue. Sequentially consistent, like the change: a thread that makes room
 * for a request and then looks here, and one that pushes a request and then looks for room, cannot
 * both miss each other.
 */
static inline unsigned call_queue_waiting(const struct call_queue *t, unsigned fs_queue)
{
	return atomic_load(&t->waiting[fs_queue]);
}

/*
 * Calls of one file system, whatever their exports, use one queue; calls that name no file
 * use queue 0. A worker serves one queue at a time, so that a worker stuck in a file system delays
 * only calls to that file system (doc/design/waiting.md). File systems beyond the number of queues
 * share the last ones. Thread-safe, without locks but for changes.
 */

struct fs_queues;

struct fs_queues *fs_queues_new(void); /* NULL: no memory */
void fs_queues_free(struct fs_queues *l);

/* An export, and the file system that it lies on; local as in vfs_export_is_local. */
struct fs_queue_export {
	uint32_t id;
	const char *path; /* copied */
	dev_t dev;
	bool local;
};
void fs_queues_put(struct fs_queues *l, const struct fs_queue_export *e);
/* The queue of the export's file system; 0: no such export is known. */
unsigned fs_queue_of_export_id(const struct fs_queues *l, uint32_t export_id);

/* Marks a queue as blocked: all its workers are stuck in its file system, and no further call may
 * begin. */
bool fs_queue_blocked(const struct fs_queues *l, unsigned fs_queue);
void fs_queue_block(struct fs_queues *l, unsigned fs_queue, bool blocked);
/* True if calls of the queue may begin on event threads: all its file systems are local, and none of
 * its calls has stalled, or was slow lately. Queue 0: false, as its calls may turn out to use any file
 * system. now as of rn_now_ns. */
bool fs_queue_on_event_thread(const struct fs_queues *l, unsigned fs_queue, uint64_t now);
/* Records whether some call of the queue has stalled in its file system. */
void fs_queue_doubt(struct fs_queues *l, unsigned fs_queue, bool stalled);
/* Records that a call of the queue took long on an event thread: for a second, further ones go to the
 * pool. now as of rn_now_ns. */
void fs_queue_was_slow(struct fs_queues *l, unsigned fs_queue, uint64_t now);
enum { FS_QUEUE_NAME = 512 };
/* Names the queue's file system for a message, by its device and the export that was put there last. */
void fs_queue_name(struct fs_queues *l, unsigned fs_queue, char text[FS_QUEUE_NAME]);

#endif
