/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event thread: one libevent base and the thread that runs it. Transports add their descriptors
 * to it. Other threads hand it tasks with ev_loop_post; the function runs on the loop's thread.
 */
#ifndef RN_TRANSPORT_EVENT_LOOP_H
#define RN_TRANSPORT_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/inbox.h"

struct event_base;
struct ev_load;
struct ev_loop;
struct turns;

/* Embedded in a posted object; may be posted again once run has been called. */
struct ev_task {
	struct rn_inbox_node node;
	void (*run)(struct ev_task *t);
};

/*
 * Work for the loop's thread between two rounds of events, in pieces. A piece may take long, as it
 * calls a file system: ev_loop_replace then lets another thread go on with the loop.
 */
struct ev_work {
	/* Called on each thread that comes to run the loop; the result goes to run and end, NULL
	 * too. */
	void *(*begin)(void *ctx);
	/* The next piece, or NULL. Nobody else is on the loop. */
	void *(*take)(void *ctx);
	void (*run)(void *ctx, void *state, void *piece);
	/* The thread has left the loop, perhaps after another one has taken its place. */
	void (*end)(void *state);
	void *ctx;
};

/* Starts the thread. work NULL: none. 0 or -errno. */
int ev_loop_new(const char *thread_name, const struct ev_work *work, struct ev_loop **out);
/* Ends the thread after all posted tasks have run, then frees. Not from the loop itself. */
void ev_loop_free(struct ev_loop *loop);
struct event_base *ev_loop_base(struct ev_loop *loop);
struct turns *ev_loop_turns(struct ev_loop *loop);  /* see transport/turns.h */
struct ev_load *ev_loop_load(struct ev_loop *loop); /* see transport/load.h */
/* True on the loop's own thread. May change to false, never to true, within a piece of work. */
bool ev_loop_is_current(struct ev_loop *loop);
/*
 * Starts a thread that takes the loop from its present one, if that still does the same piece of
 * work then; it keeps the piece and ends after it. From any thread but these. 0; -EALREADY: the
 * loop's thread is not at work, or is being replaced; -errno: no thread could be started.
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
