/* SPDX-License-Identifier: BSD-2-Clause */
/* Connect, accept, reject, establish, disconnect. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cm.h"

#define LISTENER_POLL_US 10000
#define RETRIES_MAX 7 /* a field of three bits on the wire */

static uint8_t min_u8(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* 255 asks for the device's maximum. */
static int choose_depths(struct cm_id *c, const struct rdma_conn_param *p, unsigned most_resources,
			 unsigned most_depth)
{
	const struct cm_device *d = c->device;

	if (p && p->responder_resources != RDMA_MAX_RESP_RES) {
		if (c->pub.qp && p->responder_resources > d->max_responder_resources)
			return -EINVAL;
		c->responder_resources = p->responder_resources;
	} else {
		c->responder_resources = min_u8(most_resources, d->max_responder_resources);
	}
	if (p && p->initiator_depth != RDMA_MAX_INIT_DEPTH) {
		if (c->pub.qp && p->initiator_depth > d->max_initiator_depth)
			return -EINVAL;
		c->initiator_depth = p->initiator_depth;
	} else {
		c->initiator_depth = min_u8(most_depth, d->max_initiator_depth);
	}
	return 0;
}

static void fill_param(struct cm_msg *m, const struct cm_id *c, const struct rdma_conn_param *p)
{
	m->responder_resources = c->responder_resources;
	m->initiator_depth = c->initiator_depth;
	m->retry_count = p ? min_u8(p->retry_count, RETRIES_MAX) : RETRIES_MAX;
	m->rnr_retry_count = p ? min_u8(p->rnr_retry_count, RETRIES_MAX) : RETRIES_MAX;
	m->flow_control = p ? p->flow_control : 1;
	m->qpn = c->pub.qp ? c->pub.qp->qp_num : p ? p->qp_num : 0;
	m->srq = c->pub.qp ? c->pub.qp->srq != NULL : p ? p->srq : 0;
}

static int add_private(struct cm_msg *m, const void *data, size_t len, unsigned max)
{
	if (!data)
		len = 0;
	if (max > sizeof(m->private_data))
		max = sizeof(m->private_data);
	if (m->private_len + len > max)
		return -EINVAL;
	if (len)
		memcpy(m->private_data + m->private_len, data, len);
	m->private_len += len;
	return 0;
}

/* Reports that no process listens at the destination. */
static int cm_post_refused(struct cm_id *c)
{
	struct cm_msg m = { .iwarp = cm_iwarp(c) };

	c->state = CM_CLOSED;
	c->peer_slot = CM_NO_SLOT;
	return cm_post(c, RDMA_CM_EVENT_REJECTED, m.iwarp ? -ECONNREFUSED : CM_REJ_INVALID_SERVICE,
		       &m);
}

static int cm_send_request(struct cm_id *c, struct cm_msg *m)
{
	uint32_t listener;
	int err = cm_port_lookup(cm_dst(c), &c->peer_slot, &listener);

	if (err)
		return err;
	c->peer_number = listener;
	err = cm_send(c, CM_REQ, m);
	/* The reply carries the number of the peer's new id; until then there is none. */
	c->peer_number = 0;
	if (err)
		c->peer_slot = CM_NO_SLOT;
	return err;
}

static void try_again(void *arg)
{
	struct cm_id *c = arg;
	struct cm_msg *m = c->request;

	if (cm_send_request(c, m) == 0) {
		free(m);
		c->request = NULL;
	} else if (sv_now() < c->patience) {
		sv_timer_start(&c->timer, LISTENER_POLL_US, try_again, c);
	} else {
		cm_post_refused(c);
	}
}

/* Waits up to SOFTVERBS_LISTEN_WAIT_MS for a listener. Some programs connect as soon as the peer
 * announces that it will listen, and rely on the delay of a network. */
static int wait_for_listener(struct cm_id *c, const struct cm_msg *m)
{
	uint64_t ms = strtoul(sv_env("SOFTVERBS_LISTEN_WAIT_MS", "0"), NULL, 10);

	if (!ms)
		return cm_post_refused(c);
	c->request = malloc(sizeof(*m));
	if (!c->request)
		return -ENOMEM;
	*c->request = *m;
	c->patience = sv_now() + ms * 1000000;
	sv_timer_start(&c->timer, LISTENER_POLL_US, try_again, c);
	return 0;
}

static int connect_locked(struct cm_id *c, const struct rdma_conn_param *p)
{
	struct cm_msg m = { .src = *cm_src(c), .dst = *cm_dst(c) };
	unsigned max = cm_private_max(cm_iwarp(c), CM_REQ);

	if (c->state != CM_ROUTE_RESOLVED)
		return -EINVAL;
	int err = choose_depths(c, p, 255, 255);
	if (!err && c->connect_data)
		err = add_private(&m, c->connect_data, c->connect_len, max);
	if (!err && p)
		err = add_private(&m, p->private_data, p->private_data_len, max);
	if (err)
		return err;
	fill_param(&m, c, p);
	c->retry_count = m.retry_count;
	c->state = CM_REQ_SENT;
	if (cm_send_request(c, &m) == 0)
		return 0;
	return wait_for_listener(c, &m);
}

SV_EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct cm_id *c = cm_id_of(id);

	sv_lock();
	int err = connect_locked(c, conn_param);
	sv_unlock();
	if (!err)
		err = cm_complete(c);
	return cm_result(err);
}

