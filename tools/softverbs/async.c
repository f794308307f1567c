/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "tools/softverbs/async.h"
#include "tools/softverbs/cq.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/qp.h"
#include "tools/softverbs/srq.h"
#include "tools/softverbs/sv_device.h"

enum kind { KIND_PORT, KIND_CQ, KIND_QP, KIND_SRQ };

static enum kind sv_async_kind(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return KIND_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return KIND_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return KIND_SRQ;
	default:
		return KIND_PORT;
	}
}

void sv_async(struct sv_context *ctx, enum ibv_event_type type, void *object)
{
	struct ibv_async_event ev = { .event_type = type };

	switch (sv_async_kind(type)) {
	case KIND_CQ:
		ev.element.cq = object;
		break;
	case KIND_QP:
		ev.element.qp = object;
		break;
	case KIND_SRQ:
		ev.element.srq = object;
		break;
	default:
		ev.element.port_num = type == IBV_EVENT_DEVICE_FATAL ? 0 : 1;
	}
	sv_events_push(&ctx->async, object, &ev, sizeof(ev));
}

static void sv_async_count_taken(void *data)
{
	struct ibv_async_event *ev = data;

	switch (sv_async_kind(ev->event_type)) {
	case KIND_CQ:
		sv_cq_of(ev->element.cq)->async_taken++;
		break;
	case KIND_QP:
		sv_qp_of(ev->element.qp)->async_taken++;
		break;
	case KIND_SRQ:
		sv_srq_of(ev->element.srq)->async_taken++;
		break;
	default:
		break;
	}
}

SV_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return sv_events_pop(&sv_context_of(context)->async, event, sizeof(*event),
			     sv_async_count_taken);
}

static void sv_async_count_acked(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

SV_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (sv_async_kind(event->event_type)) {
	case KIND_CQ:
		sv_async_count_acked(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case KIND_QP:
		sv_async_count_acked(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case KIND_SRQ:
		sv_async_count_acked(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	default:
		break;
	}
}

void sv_unacked_wait(struct sv_event_queue *q, const void *owner, const struct sv_unacked *u)
{
	sv_events_drop(q, owner, NULL);
	pthread_mutex_lock(u->mutex);
	while (*u->completed != *u->taken)
		pthread_cond_wait(u->cond, u->mutex);
	pthread_mutex_unlock(u->mutex);
}
