/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor is an eventfd that counts the events in the list, one read for each: so a read of
 * it blocks, fails with EAGAIN or is interrupted just as one of the kernel's channels.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/softverbs/event_queue.h"

int sv_events_init(struct sv_event_queue *q)
{
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (q->fd < 0)
		return -errno;
	pthread_mutex_init(&q->lock, NULL);
	TAILQ_INIT(&q->events);
	return 0;
}

void sv_events_destroy(struct sv_event_queue *q)
{
	struct sv_event *ev;

	while ((ev = TAILQ_FIRST(&q->events))) {
		TAILQ_REMOVE(&q->events, ev, link);
		free(ev);
	}
	pthread_mutex_destroy(&q->lock);
	close(q->fd);
	q->fd = -1;
}

static void event_queue_signal(struct sv_event_queue *q)
{
	uint64_t one = 1;
	ssize_t n;

	do
		n = write(q->fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

/* Reads without blocking, even from a blocking descriptor: another thread may have taken the count
 * and be about to look for its event. */
static void uncount_one(struct sv_event_queue *q)
{
	uint64_t one;
	struct iovec iov = { &one, sizeof(one) };

	(void)!preadv2(q->fd, &iov, 1, -1, RWF_NOWAIT);
}

int sv_events_push(struct sv_event_queue *q, const void *owner, const void *data, size_t len)
{
	struct sv_event *ev = calloc(1, sizeof(*ev));

	if (!ev || len > SV_EVENT_SIZE) {
		free(ev);
		return ev ? -EINVAL : -ENOMEM;
	}
	ev->owner = owner;
	memcpy(ev->data, data, len);
	pthread_mutex_lock(&q->lock);
	TAILQ_INSERT_TAIL(&q->events, ev, link);
	event_queue_signal(q);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

int sv_events_pop(struct sv_event_queue *q, void *data, size_t len, void (*taken)(void *data))
{
	struct sv_event *ev;

	/* The event may have been dropped after its count was read; then waits for the next one. */
	do {
		uint64_t one;
		ssize_t n = read(q->fd, &one, sizeof(one));
		if (n != sizeof(one))
			return -1;
		pthread_mutex_lock(&q->lock);
		ev = TAILQ_FIRST(&q->events);
		if (ev) {
			TAILQ_REMOVE(&q->events, ev, link);
			memcpy(data, ev->data, len);
			if (taken)
				taken(data);
		}
		pthread_mutex_unlock(&q->lock);
	} while (!ev);
	free(ev);
	return 0;
}

void sv_events_drop(struct sv_event_queue *q, const void *owner, void (*gone)(void *data))
{
	struct sv_event *ev, *next;

	pthread_mutex_lock(&q->lock);
	for (ev = TAILQ_FIRST(&q->events); ev; ev = next) {
		next = TAILQ_NEXT(ev, link);
		if (ev->owner != owner)
			continue;
		TAILQ_REMOVE(&q->events, ev, link);
		uncount_one(q);
		if (gone)
			gone(ev->data);
		free(ev);
	}
	pthread_mutex_unlock(&q->lock);
}

void sv_events_move(struct sv_event_queue *from, const void *owner, struct sv_event_queue *to)
{
	struct sv_event_list list = TAILQ_HEAD_INITIALIZER(list);
	struct sv_event *ev, *next;

	/* Takes one lock at a time, since two threads may move events in opposite directions. */
	pthread_mutex_lock(&from->lock);
	for (ev = TAILQ_FIRST(&from->events); ev; ev = next) {
		next = TAILQ_NEXT(ev, link);
		if (ev->owner != owner)
			continue;
		TAILQ_REMOVE(&from->events, ev, link);
		uncount_one(from);
		TAILQ_INSERT_TAIL(&list, ev, link);
	}
	pthread_mutex_unlock(&from->lock);
	pthread_mutex_lock(&to->lock);
	while ((ev = TAILQ_FIRST(&list))) {
		TAILQ_REMOVE(&list, ev, link);
		TAILQ_INSERT_TAIL(&to->events, ev, link);
		event_queue_signal(to);
	}
	pthread_mutex_unlock(&to->lock);
}
