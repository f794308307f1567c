/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom an event thread serves next. In one pass of its loop a client gets one visit's worth of work
 * straight away: reading calls, sending what was left to the loop, completions. Its connections
 * that are ready beyond that wait in a fair queue by client, from which one visit's worth is served
 * at the end of each pass. So the loop is back at its descriptors after a bounded time, and a
 * client with a single call waits for about one visit to each other client, not to each of their
 * connections.
 *
 * Work is counted in bytes: those received and sent by copying, and TURN_WORK for each call or
 * completion. All on the loop's thread.
 */
#ifndef RN_TRANSPORT_TURNS_H
#define RN_TRANSPORT_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/client.h"
#include "rpc/request.h"

#define TURN_WORK 8192u
#define TURN_VISIT (256u << 10) /* work of one visit */

struct event;
struct event_base;

/* Embedded in a connection. */
struct turn {
	struct rn_fq_item item;
	struct rn_fq_flow *flow; /* its client's, once it has waited */
	struct rpc_conn *conn;	 /* whose it is: held while it is visited */
	uint64_t since_ns;	 /* when it began to wait, during a visit after that; else 0 */
	/* Works until turns.work has come up to `until`, or there is no more to do. */
	void (*visit)(struct turn *t, uint64_t until);
};

struct turns {
	struct rn_fq queue;
	struct event *pass_ev; /* runs at the end of a pass */
	bool in_pass;	       /* it will */
	uint64_t pass;
	uint64_t work; /* counted up by those who are visited */
};

int turns_init(struct turns *ts, struct event_base *base); /* 0 or -ENOMEM */
void turns_fini(struct turns *ts);
/* Visits t now, or when it is its client's turn; share is the client's on this loop. The caller
 * holds a reference on the connection. Once is enough while it waits. */
void turn_take(struct turns *ts, struct rpc_loop_share *share, struct turn *t);
void turn_leave(struct turns *ts, struct turn *t); /* it will not be visited */

static inline bool turn_waits(const struct turn *t)
{
	return t->item.flow != NULL;
}

#endif
