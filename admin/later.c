/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/later.h"

#include <event2/bufferevent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "admin/admin_reply.h"

struct admin_later {
	LIST_ENTRY(admin_later) link; /* of all: the thread's */
	STAILQ_ENTRY(admin_later) answered;
	struct admin_laters *owner;
	struct admin_call call;
	struct admin_reply reply;
};

struct admin_laters {
	pthread_mutex_t lock; /* guards the members down to fd */
	unsigned refs;	      /* the server's, and of each request that is not answered */
	bool closed;
	STAILQ_HEAD(, admin_later) answered;
	int fd; /* an eventfd: the queue is not empty */

	/* The thread's own. */
	LIST_HEAD(, admin_later) all;
	struct event *event;
	admin_send send;
	void *server;
};

/* Takes over the lock and a reference. */
static void admin_laters_put_locked(struct admin_laters *l)
{
	const bool last = --l->refs == 0;

	pthread_mutex_unlock(&l->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void later_free(struct admin_later *later)
{
	admin_reply_drop(&later->reply);
	free(later);
}

static struct admin_later *next_answered(struct admin_laters *l)
{
	pthread_mutex_lock(&l->lock);
	struct admin_later *later = STAILQ_FIRST(&l->answered);

	if (later)
		STAILQ_REMOVE_HEAD(&l->answered, answered);
	pthread_mutex_unlock(&l->lock);
	return later;
}

/* If its peer has gone, evhttp drops the reply and frees the request. */
static void on_answers(evutil_socket_t fd, short what, void *arg)
{
	struct admin_laters *l = arg;
	struct admin_later *later;
	eventfd_t n;

	(void)what;
	eventfd_read(fd, &n);
	while ((later = next_answered(l))) {
		LIST_REMOVE(later, link);
		l->send(l->server, &later->call, &later->reply);
		later_free(later);
	}
}

struct admin_laters *admin_laters_new(struct event_base *base, admin_send send, void *server)
{
	struct admin_laters *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	l->refs = 1;
	l->send = send;
	l->server = server;
	STAILQ_INIT(&l->answered);
	LIST_INIT(&l->all);
	l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->event = l->fd < 0 ? NULL : event_new(base, l->fd, EV_READ | EV_PERSIST, on_answers, l);
	if (l->event && event_add(l->event, NULL) == 0)
		return l;
	admin_laters_free(l);
	return NULL;
}

/* evhttp frees the requests of its connections, and knows no others. */
static void admin_later_forget(struct admin_later *later)
{
	LIST_REMOVE(later, link);
	if (!evhttp_request_get_connection(later->call.req))
		evhttp_request_free(later->call.req);
	later->call.req = NULL;
}

void admin_laters_free(struct admin_laters *l)
{
	struct admin_later *later, *next;

	if (!l)
		return;
	if (l->event)
		event_free(l->event);
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	for (later = LIST_FIRST(&l->all); later; later = next) {
		next = LIST_NEXT(later, link);
		admin_later_forget(later);
	}
	while ((later = STAILQ_FIRST(&l->answered))) {
		STAILQ_REMOVE_HEAD(&l->answered, answered);
		later_free(later);
	}
	if (l->fd >= 0)
		close(l->fd);
	admin_laters_put_locked(l);
}

struct admin_later *admin_later(const struct admin_request *req)
{
	struct admin_call *call = req->call;

	if (call->later) {
		call->taken = true;
		return call->later;
	}
	struct admin_later *later = calloc(1, sizeof(*later));
	struct evhttp_connection *conn = evhttp_request_get_connection(call->req);

	if (!later)
		return NULL;
	later->owner = call->laters;
	later->call = *call;
	later->reply.status = 500;
	LIST_INSERT_HEAD(&later->owner->all, later, link);
	pthread_mutex_lock(&later->owner->lock);
	later->owner->refs++;
	pthread_mutex_unlock(&later->owner->lock);
	/* A peer that only waits would run into the time-out of reading. Sending the reply enables it again. */
	bufferevent_disable(evhttp_connection_get_bufferevent(conn), EV_READ);
	call->later = later;
	return later;
}

struct admin_reply *admin_later_reply(struct admin_later *later)
{
	return &later->reply;
}

void admin_later_send(struct admin_later *later)
{
	struct admin_laters *l = later->owner;

	pthread_mutex_lock(&l->lock);
	if (l->closed) {
		later_free(later);
	} else {
		STAILQ_INSERT_TAIL(&l->answered, later, answered);
		eventfd_write(l->fd, 1);
	}
	admin_laters_put_locked(l);
}
