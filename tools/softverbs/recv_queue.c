/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive queues, of one queue pair or shared. A receive is taken when the first frame of its
 * message arrives and stays in qp->rx until the last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/async.h"
#include "tools/softverbs/cq.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/srq.h"
#include "tools/softverbs/sv_memory.h"

static int rq_enqueue(struct sv_rq *rq, const struct ibv_recv_wr *wr, uint32_t in_use)
{
	uint64_t total = 0;
	uint32_t at = rq->posted % rq->size;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (in_use >= rq->size)
		return ENOMEM;
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	if (total > UINT32_MAX)
		total = UINT32_MAX;
	rq->wqe[at] = (struct sv_rwqe){ wr->wr_id, (uint32_t)total, (uint32_t)wr->num_sge };
	if (wr->num_sge)
		memcpy(&rq->sge[(size_t)at * rq->max_sge], wr->sg_list,
		       (size_t)wr->num_sge * sizeof(*wr->sg_list));
	rq->posted++;
	return 0;
}

int sv_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_qp *qp = sv_qp_of(ibv);
	struct sv_rq *rq = &qp->rq;
	int err = 0;

	sv_lock();
	if (ibv->state == IBV_QPS_RESET || ibv->srq || !qp->cap.max_recv_wr)
		err = EINVAL;
	for (; wr && !err; wr = wr->next) {
		err = rq_enqueue(rq, wr, rq->posted - atomic_load(&rq->reclaimed));
		if (err)
			break;
	}
	if (err && bad)
		*bad = wr;
	if (ibv->state == IBV_QPS_ERR)
		sv_rq_flush(qp);
	sv_unlock();
	return err;
}

int sv_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_rq *rq = &sv_srq_of(ibv)->rq;
	int err = 0;

	sv_lock();
	for (; wr && !err; wr = wr->next) {
		err = rq_enqueue(rq, wr, rq->posted - rq->taken);
		if (err)
			break;
	}
	if (err && bad)
		*bad = wr;
	sv_unlock();
	return err;
}

static struct sv_rq *rq_of(struct sv_qp *qp)
{
	return qp->ibv.srq ? &sv_srq_of(qp->ibv.srq)->rq : &qp->rq;
}

bool sv_rq_has(struct sv_qp *qp)
{
	const struct sv_rq *rq = rq_of(qp);

	return rq->taken != rq->posted;
}

static void check_limit(struct sv_srq *srq)
{
	if (!srq->limit || srq->rq.posted - srq->rq.taken >= srq->limit)
		return;
	srq->limit = 0;
	sv_async(sv_context_of(srq->ibv.context), IBV_EVENT_SRQ_LIMIT_REACHED, srq);
}

bool sv_rq_take(struct sv_qp *qp)
{
	struct sv_rq *rq = rq_of(qp);
	struct sv_rx *rx = &qp->rx;

	if (rq->taken == rq->posted)
		return false;
	uint32_t at = rq->taken++ % rq->size;
	rx->recv = rq->wqe[at];
	memcpy(rx->sge, &rq->sge[(size_t)at * rq->max_sge],
	       (size_t)rx->recv.num_sge * sizeof(*rx->sge));
	rx->receiving = true;
	if (qp->ibv.srq)
		check_limit(sv_srq_of(qp->ibv.srq));
	return true;
}

void sv_rq_complete(struct sv_qp *qp, struct ibv_wc *wc, bool solicited)
{
	struct sv_cqe cqe = {
		.wc = *wc,
		.qp = qp,
		.reclaimed = qp->rq.taken,
		.is_recv = true,
		.solicited = solicited || wc->status != IBV_WC_SUCCESS,
	};

	cqe.wc.wr_id = qp->rx.recv.wr_id;
	cqe.wc.qp_num = qp->ibv.qp_num;
	cqe.wc.src_qp = qp->attr.dest_qp_num;
	qp->rx.receiving = false;
	sv_cq_add(sv_recv_cq(qp), &cqe);
}

/* The receives of a shared queue stay for the other queue pairs. */
void sv_rq_flush(struct sv_qp *qp)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };

	if (qp->rx.receiving)
		sv_rq_complete(qp, &wc, false);
	while (!qp->ibv.srq && sv_rq_take(qp))
		sv_rq_complete(qp, &wc, false);
}

SV_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	const struct ibv_srq_attr *attr = &init->attr;
	struct sv_srq *srq;

	if (!attr->max_wr || attr->max_wr > SV_MAX_WR || attr->max_sge > SV_MAX_SGE) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	srq->rq.size = attr->max_wr;
	srq->rq.max_sge = attr->max_sge ? attr->max_sge : 1;
	srq->limit = attr->srq_limit;
	srq->rq.wqe = calloc(srq->rq.size, sizeof(*srq->rq.wqe));
	srq->rq.sge = calloc((size_t)srq->rq.size * srq->rq.max_sge, sizeof(*srq->rq.sge));
	if (!srq->rq.wqe || !srq->rq.sge) {
		free(srq->rq.wqe);
		free(srq->rq.sge);
		free(srq);
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	sv_lock();
	sv_pd_of(pd)->users++;
	sv_unlock();
	return &srq->ibv;
}

SV_EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct sv_srq *srq = sv_srq_of(ibv);

	if (mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > srq->rq.size)
		return EINVAL;
	sv_lock();
	if (mask & IBV_SRQ_LIMIT) {
		srq->limit = attr->srq_limit;
		check_limit(srq);
	}
	sv_unlock();
	return 0;
}

SV_EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct sv_srq *srq = sv_srq_of(ibv);

	sv_lock();
	attr->max_wr = srq->rq.size;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->limit;
	sv_unlock();
	return 0;
}

SV_EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct sv_srq *srq = sv_srq_of(ibv);
	struct sv_unacked async = { &ibv->mutex, &ibv->cond, &ibv->events_completed,
				    &srq->async_taken };

	sv_lock();
	if (srq->users) {
		sv_unlock();
		return EBUSY;
	}
	sv_pd_of(ibv->pd)->users--;
	sv_unlock();
	sv_unacked_wait(&sv_context_of(ibv->context)->async, srq, &async);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(srq->rq.wqe);
	free(srq->rq.sge);
	free(srq);
	return 0;
}
