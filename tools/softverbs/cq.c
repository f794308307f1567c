/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "tools/softverbs/async.h"
#include "tools/softverbs/cq.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"
#include "tools/softverbs/qp.h"
#include "tools/softverbs/sv_device.h"

#define REORDER_USEC 100000u /* longest wait for a completion of another queue pair */
#define FOLLOW_USEC 1000u

SV_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				       struct ibv_comp_channel *channel, int comp_vector)
{
	struct sv_context *ctx = sv_context_of(context);
	struct sv_cq *cq = NULL;

	if (cqe < 1 || cqe > SV_MAX_CQE || comp_vector < 0 ||
	    comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (cq)
		cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
	if (!cq || !cq->ring) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	cq->size = (uint32_t)cqe;
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = cqe;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	TAILQ_INIT(&cq->held);
	sv_lock();
	cq->ibv.handle = ++ctx->users;
	if (channel)
		channel->refcnt++;
	sv_unlock();
	return &cq->ibv;
}

static void wait_acks(struct sv_cq *cq)
{
	struct ibv_cq *ibv = &cq->ibv;
	struct sv_unacked comp = { &ibv->mutex, &ibv->cond, &ibv->comp_events_completed,
				   &cq->comp_taken };
	struct sv_unacked async = { &ibv->mutex, &ibv->cond, &ibv->async_events_completed,
				    &cq->async_taken };

	if (ibv->channel)
		sv_unacked_wait(&((struct sv_channel *)ibv->channel)->events, cq, &comp);
	sv_unacked_wait(&sv_context_of(ibv->context)->async, cq, &async);
}

SV_EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct sv_cq *cq = sv_cq_of(ibv);

	sv_lock();
	if (cq->users) {
		sv_unlock();
		return EBUSY;
	}
	sv_context_of(ibv->context)->users--;
	sv_unlock();
	wait_acks(cq);
	sv_lock();
	if (ibv->channel)
		ibv->channel->refcnt--;
	sv_unlock();
	pthread_mutex_destroy(&cq->lock);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(cq->ring);
	free(cq);
	return 0;
}

SV_EXPORT int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct sv_cq *cq = sv_cq_of(ibv);
	struct sv_cqe *ring;

	if (cqe < 1 || cqe > SV_MAX_CQE)
		return EINVAL;
	ring = calloc((size_t)cqe, sizeof(*ring));
	if (!ring)
		return ENOMEM;
	pthread_mutex_lock(&cq->lock);
	uint32_t n = atomic_load(&cq->count);
	if (n > (uint32_t)cqe) {
		pthread_mutex_unlock(&cq->lock);
		free(ring);
		return EINVAL;
	}
	for (uint32_t i = 0; i < n; i++)
		ring[i] = cq->ring[(cq->head + i) % cq->size];
	free(cq->ring);
	cq->ring = ring;
	cq->head = 0;
	cq->size = (uint32_t)cqe;
	ibv->cqe = cqe;
	pthread_mutex_unlock(&cq->lock);
	return 0;
}

/* Entries of a work queue are in use until their completion, or a later one, has been polled. */
static void reclaim(const struct sv_cqe *cqe)
{
	if (cqe->qp)
		atomic_store(cqe->is_recv ? &cqe->qp->rq.reclaimed : &cqe->qp->sq.reclaimed,
			     cqe->reclaimed);
}

int sv_poll_cq(struct ibv_cq *ibv, int max, struct ibv_wc *wc)
{
	struct sv_cq *cq = sv_cq_of(ibv);
	int n = 0;

	if (!atomic_load_explicit(&cq->count, memory_order_relaxed))
		sv_engine_drive();
	if (!atomic_load_explicit(&cq->count, memory_order_relaxed) && !cq->broken)
		return 0;
	pthread_mutex_lock(&cq->lock);
	uint32_t count = atomic_load(&cq->count);
	bool broken = cq->broken && !count;
	for (; n < max && count; n++, count--) {
		wc[n] = cq->ring[cq->head].wc;
		reclaim(&cq->ring[cq->head]);
		cq->head = cq->head + 1 < cq->size ? cq->head + 1 : 0;
	}
	atomic_store(&cq->count, count);
	pthread_mutex_unlock(&cq->lock);
	return broken ? -1 : n;
}

int sv_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct sv_cq *cq = sv_cq_of(ibv);

	pthread_mutex_lock(&cq->lock);
	/* A request for all completions is stronger than one for solicited completions only. */
	cq->solicited_only = solicited_only && (!cq->armed || cq->solicited_only);
	cq->armed = true;
	pthread_mutex_unlock(&cq->lock);
	sv_engine_waiter();
	return 0;
}

static void notify(struct sv_cq *cq)
{
	struct ibv_cq *ibv = &cq->ibv;

	cq->armed = false;
	if (ibv->channel)
		sv_events_push(&((struct sv_channel *)ibv->channel)->events, cq, &ibv, sizeof(ibv));
}

