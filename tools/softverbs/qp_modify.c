/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes the states and attributes of a queue pair. */
#include <errno.h>
#include <stdlib.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/qp.h"

#define BIT(state) (1u << (state))
#define ANYWHERE (BIT(IBV_QPS_RESET) | BIT(IBV_QPS_ERR))

/* Valid transitions between states. */
static const unsigned successors[] = {
	[IBV_QPS_RESET] = BIT(IBV_QPS_RESET) | BIT(IBV_QPS_INIT) | BIT(IBV_QPS_ERR),
	[IBV_QPS_INIT] = ANYWHERE | BIT(IBV_QPS_INIT) | BIT(IBV_QPS_RTR),
	[IBV_QPS_RTR] = ANYWHERE | BIT(IBV_QPS_RTS),
	[IBV_QPS_RTS] = ANYWHERE | BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD),
	[IBV_QPS_SQD] = ANYWHERE | BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD),
	[IBV_QPS_SQE] = ANYWHERE | BIT(IBV_QPS_RTS),
	[IBV_QPS_ERR] = ANYWHERE,
};

static int qp_modify_check(const struct sv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = qp->ibv.state;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;

	if ((unsigned)to > IBV_QPS_ERR)
		return EINVAL;
	if (mask & IBV_QP_STATE && !(successors[from] & BIT(to)))
		return EINVAL;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > SV_MAX_RD_ATOMIC)
		return EINVAL;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > SV_MAX_RD_ATOMIC)
		return EINVAL;
	if (mask & IBV_QP_PORT && attr->port_num != 1)
		return EINVAL;
	if (to == IBV_QPS_RTR && from == IBV_QPS_INIT && !(mask & IBV_QP_DEST_QPN))
		return EINVAL;
	return 0;
}

#define COPY(bit, field)                                                                           \
	do {                                                                                       \
		if (mask & (bit))                                                                  \
			to->field = from->field;                                                   \
	} while (0)

static void qp_modify_copy_attr(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	COPY(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	COPY(IBV_QP_PKEY_INDEX, pkey_index);
	COPY(IBV_QP_PORT, port_num);
	COPY(IBV_QP_QKEY, qkey);
	COPY(IBV_QP_AV, ah_attr);
	COPY(IBV_QP_PATH_MTU, path_mtu);
	COPY(IBV_QP_TIMEOUT, timeout);
	COPY(IBV_QP_RETRY_CNT, retry_cnt);
	COPY(IBV_QP_RNR_RETRY, rnr_retry);
	COPY(IBV_QP_RQ_PSN, rq_psn);
	COPY(IBV_QP_SQ_PSN, sq_psn);
	COPY(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	COPY(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	COPY(IBV_QP_DEST_QPN, dest_qp_num);
}

/* Allocates entries for Reads of the peer; at least one, which stays unused if none is allowed. */
static int connect_qp(struct sv_qp *qp)
{
	uint32_t n = qp->attr.max_dest_rd_atomic;
	struct sv_read *reads = calloc(n ? n : 1, sizeof(*reads));

	if (!reads)
		return ENOMEM;
	free(qp->rx.reads);
	qp->rx.reads = reads;
	qp->rx.max_reads = n;
	qp->rx.first = qp->rx.nreads = 0;
	qp->ordinal = ++sv_fabric.qps.connected;
	/* An absent peer is detected when a request is sent to it. */
	qp->peer_gone = sv_link_get(qp->attr.dest_qp_num >> 16, &qp->link) != 0;
	if (qp->peer_gone)
		qp->link = NULL;
	return 0;
}

static int qp_enter_state(struct sv_qp *qp, enum ibv_qp_state to)
{
	enum ibv_qp_state from = qp->ibv.state;

	if (to == IBV_QPS_RESET) {
		sv_qp_reset(qp);
		return 0;
	}
	if (to == IBV_QPS_ERR) {
		sv_qp_error(qp);
		return 0;
	}
	if (to == IBV_QPS_RTR && from == IBV_QPS_INIT) {
		int err = connect_qp(qp);
		if (err)
			return err;
	}
	qp->ibv.state = to;
	if (to == IBV_QPS_RTS && from != IBV_QPS_RTS) {
		qp->sq.rnr_left = qp->attr.rnr_retry;
		sv_qp_kick(qp);
	}
	if (to == IBV_QPS_SQD && qp->attr.en_sqd_async_notify)
		sv_async(qp->ctx, IBV_EVENT_SQ_DRAINED, qp);
	return 0;
}

SV_EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct sv_qp *qp = sv_qp_of(ibv);

	sv_lock();
	int err = qp_modify_check(qp, attr, mask);
	if (!err && qp->ctx->dev->removed && mask & IBV_QP_STATE && attr->qp_state != IBV_QPS_ERR &&
	    attr->qp_state != IBV_QPS_RESET)
		err = EIO;
	if (!err) {
		qp_modify_copy_attr(&qp->attr, attr, mask);
		qp->attr.en_sqd_async_notify =
			mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify;
	}
	if (!err && mask & IBV_QP_STATE)
		err = qp_enter_state(qp, attr->qp_state);
	sv_unlock();
	return err;
}

SV_EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
			   struct ibv_qp_init_attr *init)
{
	struct sv_qp *qp = sv_qp_of(ibv);

	(void)mask;
	sv_lock();
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = ibv->state;
	attr->cap = qp->cap;
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibv->qp_context,
		.send_cq = ibv->send_cq,
		.recv_cq = ibv->recv_cq,
		.srq = ibv->srq,
		.cap = qp->cap,
		.qp_type = ibv->qp_type,
		.sq_sig_all = qp->sig_all,
	};
	sv_unlock();
	return 0;
}

SV_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

SV_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

SV_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	ece->vendor_id = ece->options = ece->comp_mask = 0;
	return 0;
}
