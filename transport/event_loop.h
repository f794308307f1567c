/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event thread: one libevent base and the thread that runs it. Transports add their descriptors
 * to it. Other threads hand it tasks with ev_loop_post; the function runs on the loop's thread.
 * Between two rounds of events the thread makes the calls that it has kept (ev_loop_keep). Clients
 * take turns (transport/turns.h), and the thread measures its load.
 */
#ifndef RN_TRANSPORT_EVENT_LOOP_H
#define RN_TRANSPORT_EVENT_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/fair_queue.h"
#include "lib/inbox.h"

struct event;
struct event_base;
struct ev_loop;

/*
 * A call once a second on an event thread, by a timerfd. libevent's own timers would be passed to
 * every epoll_wait, which then arms and cancels a timer in the kernel for each call served: about a
 * tenth of the time of a small one.
 */
struct ev_second {
	struct event *ev; /* NULL: not started */
	int fd;
	void (*tick)(void *arg);
	void *arg;
};

/* s is zero and stays where it is. Seconds missed are made up for by one tick. 0 or -errno */
int ev_second_start(struct ev_second *s, struct event_base *base, void (*tick)(void *arg),
		    void *arg);
void ev_second_stop(struct ev_second *s); /* Does nothing if it was not started. */

/* Embedded in a posted object; may be posted again once run has been called. */
struct ev_task {
	struct rn_inbox_node node;
	void (*run)(struct ev_task *t);
};

/*
* Functions by which the loop's thread runs calls that it has kept. One may take long, as it uses a file
 * system: ev_loop_replace then lets another thread go on with the loop.
 */
struct ev_calls {
	/* Called on each thread that comes to run the loop; the result goes to run and end, NULL
	 * too. */
	void *(*begin)(void *ctx, struct ev_loop *loop);
	/* Makes one call. Nobody is within libevent. */
	void (*run)(void *ctx, void *state, struct rn_inbox_node *call);
	/* The thread has left the loop, perhaps after another one has taken its place. */
	void (*end)(void *state);
	void *ctx;
};

/* Read and written by transport/ only, and by its tests; by the thread that has the loop, unless they are atomic. */
struct ev_loop {
	struct event_base *base;
	struct event *wake; /* readable: the inbox has tasks */
	struct rn_inbox inbox;
	struct ev_second measure;
	struct ev_task stop_task;
	bool stopping;
	_Atomic uint64_t beats;

	struct ev_calls calls;
	struct rn_inbox_node *first, **last; /* calls that are kept, the oldest first */

	/* The thread: event_loop.c. */
	char name[16];
	_Atomic pthread_t thread; /* the one that has the loop */
	/* Twice the number of threads that had the loop before, and perhaps AT_WORK. A thread that
	 * finds another number has lost the loop, and must not touch it. */
	_Atomic unsigned owner;
	_Atomic unsigned claim; /* owner that a new thread wants to replace; 0: none */
	pthread_mutex_t lock;	/* guards threads */
	pthread_cond_t ended;	/* a thread has ended */
	unsigned threads;	/* all that have not ended */

	/* Turns: turns.c. */
	struct rn_fq queue;
	struct event *pass_ev; /* runs at the end of a pass */
	bool in_pass;	       /* pass_ev is scheduled */
	uint64_t pass;
	uint64_t work;	      /* increased by the connections that are served */
	const void *client;   /* the part served last, to compare with only: it may be gone */
	uint64_t shared_pass; /* the last pass that served another client than the turn before */

	/* Load: load.c. CLOCK_MONOTONIC, ns. */
	uint64_t awake_ns;	   /* start of the present work; 0 during a wait */
	uint64_t waits_ns;	   /* start of the last wait */
	uint64_t busy_ns;	   /* work that has ended since the last measurement */
	uint64_t measured_ns;	   /* time of the last measurement */
	_Atomic unsigned measured; /* result of the last measurement, up to EV_LOAD_FULL */
	_Atomic unsigned expected; /* load of connections that have come since then */
	_Atomic unsigned conns;	   /* connections of all transports */
};

/* Starts the thread. calls NULL: it keeps none. 0 or -errno. */
int ev_loop_new(const char *thread_name, const struct ev_calls *calls, struct ev_loop **out);
/* Ends the thread after all posted tasks have run, then frees. Not from the loop itself. */
void ev_loop_free(struct ev_loop *loop);
/* True on the loop's own thread. May change to false, never to true, while it makes a call. */
bool ev_loop_is_current(struct ev_loop *loop);
/* On the loop's thread: keeps a call, which is made before the loop looks at its descriptors again, after those kept before. */
void ev_loop_keep(struct ev_loop *loop, struct rn_inbox_node *call);
/*
 * Starts a thread that takes the loop from its present one, if that is still in the same call then;
 * it keeps the call and ends after it. From any thread but these. 0; -EALREADY: the loop's thread
 * is in no call, or is being replaced; -errno: no thread could be started.
 */
int ev_loop_replace(struct ev_loop *loop);
void ev_loop_post(struct ev_loop *loop, struct ev_task *t);
/* Runs fn on the loop and returns when it has run; directly if called on the loop. */
void ev_loop_call(struct ev_loop *loop, void (*fn)(void *arg), void *arg);

struct ev_loop_stats {
	unsigned connections;
	unsigned busy_ms; /* time of the last second in which the thread did not wait for events */
	uint64_t beats;	  /* grows once a second while the loop turns, whichever thread has it */
};
void ev_loop_stats(struct ev_loop *loop, struct ev_loop_stats *out); /* any thread */

/*
 * The load of an event thread: the share of each second in which it does not wait for events, and
 * the number of its connections. Waiting for a processor or in a system call counts as work,
 * because connections of the thread wait then, and so does polling a completion queue.
 *
 * The thread tells when a wait begins and ends, which costs two readings of the clock. The event
 * loop measures once a second. ev_place below and transport/tcp/tcp_move.c go by the results.
 */
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
