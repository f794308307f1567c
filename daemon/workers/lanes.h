/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait for a worker, in each lane, while all are busy: clients take
 * turns, whatever the number of their connections. A call costs CALL_COST bytes and the data that
 * it moves, so that a client of large READs and one of GETATTRs get about the same time. Calls that have begun, and go on
 * after a wait, have had their turn: they come first, and alone where there is no stack for another call.
 * Thread-safe.
 */
#ifndef RN_DAEMON_WORKERS_LANES_H
#define RN_DAEMON_WORKERS_LANES_H

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
	struct rn_fq queue[RPC_LANES];
	/* Requests that have begun, by their inbox nodes, the oldest first. */
	struct {
		struct rn_inbox_node *first, **last;
		unsigned n;
	} begun[RPC_LANES];
	_Atomic unsigned waiting[RPC_LANES]; /* changed under the lock, read without */
};

void call_queue_init(struct call_queue *t);
void call_queue_fini(struct call_queue *t);

/* Queues req in the lane req->lane; req->conn->client is set. */
void call_queue_push(struct call_queue *t, struct rpc_request *req);
/* Calls to take out of the queue. */
enum call_kind {
	CALL_ANY,
	CALL_BEGUN,
	CALL_OUTSIDE, /* have not entered a file system */
};
/* NULL: none waits. */
struct rpc_request *call_queue_pop(struct call_queue *t, unsigned lane, enum call_kind kind);
/* Charges the client for a reply, in req->out. */
void call_queue_charge(struct call_queue *t, const struct rpc_request *req);

/*
 * Requests waiting in the lane. Sequentially consistent, like the change: a thread that makes room
 * for a request and then looks here, and one that pushes a request and then looks for room, cannot
 * both miss each other.
 */
static inline unsigned call_queue_waiting(const struct call_queue *t, unsigned lane)
{
	return atomic_load(&t->waiting[lane]);
}

/*
 * Lanes. Calls of one file system, whatever their exports, use one lane; calls that name no file
 * use lane 0. A worker serves one lane at a time, so that a worker stuck in a file system delays
 * only calls to that file system (doc/design/waiting.md). File systems beyond the number of lanes
 * share the last ones. Thread-safe, without locks but for changes.
 */

struct lanes;

struct lanes *lanes_new(void); /* NULL: no memory */
void lanes_free(struct lanes *l);

/* An export, and the file system that it lies on; local as in vfs_export_is_local. */
struct lanes_export {
	uint32_t id;
	const char *path; /* copied */
	dev_t dev;
	bool local;
};
void lanes_put(struct lanes *l, const struct lanes_export *e);
/* The export's lane; 0: no such export is known. */
unsigned lanes_of(const struct lanes *l, uint32_t export_id);

/* Marks a lane as blocked: all its workers are stuck in its file system, and no further call may
 * begin. */
bool lanes_blocked(const struct lanes *l, unsigned lane);
void lanes_block(struct lanes *l, unsigned lane, bool blocked);
/* True if calls of the lane may begin on event threads: all its file systems are local, and none of
 * its calls is stuck, or was slow lately. Lane 0: false, as its calls may turn out to use any file
 * system. now as of rn_now_ns. */
bool lanes_prompt(const struct lanes *l, unsigned lane, uint64_t now);
/* Records whether some call of the lane is stuck in its file system. */
void lanes_doubt(struct lanes *l, unsigned lane, bool stuck);
/* Records that a call of the lane took long on an event thread: for a second, further ones go to the
 * pool. now as of rn_now_ns. */
void lanes_was_slow(struct lanes *l, unsigned lane, uint64_t now);
enum { LANES_NAME = 512 };
/* Names the lane's file system for a message, by its device and the export that was put there last. */
void lanes_name(struct lanes *l, unsigned lane, char text[LANES_NAME]);

#endif
