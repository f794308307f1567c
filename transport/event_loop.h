/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event thread: one libevent base and the thread that runs it. Transports add their descriptors
 * to it. Other threads hand it work with ev_loop_post; the function runs on the loop's thread.
 */
#ifndef RN_TRANSPORT_EVENT_LOOP_H
#define RN_TRANSPORT_EVENT_LOOP_H

#include "lib/inbox.h"

struct event_base;
struct ev_loop;
struct turns;

/* Embedded in a posted object; may be posted again once run has been called. */
struct ev_task {
	struct rn_inbox_node node;
	void (*run)(struct ev_task *t);
};

int ev_loop_new(const char *thread_name, struct ev_loop **out); /* starts the thread */
/* Ends the thread after all posted tasks have run, then frees. Not from the loop itself. */
void ev_loop_free(struct ev_loop *loop);
struct event_base *ev_loop_base(struct ev_loop *loop);
struct turns *ev_loop_turns(struct ev_loop *loop); /* see transport/turns.h */
void ev_loop_post(struct ev_loop *loop, struct ev_task *t);
/* Runs fn on the loop and returns when it has run; directly if called on the loop. */
void ev_loop_call(struct ev_loop *loop, void (*fn)(void *arg), void *arg);

#endif
