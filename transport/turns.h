/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order in which an event thread serves clients. In one pass of its loop a client gets one
 * turn at once, a quantum of work: reading calls, sending what sockets did not take, completions. Its
 * connections that are ready beyond that wait in a fair queue by client, from which one
 * turn's quantum is served at the end of each pass. So the loop is back at its descriptors after a bounded
 * time, and a client with a single call waits for about one turn of each other client, not to each
 * of their connections.
 *
 * Work is counted in bytes: bytes received, bytes sent by copying, and TURN_WORK for each call or
 * completion. All on the loop's thread.
 */
#ifndef RN_TRANSPORT_TURNS_H
#define RN_TRANSPORT_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/client.h"
#include "rpc/request.h"

#define TURN_WORK 8192u
#define TURN_QUANTUM (256u << 10) /* work of one turn while a loop serves one client only */
/* Work of one turn while several clients have calls: few calls that run on the loop itself, since
 * the others wait for all of them. */
#define TURN_QUANTUM_SHARED (64u << 10)
#define TURN_SHARED_PASSES                                                                         \
	256u /* after a pass of one client only, until the others count as gone */

struct ev_loop;

/* Embedded in a connection. */
struct turn {
	struct rn_fq_item item;
	struct rn_fq_flow *flow; /* its client's flow, while it waits */
	struct rpc_conn *conn;	 /* the connection; a reference is held during a turn */
	/* start of the wait, set until the turn after it has ended; else 0 */
	uint64_t since_ns;
	/* Works until ev_loop.work has come up to `until`, or nothing is left to do. */
	void (*run)(struct turn *t, uint64_t until);
};

int turns_init(struct ev_loop *loop); /* 0 or -ENOMEM */
void turns_fini(struct ev_loop *loop);
/* Gives t its turn now, or queues it until its client has one; part is the client's on this loop. The
 * caller holds a reference on the connection. Does nothing if t waits already. */
void turn_take(struct ev_loop *loop, struct rpc_loop_part *part, struct turn *t);
void turn_leave(struct ev_loop *loop, struct turn *t); /* Takes t out of the queue. */

static inline bool turn_waits(const struct turn *t)
{
	return t->item.flow != NULL;
}

#endif
