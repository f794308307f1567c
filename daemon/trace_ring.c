/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/trace_ring.h"

void trace_ring_init(struct trace_ring *r)
{
	atomic_init(&r->tail, 0);
	atomic_init(&r->lost, 0);
	r->head = 0;
	for (uint64_t i = 0; i < TRACE_RING; i++)
		atomic_init(&r->cell[i].turn, i);
}

void trace_ring_put(struct trace_ring *r, const struct trace_call *call)
{
	uint64_t at = atomic_load_explicit(&r->tail, memory_order_relaxed);
	struct trace_cell *c;

	do {
		c = &r->cell[at % TRACE_RING];
		/* The call of a round before is still in it. If another writer has taken the cell, the tail has moved
		 * on and the exchange fails. */
		if (atomic_load_explicit(&c->turn, memory_order_acquire) < at) {
			atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
			return;
		}
	} while (!atomic_compare_exchange_weak_explicit(&r->tail, &at, at + 1, memory_order_relaxed,
							memory_order_relaxed));
	c->call = *call;
	atomic_store_explicit(&c->turn, at + 1, memory_order_release);
}

bool trace_ring_take(struct trace_ring *r, struct trace_call *out)
{
	struct trace_cell *c = &r->cell[r->head % TRACE_RING];

	if (atomic_load_explicit(&c->turn, memory_order_acquire) != r->head + 1)
		return false;
	*out = c->call;
	atomic_store_explicit(&c->turn, r->head + TRACE_RING, memory_order_release);
	r->head++;
	return true;
}

uint64_t trace_ring_lost(struct trace_ring *r)
{
	return atomic_exchange_explicit(&r->lost, 0, memory_order_relaxed);
}
