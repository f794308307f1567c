/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates, finds, breaks and destroys queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/async.h"
#include "tools/softverbs/cm_hooks.h"
#include "tools/softverbs/cq.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/qp.h"
#include "tools/softverbs/qp_ex.h"
#include "tools/softverbs/srq.h"
#include "tools/softverbs/sv_memory.h"

struct sv_qp *sv_qp_find(uint32_t qpn)
{
	struct sv_qp *qp = sv_fabric.qps.qp ? sv_fabric.qps.qp[qpn & 0xffff] : NULL;

	/* After a fork() the table still holds the parent's queue pairs, of another slot. */
	return qp && qp->ibv.qp_num == qpn && qpn >> 16 == sv_fabric.slot ? qp : NULL;
}

/* Numbers are not reused soon. 0 and 1 are special in InfiniBand. */
static int qp_assign_number(struct sv_qp *qp)
{
	struct sv_qp_table *t = &sv_fabric.qps;

	if (!t->qp)
		t->qp = calloc(SV_QPS, sizeof(struct sv_qp *));
	if (!t->qp || t->used >= SV_QPS - 2)
		return -ENOMEM;
	do
		t->next = t->next + 1 < SV_QPS ? t->next + 1 : 2;
	while (t->qp[t->next] || t->next < 2);
	t->qp[t->next] = qp;
	t->used++;
	qp->ibv.qp_num = sv_fabric.slot << 16 | t->next;
	qp->ibv.handle = t->next;
	return 0;
}

static int check_cap(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_cap *c = &attr->cap;

	if (attr->qp_type != IBV_QPT_RC)
		return -EOPNOTSUPP;
	if (!attr->pd || !attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	if (c->max_send_wr > SV_MAX_WR || c->max_recv_wr > SV_MAX_WR ||
	    c->max_send_sge > SV_MAX_SGE || c->max_recv_sge > SV_MAX_SGE ||
	    c->max_inline_data > SV_MAX_INLINE)
		return -EINVAL;
	return 0;
}

/* An empty queue gets one entry, so that its size can be a divisor. */
static int alloc_queues(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_rq *rq = &qp->rq;

	sq->size = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1;
	sq->max_sge = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
	sq->max_inline = qp->cap.max_inline_data;
	rq->size = qp->cap.max_recv_wr ? qp->cap.max_recv_wr : 1;
	rq->max_sge = qp->cap.max_recv_sge ? qp->cap.max_recv_sge : 1;
	sq->wqe = calloc(sq->size, sizeof(*sq->wqe));
	sq->sge = calloc((size_t)sq->size * sq->max_sge, sizeof(*sq->sge));
	rq->wqe = calloc(rq->size, sizeof(*rq->wqe));
	rq->sge = calloc((size_t)rq->size * rq->max_sge, sizeof(*rq->sge));
	if (sq->max_inline)
		sq->inline_data = calloc(sq->size, sq->max_inline);
	if (!sq->wqe || !sq->sge || !rq->wqe || !rq->sge || (sq->max_inline && !sq->inline_data))
		return -ENOMEM;
	return 0;
}

static void qp_free(struct sv_qp *qp)
{
	sv_qp_ex_free(qp);
	free(qp->sq.wqe);
	free(qp->sq.sge);
	free(qp->sq.inline_data);
	free(qp->rq.wqe);
	free(qp->rq.sge);
	free(qp->rx.reads);
	free(qp);
}

static void count_users(struct sv_qp *qp, int n)
{
	sv_pd_of(qp->ibv.pd)->users += (unsigned)n;
	sv_send_cq(qp)->users += (unsigned)n;
	sv_recv_cq(qp)->users += (unsigned)n;
	if (qp->ibv.srq)
		sv_srq_of(qp->ibv.srq)->users += (unsigned)n;
}

static struct sv_qp *qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	struct sv_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->ctx = sv_context_of(context);
	qp->ibv.context = context;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = attr->pd;
	qp->ibv.send_cq = attr->send_cq;
	qp->ibv.recv_cq = attr->recv_cq;
	qp->ibv.srq = attr->srq;
	qp->ibv.qp_type = attr->qp_type;
	qp->ibv.state = IBV_QPS_RESET;
	qp->cap = attr->cap;
	if (attr->srq)
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	qp->sig_all = attr->sq_sig_all != 0;
	qp->sender.send = sv_qp_send;
	if (alloc_queues(qp) < 0) {
		qp_free(qp);
		return NULL;
	}
	return qp;
}

struct ibv_qp *sv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct sv_qp *qp = NULL;
	int err = check_cap(attr);

	if (!err) {
		qp = qp_new(context, attr);
		err = qp ? sv_qp_ex_init(qp, attr) : -ENOMEM;
	}
	sv_lock();
	if (!err)
		err = qp->ctx->dev->removed ? -EIO : qp_assign_number(qp);
	if (!err)
		count_users(qp, 1);
	sv_unlock();
	if (err) {
		if (qp)
			qp_free(qp);
		errno = -err;
		return NULL;
	}
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	attr->cap = qp->cap;
	return &qp->ibv;
}

