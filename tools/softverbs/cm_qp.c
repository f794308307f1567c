/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of ids: creates them, with defaults for the protection domain and completion queues,
 * and moves them through their states together with the connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_verbs.h>

#include "tools/softverbs/cm.h"

#define ACK_TIMEOUT 14 /* 4.096 us * 2^14 = 67 ms */
/* 0.64 ms. Over InfiniBand the kernel asks for 655 ms, which would only make tests slow. */
#define RNR_TIMER 12

static void attr_init(const struct cm_id *c, struct ibv_qp_attr *a, int *mask)
{
	a->pkey_index = 0;
	a->port_num = 1;
	a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (cm_iwarp(c))
		a->qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	else if (c->responder_resources)
		a->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
}

static void attr_rtr(const struct cm_id *c, struct ibv_qp_attr *a, int *mask)
{
	memset(&a->ah_attr, 0, sizeof(a->ah_attr));
	a->ah_attr.is_global = 1;
	a->ah_attr.port_num = 1;
	a->ah_attr.grh.dgid = c->pub.route.addr.addr.ibaddr.sgid;
	a->ah_attr.grh.hop_limit = 1;
	a->path_mtu = c->device->mtu;
	a->dest_qp_num = c->peer_qpn;
	a->rq_psn = 0;
	a->max_dest_rd_atomic = c->responder_resources;
	a->min_rnr_timer = RNR_TIMER;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void attr_rts(const struct cm_id *c, struct ibv_qp_attr *a, int *mask)
{
	a->sq_psn = 0;
	a->timeout = ACK_TIMEOUT;
	a->retry_cnt = c->retry_count;
	a->rnr_retry = c->rnr_retry_count;
	a->max_rd_atomic = c->initiator_depth;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

SV_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr,
				int *qp_attr_mask)
{
	struct cm_id *c = cm_id_of(id);

	if (!c->device)
		return cm_result(-EINVAL);
	switch (qp_attr->qp_state) {
	case IBV_QPS_INIT:
		attr_init(c, qp_attr, qp_attr_mask);
		return 0;
	case IBV_QPS_RTR:
		attr_rtr(c, qp_attr, qp_attr_mask);
		return 0;
	case IBV_QPS_RTS:
		attr_rts(c, qp_attr, qp_attr_mask);
		return 0;
	default:
		return cm_result(-EINVAL);
	}
}

static int cm_qp_set_state(struct cm_id *c, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = IBV_QP_STATE;

	if (state != IBV_QPS_ERR && rdma_init_qp_attr(&c->pub, &attr, &mask) < 0)
		return -errno;
	return -ibv_modify_qp(c->pub.qp, &attr, mask);
}

/* Sets INIT again, since the peer's access rights are known only now. */
int cm_qp_connect(struct cm_id *c)
{
	sv_lock();
	c->qpn = c->pub.qp->qp_num;
	sv_unlock();
	int err = cm_qp_set_state(c, IBV_QPS_INIT);

	if (!err)
		err = cm_qp_set_state(c, IBV_QPS_RTR);
	if (!err)
		err = cm_qp_set_state(c, IBV_QPS_RTS);
	return err;
}

int cm_qp_error(struct cm_id *c)
{
	return c->pub.qp ? cm_qp_set_state(c, IBV_QPS_ERR) : 0;
}

static int make_cq(struct rdma_cm_id *id, uint32_t depth, struct ibv_comp_channel **ch,
		   struct ibv_cq **cq)
{
	*ch = ibv_create_comp_channel(id->verbs);
	if (!*ch)
		return -errno;
	*cq = ibv_create_cq(id->verbs, depth ? depth : 1, id, *ch, 0);
	return *cq ? 0 : -errno;
}

static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->send_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	id->send_cq = id->recv_cq = NULL;
	id->send_cq_channel = id->recv_cq_channel = NULL;
}

static int fill_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err = 0;

	if (!attr->send_cq && !id->send_cq)
		err = make_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
	if (!err && !attr->recv_cq && !id->recv_cq)
		err = make_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq);
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->srq)
		attr->srq = id->srq;
	return err;
}

static int create_qp(struct cm_id *c, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &c->pub;

	if (id->qp || !c->device || attr->qp_type != IBV_QPT_RC)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd ? id->pd : c->device->pd;
	}
	if (attr->pd->context != id->verbs)
		return -EINVAL;
	int err = fill_cqs(id, attr);
	if (!err) {
		id->qp = ibv_create_qp_ex(id->verbs, attr);
		err = id->qp ? cm_qp_set_state(c, IBV_QPS_INIT) : -errno;
	}
	if (!err) {
		id->pd = id->qp->pd;
		return 0;
	}
	if (id->qp)
		ibv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
	return err;
}

SV_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	return cm_result(create_qp(cm_id_of(id), qp_init_attr));
}

SV_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = qp_init_attr->qp_context,
		.send_cq = qp_init_attr->send_cq,
		.recv_cq = qp_init_attr->recv_cq,
		.srq = qp_init_attr->srq,
		.cap = qp_init_attr->cap,
		.qp_type = qp_init_attr->qp_type,
		.sq_sig_all = qp_init_attr->sq_sig_all,
		.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0,
		.pd = pd,
	};
	int err = create_qp(cm_id_of(id), &ex);

	if (!err)
		qp_init_attr->cap = ex.cap;
	return cm_result(err);
}

SV_EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	sv_lock();
	cm_id_of(id)->qpn = 0;
	sv_unlock();
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
}

SV_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_srq_init_attr *attr)
{
	if (!pd)
		pd = id->pd;
	if (!pd)
		return cm_result(-EINVAL);
	id->srq = ibv_create_srq(pd, attr);
	if (!id->srq)
		return -1;
	id->pd = pd;
	return 0;
}

SV_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
}