static int cm_send_reply(struct cm_id *c, const struct rdma_conn_param *p)
{
	struct cm_msg m = { 0 };
	int err = 0;

	if (p)
		err = add_private(&m, p->private_data, p->private_data_len,
				  cm_private_max(cm_iwarp(c), CM_REP));
	if (err)
		return err;
	fill_param(&m, c, p);
	sv_lock();
	if (c->state == CM_REQ_RCVD) {
		c->state = CM_REP_SENT;
		err = cm_send(c, CM_REP, &m);
	} else {
		err = -EINVAL;
	}
	sv_unlock();
	return err;
}

static int accept_request(struct cm_id *c, const struct rdma_conn_param *p)
{
	sv_lock();
	int err = c->state == CM_REQ_RCVD ? 0 : -EINVAL;
	if (!err)
		err = choose_depths(c, p, c->responder_resources, c->initiator_depth);
	sv_unlock();
	if (!err && c->pub.qp)
		err = cm_qp_connect(c);
	if (!err)
		err = cm_send_reply(c, p);
	if (err && c->pub.qp)
		cm_qp_error(c);
	return err;
}

SV_EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct cm_id *c = cm_id_of(id);
	int err = accept_request(c, conn_param);

	if (!err)
		err = cm_complete(c);
	return cm_result(err);
}

SV_EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	struct cm_id *c = cm_id_of(id);
	struct cm_msg m = { .status = cm_iwarp(c) ? -ECONNREFUSED : CM_REJ_CONSUMER };
	int err = add_private(&m, private_data, private_data_len,
			      cm_private_max(cm_iwarp(c), CM_REJ));

	sv_lock();
	if (!err && c->state != CM_REQ_RCVD && c->state != CM_REP_RCVD)
		err = -EINVAL;
	if (!err) {
		c->state = CM_CLOSED;
		cm_send(c, CM_REJ, &m);
		c->peer_slot = CM_NO_SLOT;
	}
	sv_unlock();
	return cm_result(err);
}

SV_EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	struct cm_id *c = cm_id_of(id);
	int err = -EINVAL;

	if (id->qp)
		return cm_result(err);
	sv_lock();
	if (c->state == CM_REP_RCVD) {
		c->state = CM_CONNECTED;
		err = cm_send(c, CM_RTU, NULL);
	}
	sv_unlock();
	return cm_result(err);
}

SV_EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct cm_id *c = cm_id_of(id);
	int err = event == IBV_EVENT_COMM_EST ? 0 : -EINVAL;

	sv_lock();
	if (!err && c->state == CM_CONNECTED)
		err = -EISCONN;
	else if (!err && c->state != CM_REP_SENT)
		err = -EINVAL;
	if (!err) {
		c->state = CM_CONNECTED;
		err = cm_post(c, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	}
	sv_unlock();
	return cm_result(err);
}

static void cm_disconnect_timeout(void *arg)
{
	struct cm_id *c = arg;

	if (c->state != CM_DREQ_SENT)
		return;
	if (!c->disconnected)
		cm_post(c, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, NULL);
	c->disconnected = true;
	cm_timewait(c);
}

static int disconnect_locked(struct cm_id *c)
{
	switch (c->state) {
	case CM_REP_RCVD:
	case CM_REP_SENT:
	case CM_CONNECTED:
		c->state = CM_DREQ_SENT;
		sv_timer_start(&c->timer, CM_DREQ_TIMEOUT_US, cm_disconnect_timeout, c);
		cm_send(c, CM_DREQ, NULL);
		return 0;
	case CM_DREQ_RCVD:
		c->state = CM_CLOSED;
		cm_send(c, CM_DREP, NULL);
		cm_timewait(c);
		return 0;
	case CM_DREQ_SENT:
	case CM_CLOSED:
		return 0;
	default:
		return -EINVAL;
	}
}

SV_EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	struct cm_id *c = cm_id_of(id);
	struct sv_cm *cm = cm_root();

	if (!cm)
		return cm_result(-EINVAL);
	cm_qp_error(c);
	sv_lock();
	int err = disconnect_locked(c);
	bool will_come = c->state == CM_DREQ_SENT;
	sv_unlock();
	/* Events that were taken already are not waited for. */
	pthread_mutex_lock(&cm->ack_lock);
	will_come |= c->posted - c->acked > (id->event ? 1u : 0u);
	pthread_mutex_unlock(&cm->ack_lock);
	if (!err && will_come)
		err = cm_complete(c);
	return cm_result(err);
}
