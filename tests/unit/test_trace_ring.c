/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/counters/daemon_trace.h"

#define WRITERS 4
#define EACH 20000u

static struct trace_ring *new_ring(void)
{
	struct trace_ring *r = aligned_alloc(_Alignof(struct trace_ring), sizeof(*r));

	cr_assert(r);
	trace_ring_init(r);
	return r;
}

Test(trace_ring, oldest_first_and_the_rest_is_counted)
{
	struct trace_ring *r = new_ring();
	struct trace_call call = { .xid = 0 }, got;

	cr_assert_not(trace_ring_take(r, &got));
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < TRACE_RING + 7; i++) {
			call.xid = i;
			trace_ring_put(r, &call);
		}
		cr_expect_eq(trace_ring_lost(r), 7);
		cr_expect_eq(trace_ring_lost(r), 0, "it was told");
		for (uint32_t i = 0; i < TRACE_RING; i++)
			cr_assert(trace_ring_take(r, &got) && got.xid == i);
		cr_assert_not(trace_ring_take(r, &got));
	}
	free(r);
}

struct writer {
	pthread_t thread;
	struct trace_ring *ring;
	uint32_t number;
};

/* Every word of a call tells which it is, so that a torn one shows. */
static void *write_all(void *arg)
{
	const struct writer *w = arg;
	struct trace_call call = { .xid = 0 };

	for (uint32_t i = 0; i < EACH; i++) {
		call.xid = i;
		call.prog = w->number;
		call.took_ns = call.ended_ns = (uint64_t)w->number << 32 | i;
		trace_ring_put(w->ring, &call);
	}
	return NULL;
}

Test(trace_ring, writers_and_a_reader)
{
	struct trace_ring *r = new_ring();
	struct writer w[WRITERS];
	uint64_t next[WRITERS] = { 0 }, taken = 0, lost = 0;
	struct trace_call c;

	for (uint32_t i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ .ring = r, .number = i };
		cr_assert_eq(pthread_create(&w[i].thread, NULL, write_all, &w[i]), 0);
	}
	while (taken + lost < (uint64_t)WRITERS * EACH) {
		lost += trace_ring_lost(r);
		if (!trace_ring_take(r, &c))
			continue;
		taken++;
		cr_assert(c.prog < WRITERS && c.took_ns == ((uint64_t)c.prog << 32 | c.xid) &&
			  c.ended_ns == c.took_ns);
		cr_assert(c.xid >= next[c.prog], "each writer's calls are in their order");
		next[c.prog] = c.xid + 1;
	}
	for (uint32_t i = 0; i < WRITERS; i++)
		pthread_join(w[i].thread, NULL);
	cr_expect_not(trace_ring_take(r, &c));
	cr_expect(taken > 0);
	free(r);
}
