/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between two connection managers, and their effect on an id. Messages from one process to
 * another arrive in order and are never lost, unless a process ends. Lock held. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cm.h"
#include "tools/softverbs/cm_hooks.h"
#include "tools/softverbs/link.h"
#include "tools/softverbs/qp.h"

unsigned cm_private_max(bool iwarp, enum cm_type type)
{
	if (iwarp)
		return CM_IWARP_DATA;
	switch (type) {
	case CM_REQ:
		return CM_IB_REQ_DATA;
	case CM_REP:
		return CM_IB_REP_DATA;
	case CM_REJ:
		return CM_IB_REJ_DATA;
	default:
		return 0;
	}
}

static int send_to(uint32_t slot, enum cm_type type, const struct cm_msg *m)
{
	struct sv_link *l;
	int err = slot < SV_SLOTS ? sv_link_get(slot, &l) : -ENOTCONN;

	return err ? err : sv_link_send_cm(l, type, m, sizeof(*m));
}

int cm_send(struct cm_id *c, enum cm_type type, struct cm_msg *m)
{
	struct cm_msg none = { 0 };

	if (!m)
		m = &none;
	m->from = c->number;
	m->to = c->peer_number;
	m->iwarp = cm_iwarp(c);
	return send_to(c->peer_slot, type, m);
}

void cm_part(struct cm_id *c)
{
	struct cm_msg m = { .status = cm_iwarp(c) ? -ECONNREFUSED : CM_REJ_CONSUMER };
	enum cm_state was = c->state;

	c->state = CM_CLOSED;
	switch (was) {
	case CM_REQ_SENT:
		m.to = 0;
		/* fall through */
	case CM_REQ_RCVD:
	case CM_REP_RCVD:
		cm_send(c, CM_REJ, &m);
		break;
	case CM_REP_SENT:
	case CM_CONNECTED:
		cm_send(c, CM_DREQ, &m);
		break;
	case CM_DREQ_RCVD:
		cm_send(c, CM_DREP, &m);
		break;
	default:
		break;
	}
	c->peer_slot = CM_NO_SLOT;
}

