/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The load of an event thread: the share of each second in which it does not wait for events, and
 * the number of its connections. Waiting for a processor or in a system call counts as work,
 * because connections of the thread wait then, and so does polling a completion queue.
 *
 * The thread tells when a wait begins and ends, which costs two readings of the clock. The event
 * loop measures once a second (transport/event_loop.c). ev_place below and
 * transport/tcp/tcp_move.c go by the results.
 */
#ifndef RN_TRANSPORT_LOAD_H
#define RN_TRANSPORT_LOAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "lib/clock.h"
#include "transport/event_loop.h"

#define EV_LOAD_FULL 1000u /* load of a thread that never waits */
/* Load that a new connection is expected to make */
#define EV_LOAD_NEW 60u
/* Load below which a thread counts as idle: connections are then placed by their number alone. */
#define EV_PLACE_IDLE (EV_LOAD_FULL / 2)
/* A shorter wait is no sleep: something was ready. */
#define EV_LOAD_SLEEP_NS 5000u

/* The thread works from now on. */
void ev_load_init(struct ev_loop *l, uint64_t now);

/* On the loop's thread: a wait begins; a wait has ended; a second has passed. */
void ev_load_wait(struct ev_loop *l, uint64_t now);
void ev_load_work(struct ev_loop *l, uint64_t now);
void ev_load_measure(struct ev_loop *l, uint64_t now);

/* At the beginning of everything that a wait may end with. */
static inline void ev_load_awake(struct ev_loop *l)
{
	if (!l->awake_ns)
		ev_load_work(l, rn_now_ns());
}

/* Any thread: a connection comes, or leaves. */
static inline void ev_load_join(struct ev_loop *l)
{
	atomic_fetch_add_explicit(&l->conns, 1, memory_order_relaxed);
}
static inline void ev_load_leave(struct ev_loop *l)
{
	atomic_fetch_sub_explicit(&l->conns, 1, memory_order_relaxed);
}

/* Any thread: load of a connection that has come, for which the next measurement accounts. */
static inline void ev_load_expect(struct ev_loop *l, unsigned load)
{
	atomic_fetch_add_explicit(&l->expected, load, memory_order_relaxed);
}
/* Any thread. */
static inline unsigned ev_load_measured(const struct ev_loop *l)
{
	return atomic_load_explicit(&l->measured, memory_order_relaxed);
}
static inline unsigned ev_load_expected(const struct ev_loop *l)
{
	return ev_load_measured(l) + atomic_load_explicit(&l->expected, memory_order_relaxed);
}

/*
 * Index of the loop for a new connection, which is counted there: the caller calls ev_load_leave
 * when it ends. Idle loops are equal, others go by load. Of equal ones the one with the fewest
 * connections is taken, the first of several; so connections to idle loops go round.
 */
unsigned ev_place(struct ev_loop *const *loops, unsigned n);
/* Index of the loop with the least load. */
unsigned ev_place_least(struct ev_loop *const *loops, unsigned n);

#endif
