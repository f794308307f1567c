/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue of events with a file descriptor that is readable while there are any: completion
 * channels, asynchronous events and the event channels of the connection manager. Taking an event
 * blocks or fails with EAGAIN as the descriptor's O_NONBLOCK, which belongs to the application,
 * says. It has a lock of its own, taken inside any other.
 */
#ifndef SV_EVENT_QUEUE_H
#define SV_EVENT_QUEUE_H

#include <pthread.h>
#include <stddef.h>
#include <sys/queue.h>

#define SV_EVENT_SIZE 32 /* bytes of the largest event; larger ones are passed by pointer */

struct sv_event {
	TAILQ_ENTRY(sv_event) link;
	const void *owner;
	unsigned char data[SV_EVENT_SIZE];
};

struct sv_event_queue {
	int fd; /* the application may poll it and set O_NONBLOCK on it */
	pthread_mutex_t lock;
	TAILQ_HEAD(sv_event_list, sv_event) events;
};

int sv_events_init(struct sv_event_queue *q);

/* Frees the remaining events and closes fd. */
void sv_events_destroy(struct sv_event_queue *q);

/* Adds a copy of data; sv_events_drop() and sv_events_move() select events by owner. */
int sv_events_push(struct sv_event_queue *q, const void *owner, const void *data, size_t len);

/*
 * Takes the next event; called without the fabric's lock, as it may block. Returns 0, or -1 and
 * errno (EAGAIN, EINTR). taken (may be NULL) is called inside the queue's lock, so that an event is
 * either taken or still there for sv_events_drop().
 */
int sv_events_pop(struct sv_event_queue *q, void *data, size_t len, void (*taken)(void *data));

/* Removes all events of the owner and calls gone (may be NULL) with each one's data. */
void sv_events_drop(struct sv_event_queue *q, const void *owner, void (*gone)(void *data));

/* Moves all events of the owner, in their order, to another queue. */
void sv_events_move(struct sv_event_queue *from, const void *owner, struct sv_event_queue *to);

#endif
