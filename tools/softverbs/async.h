/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts of asynchronous events that the application has taken and not yet acknowledged: an object
 * is destroyed when the two are equal, as in libibverbs.
 */
#ifndef SV_ASYNC_H
#define SV_ASYNC_H

#include <pthread.h>
#include <stdint.h>

#include "tools/softverbs/event_queue.h"

struct sv_unacked {
	pthread_mutex_t *mutex; /* the public object's */
	pthread_cond_t *cond;
	uint32_t *completed;
	const uint32_t *taken;
};

/* Drops the owner's events that nobody has taken, and waits for the acknowledgement of the others.
 */
void sv_unacked_wait(struct sv_event_queue *q, const void *owner, const struct sv_unacked *u);

#endif
