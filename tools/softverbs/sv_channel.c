/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "tools/softverbs/cq.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/sv_device.h"

SV_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct sv_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	int err = sv_events_init(&ch->events);
	if (err) {
		free(ch);
		errno = -err;
		return NULL;
	}
	ch->ibv.context = context;
	ch->ibv.fd = ch->events.fd;
	return &ch->ibv;
}

SV_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct sv_channel *ch = (struct sv_channel *)channel;

	sv_lock();
	bool busy = channel->refcnt != 0;
	sv_unlock();
	if (busy)
		return EBUSY;
	sv_events_destroy(&ch->events);
	free(ch);
	return 0;
}

static void sv_channel_count_taken(void *data)
{
	struct ibv_cq **cq = data;

	sv_cq_of(*cq)->comp_taken++;
}

SV_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	struct sv_channel *ch = (struct sv_channel *)channel;

	/* The thread may block here, so the engine's thread must handle arrivals instead of leaving
	 * them to pollers. */
	sv_engine_waiter();
	if (sv_events_pop(&ch->events, cq, sizeof(struct ibv_cq *), sv_channel_count_taken) < 0)
		return -1;
	*context = (*cq)->cq_context;
	return 0;
}

SV_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
