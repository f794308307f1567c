/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded queue of calls with any number of writers and one reader, without a lock: a writer that finds it full
 * counts the call as lost and goes on.
 *
 * A cell's turn tells whose it is (n: the position in the queue that the cell is for): n when a writer may take it,
 * n + 1 when the reader may.
 */
#ifndef RN_DAEMON_TRACE_RING_H
#define RN_DAEMON_TRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/trace_call.h"

#define TRACE_RING 512u /* cells; a power of two */

struct trace_cell {
	_Atomic uint64_t turn;
	struct trace_call call;
};

struct trace_ring {
	_Alignas(64) _Atomic uint64_t tail; /* position of the next call */
	_Atomic uint64_t lost;		    /* since the reader took the number */
	_Alignas(64) uint64_t head;	    /* the reader's */
	struct trace_cell cell[TRACE_RING];
};

void trace_ring_init(struct trace_ring *r);
/* Any thread. */
void trace_ring_put(struct trace_ring *r, const struct trace_call *call);
/* One thread at a time. False: there is none, or its writer is not done. */
bool trace_ring_take(struct trace_ring *r, struct trace_call *out);
/* Calls that found no room since this was asked last. */
uint64_t trace_ring_lost(struct trace_ring *r);

#endif