/* False if the queue is full or broken. */
static bool cq_append(struct sv_cq *cq, const struct sv_cqe *cqe)
{
	pthread_mutex_lock(&cq->lock);
	uint32_t count = atomic_load(&cq->count);
	bool fits = count < cq->size && !cq->broken;
	if (fits) {
		cq->ring[(cq->head + count) % cq->size] = *cqe;
		atomic_store(&cq->count, count + 1);
		if (cq->armed && (!cq->solicited_only || cqe->solicited))
			notify(cq);
	}
	pthread_mutex_unlock(&cq->lock);
	return fits;
}

static void overflow(struct sv_cq *cq)
{
	if (cq->broken)
		return;
	pthread_mutex_lock(&cq->lock);
	cq->broken = true;
	pthread_mutex_unlock(&cq->lock);
	sv_async(sv_context_of(cq->ibv.context), IBV_EVENT_CQ_ERR, cq);
	sv_qps_cq_broken(cq);
}

static void unhold(struct sv_held *h)
{
	TAILQ_REMOVE(&h->cq->held, h, link);
	if (h->is_reorder)
		TAILQ_REMOVE(&sv_fabric.reordered, h, reorder);
	sv_timer_stop(&h->timer);
}

static void cq_release_held(struct sv_held *h)
{
	unhold(h);
	if (!cq_append(h->cq, &h->cqe))
		overflow(h->cq);
	free(h);
}

/* Releases the held completion, and first those of the same queue pair held before it, to keep
 * their order. */
static void held_is_due(void *arg)
{
	struct sv_held *last = arg, *h, *next;
	struct sv_cq *cq = last->cq;
	const struct sv_qp *qp = last->cqe.qp;

	for (h = TAILQ_FIRST(&cq->held); h; h = next) {
		bool is_last = h == last;
		next = TAILQ_NEXT(h, link);
		if (h->cqe.qp == qp)
			cq_release_held(h);
		if (is_last)
			return;
	}
}

static bool has_held(const struct sv_cq *cq, const struct sv_qp *qp)
{
	const struct sv_held *h;

	TAILQ_FOREACH (h, &cq->held, link)
		if (h->cqe.qp == qp)
			return true;
	return false;
}

static bool cq_hold_completion(struct sv_cq *cq, const struct sv_cqe *cqe)
{
	uint64_t usec = sv_fault_completion(cqe->qp);

	if (!usec && !has_held(cq, cqe->qp))
		return false;
	struct sv_held *h = calloc(1, sizeof(*h));
	if (!h)
		return false;
	h->cq = cq;
	h->cqe = *cqe;
	h->is_reorder = usec == SV_HOLD_REORDER;
	TAILQ_INSERT_TAIL(&cq->held, h, link);
	if (h->is_reorder) {
		TAILQ_INSERT_TAIL(&sv_fabric.reordered, h, reorder);
		usec = REORDER_USEC;
	}
	/* A completion without a delay of its own follows the held one right away. */
	sv_timer_start(&h->timer, usec ? usec : FOLLOW_USEC, held_is_due, h);
	return true;
}

/* Releases the reordered completions, now that another queue pair has completed something. */
static void release_reordered(const struct sv_qp *qp)
{
	struct sv_held *h, *next;

	for (h = TAILQ_FIRST(&sv_fabric.reordered); h; h = next) {
		next = TAILQ_NEXT(h, reorder);
		if (h->cqe.qp != qp)
			sv_timer_start(&h->timer, 0, held_is_due, h);
	}
}

void sv_cq_add(struct sv_cq *cq, const struct sv_cqe *cqe)
{
	if (cq_hold_completion(cq, cqe))
		return;
	if (!cq_append(cq, cqe))
		overflow(cq);
	if (!TAILQ_EMPTY(&sv_fabric.reordered))
		release_reordered(cqe->qp);
}

void sv_cq_purge(struct sv_cq *cq, struct sv_qp *qp)
{
	struct sv_held *h, *next;
	uint32_t kept = 0;

	for (h = TAILQ_FIRST(&cq->held); h; h = next) {
		next = TAILQ_NEXT(h, link);
		if (h->cqe.qp != qp)
			continue;
		unhold(h);
		free(h);
	}
	pthread_mutex_lock(&cq->lock);
	uint32_t count = atomic_load(&cq->count);
	for (uint32_t i = 0; i < count; i++) {
		struct sv_cqe *cqe = &cq->ring[(cq->head + i) % cq->size];
		if (cqe->qp != qp)
			cq->ring[(cq->head + kept++) % cq->size] = *cqe;
	}
	atomic_store(&cq->count, kept);
	pthread_mutex_unlock(&cq->lock);
}
