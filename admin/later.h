/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests whose handlers answer later. The thread of the control socket owns their evhttp requests; other
 * threads give it their answers by a queue and an eventfd. Whoever has still to answer when the server is
 * freed keeps the queue alive, and the answer is dropped.
 */
#ifndef RN_ADMIN_LATER_H
#define RN_ADMIN_LATER_H

#include <event2/event.h>
#include <event2/http.h>

#include "admin/admin.h"

struct admin_laters;

/* The thread's side of a request under way; the request that the handler sees points to it. */
struct admin_call {
	struct admin_laters *laters;
	struct evhttp_request *req;
	const struct admin_handler *handler;
	struct admin_peer peer;
	struct admin_later *later; /* set by admin_later() */
	bool taken; /* the handler, which has a turn of admin_turns.h, has called admin_later(), too */
};

/* Takes over the reply. */
typedef void (*admin_send)(void *server, const struct admin_call *call, struct admin_reply *r);

/* NULL: no memory, or no descriptor. send is called on the thread of base. */
struct admin_laters *admin_laters_new(struct event_base *base, admin_send send, void *server);
/* After the thread has ended, and before evhttp is freed. NULL is allowed. */
void admin_laters_free(struct admin_laters *l);

#endif