static void timewait_over(void *arg)
{
	cm_post(arg, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
}

void cm_timewait(struct cm_id *c)
{
	c->state = CM_CLOSED;
	c->peer_slot = CM_NO_SLOT;
	sv_timer_start(&c->timer, CM_TIMEWAIT_US, timewait_over, c);
}

/* The application has not taken the request yet: accepting it will fail. */
static bool is_untaken(struct cm_id *c)
{
	if (!c->listener)
		return false;
	c->state = CM_CLOSED;
	c->peer_slot = CM_NO_SLOT;
	return true;
}

/* Over iWARP the connection is the stream, so the queue pair ends with it. Over InfiniBand the
 * application ends it. */
static void cm_post_disconnected(struct cm_id *c, int status)
{
	struct sv_qp *qp = cm_iwarp(c) && c->qpn ? sv_qp_find(c->qpn) : NULL;

	if (qp)
		sv_qp_error(qp);
	if (!c->disconnected)
		cm_post(c, RDMA_CM_EVENT_DISCONNECTED, status, NULL);
	c->disconnected = true;
}

static struct cm_id *new_request(struct cm_id *listener, uint32_t slot, const struct cm_msg *m)
{
	struct cm_id *c =
		cm_id_new((struct cm_channel *)listener->pub.channel, listener->pub.context);

	if (!c)
		return NULL;
	c->listener = listener->number;
	c->state = CM_REQ_RCVD;
	c->peer_slot = slot;
	c->peer_number = m->from;
	c->peer_qpn = m->qpn;
	c->responder_resources = m->initiator_depth;
	c->initiator_depth = m->responder_resources;
	c->retry_count = m->retry_count;
	c->rnr_retry_count = m->rnr_retry_count;
	memcpy(cm_src(c), &m->dst, sizeof(m->dst));
	memcpy(cm_dst(c), &m->src, sizeof(m->src));
	return c;
}

static void on_req(uint32_t slot, const struct cm_msg *m)
{
	struct cm_id *listener = cm_id_find(m->to);
	struct cm_msg no = { .to = m->from, .iwarp = m->iwarp, .status = CM_REJ_INVALID_SERVICE };

	if (listener && listener->state == CM_LISTENING) {
		no.status = CM_REJ_CONSUMER;
		struct cm_id *c = NULL;
		if (listener->requests < listener->backlog)
			c = new_request(listener, slot, m);
		if (c && cm_post(c, RDMA_CM_EVENT_CONNECT_REQUEST, 0, m) == 0) {
			listener->requests++;
			return;
		}
		if (c) {
			LIST_REMOVE(c, link);
			cm_id_free(c);
		}
	}
	if (m->iwarp)
		no.status = -ECONNREFUSED;
	send_to(slot, CM_REJ, &no);
}

static void on_rep(struct cm_id *c, const struct cm_msg *m)
{
	if (c->state != CM_REQ_SENT)
		return;
	c->state = CM_REP_RCVD;
	c->peer_number = m->from;
	c->peer_qpn = m->qpn;
	c->responder_resources = m->initiator_depth;
	c->initiator_depth = m->responder_resources;
	c->rnr_retry_count = m->rnr_retry_count;
	cm_post(c, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, m);
}

static void on_rtu(struct cm_id *c)
{
	if (c->state != CM_REP_SENT)
		return;
	c->state = CM_CONNECTED;
	cm_post(c, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

static void on_rej(struct cm_id *c, const struct cm_msg *m)
{
	if (is_untaken(c))
		return;
	if (c->state != CM_REQ_SENT && c->state != CM_REP_SENT && c->state != CM_REQ_RCVD)
		return;
	c->state = CM_CLOSED;
	c->peer_slot = CM_NO_SLOT;
	cm_post(c, RDMA_CM_EVENT_REJECTED, m->status, m);
}

static void on_dreq(struct cm_id *c)
{
	switch (c->state) {
	case CM_DREQ_SENT: /* both ends disconnect at once, so neither waits for an answer */
		cm_post_disconnected(c, 0);
		cm_timewait(c);
		break;
	case CM_REP_RCVD:
	case CM_REP_SENT:
	case CM_CONNECTED:
		c->state = CM_DREQ_RCVD;
		cm_post_disconnected(c, 0);
		break;
	default:
		break;
	}
}

static void on_drep(struct cm_id *c)
{
	if (c->state != CM_DREQ_SENT)
		return;
	cm_post_disconnected(c, 0);
	cm_timewait(c);
}

static bool cm_addr_is_inet(const union cm_addr *a)
{
	return a->sa.sa_family == AF_INET || a->sa.sa_family == AF_INET6;
}

void sv_cm_receive(struct sv_link *l, uint8_t type, const void *data, size_t len)
{
	struct cm_msg m;

	if (!cm_root() || len != sizeof(m) || l->slot >= SV_SLOTS)
		return;
	memcpy(&m, data, sizeof(m));
	if (m.private_len > cm_private_max(m.iwarp, type))
		return;
	if (type == CM_REQ) {
		if (cm_addr_is_inet(&m.src) && cm_addr_is_inet(&m.dst))
			on_req(l->slot, &m);
		return;
	}
	struct cm_id *c = m.to ? cm_id_find(m.to) : cm_id_find_peer(l->slot, m.from);
	if (!c || c->peer_slot != l->slot)
		return;
	if (type == CM_REP)
		on_rep(c, &m);
	else if (type == CM_RTU)
		on_rtu(c);
	else if (type == CM_REJ)
		on_rej(c, &m);
	else if (type == CM_DREQ)
		on_dreq(c);
	else if (type == CM_DREP)
		on_drep(c);
}

static void peer_lost(struct cm_id *c)
{
	if (is_untaken(c))
		return;
	switch (c->state) {
	case CM_REQ_SENT:
	case CM_REP_SENT:
		c->state = CM_CLOSED;
		c->peer_slot = CM_NO_SLOT;
		cm_post(c, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		break;
	case CM_REP_RCVD:
	case CM_CONNECTED:
	case CM_DREQ_SENT:
	case CM_DREQ_RCVD:
		cm_post_disconnected(c, 0);
		cm_timewait(c);
		break;
	default:
		c->state = CM_CLOSED;
		c->peer_slot = CM_NO_SLOT;
		break;
	}
}

void sv_cm_link_lost(struct sv_link *l)
{
	struct sv_cm *cm = cm_root();
	struct cm_id *c;

	for (unsigned i = 0; cm && l->slot < SV_SLOTS && i < CM_BUCKETS; i++)
		LIST_FOREACH (c, &cm->ids[i], link)
			if (c->peer_slot == l->slot)
				peer_lost(c);
}

/* Both ends learn of the removal from their fabric, so no message is needed. */
void sv_cm_dropped(struct ibv_qp *qp)
{
	struct sv_cm *cm = cm_root();
	struct cm_id *c;

	for (unsigned i = 0; cm && i < CM_BUCKETS; i++)
		LIST_FOREACH (c, &cm->ids[i], link)
			if (c->qpn == qp->qp_num && c->peer_slot != CM_NO_SLOT)
				peer_lost(c);
}
