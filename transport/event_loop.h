/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event thread: one libevent base and the thread that runs it. Transports add their descriptors
 * to it. Other threads hand it tasks with ev_loop_post; the function runs on the loop's thread.
 * Between two rounds of events the thread makes the calls that it has kept (ev_loop_keep). Clients
 * take turns (transport/turns.h), and the thread measures its load (transport/load.h).
 */
#ifndef RN_TRANSPORT_EVENT_LOOP_H
#define RN_TRANSPORT_EVENT_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/fair_queue.h"
#include "lib/inbox.h"
#include "transport/second.h"

struct event;
struct event_base;
struct ev_loop;

/* Embedded in a posted object; may be posted again once run has been called. */
struct ev_task {
	struct rn_inbox_node node;
	void (*run)(struct ev_task *t);
};

/*
 * What the loop's thread does with calls that it has kept. One may take long, as it uses a file
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
	uint64_t work;	      /* increased by the visited connections */
	const void *client;   /* the share visited last, to compare with only: it may be gone */
	uint64_t shared_pass; /* the last pass that served another client than the visit before */

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

#endif