SV_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd };

	_Static_assert(offsetof(struct ibv_qp_init_attr_ex, comp_mask) >=
			       offsetof(struct ibv_qp_init_attr, sq_sig_all),
		       "one begins with the other");
	memcpy(&ex, attr, offsetof(struct ibv_qp_init_attr, sq_sig_all) + sizeof(int));
	struct ibv_qp *qp = sv_create_qp_ex(pd->context, &ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

static void disconnect(struct sv_qp *qp)
{
	if (qp->link)
		sv_link_unqueue(qp->link, &qp->sender);
	sv_timer_stop(&qp->sq.timer);
	qp->sq.waiting = false;
	qp->link = NULL;
}

/* Destroys the queue pair without completions. Afterwards no peer reads the memory of its requests,
 * as with hardware. To ensure that, it may release the lock and wait. */
static void qp_stop(struct sv_qp *qp)
{
	bool unsettled = qp->unsettled || sv_sq_unsettled(qp);

	sv_responder_stop(qp);
	qp->ibv.state = IBV_QPS_ERR;
	if (qp->link && unsettled)
		sv_link_sync(qp->link);
	qp->unsettled = false;
	disconnect(qp);
}

SV_EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct sv_qp *qp = sv_qp_of(ibv);
	struct sv_unacked async = { &ibv->mutex, &ibv->cond, &ibv->events_completed,
				    &qp->async_taken };

	sv_lock();
	qp_stop(qp);
	sv_fabric.qps.qp[ibv->qp_num & 0xffff] = NULL;
	sv_fabric.qps.used--;
	sv_cq_purge(sv_send_cq(qp), qp);
	sv_cq_purge(sv_recv_cq(qp), qp);
	count_users(qp, -1);
	sv_unlock();
	sv_unacked_wait(&qp->ctx->async, qp, &async);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	qp_free(qp);
	return 0;
}

void sv_qp_error(struct sv_qp *qp)
{
	if (qp->ibv.state == IBV_QPS_ERR)
		return;
	/* Sets the state first, as flushing may overflow the completion queue. */
	qp->ibv.state = IBV_QPS_ERR;
	sv_responder_stop(qp);
	sv_timer_stop(&qp->sq.timer);
	qp->sq.waiting = false;
	sv_sq_flush(qp);
	sv_rq_flush(qp);
	if (qp->ibv.srq)
		sv_async(qp->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
}

void sv_qp_reset(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_rq *rq = &qp->rq;

	qp_stop(qp);
	sv_cq_purge(sv_send_cq(qp), qp);
	sv_cq_purge(sv_recv_cq(qp), qp);
	sq->posted = sq->next = sq->acked = sq->retired = sq->offset = sq->reads = 0;
	atomic_store(&sq->reclaimed, 0);
	sq->stopped = false;
	rq->posted = rq->taken = 0;
	atomic_store(&rq->reclaimed, 0);
	free(qp->rx.reads);
	memset(&qp->rx, 0, sizeof(qp->rx));
	qp->silent = qp->rnr = qp->drop = qp->peer_gone = false;
	qp->ibv.state = IBV_QPS_RESET;
}

void sv_qp_dropped(struct sv_qp *qp)
{
	sv_qp_error(qp);
	sv_cm_dropped(&qp->ibv);
}

void sv_qp_drop(struct sv_qp *qp)
{
	struct sv_frame f = {
		.type = SV_FRAME_DROP,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
	};

	if (qp->link)
		sv_link_send(qp->link, &f, NULL, 0);
	sv_qp_dropped(qp);
}

/* Calls fn for each queue pair of the process. */
static void for_each(void (*fn)(struct sv_qp *qp, void *arg), void *arg)
{
	for (uint32_t i = 0; i < SV_QPS && sv_fabric.qps.qp; i++)
		if (sv_fabric.qps.qp[i])
			fn(sv_fabric.qps.qp[i], arg);
}

static void link_lost(struct sv_qp *qp, void *link)
{
	if (qp->link != link)
		return;
	qp->link = NULL;
	qp->sender.queued = false;
	qp->peer_gone = true;
	for (uint32_t i = 0; i < qp->rx.nreads; i++)
		if (qp->rx.reads[(qp->rx.first + i) % qp->rx.max_reads].pinned)
			sv_mr_unpull(qp->rx.reads[(qp->rx.first + i) % qp->rx.max_reads].rkey);
	qp->rx.nreads = 0;
	sv_requester_lost(qp);
}

void sv_qps_link_lost(struct sv_link *l)
{
	for_each(link_lost, l);
}

static void qp_device_removed(struct sv_qp *qp, void *dev)
{
	if (qp->ctx->dev == dev)
		sv_qp_error(qp);
}

void sv_qps_device_removed(struct sv_device *dev)
{
	for_each(qp_device_removed, dev);
}

static void cq_broken(struct sv_qp *qp, void *cq)
{
	if ((sv_send_cq(qp) != cq && sv_recv_cq(qp) != cq) || qp->ibv.state == IBV_QPS_ERR)
		return;
	sv_async(qp->ctx, IBV_EVENT_QP_FATAL, qp);
	sv_qp_error(qp);
}

void sv_qps_cq_broken(struct sv_cq *cq)
{
	for_each(cq_broken, cq);
}
