/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection: set-up in steps, sending and receiving. All that is opened is released by
 * cf_conn_close() alone, which takes a connection in any state. */
#include "tools/conform/conform_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "lib/clock.h"

#define SEND_SLOT 8192u /* longer messages get memory of their own */
#define SIW_VENDOR 0x626d74u
#define CLOSE_MS 200
#define LOOK_MS 100
#define PORTS_TRIED 8

int64_t cf_now_ms(void)
{
	return (int64_t)rn_now_ms();
}

static int closed(struct cf_conn *c, int rc, const char *why)
{
	if (!c->closed)
		snprintf(c->why, sizeof(c->why), "%s", why);
	c->closed = true;
	return rc;
}

static int remaining(int64_t deadline)
{
	int64_t left = deadline - cf_now_ms();

	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Waits for one event of the connection manager; 0 if it is the expected one. */
static int wait_event(struct cf_conn *c, enum rdma_cm_event_type want, int64_t deadline)
{
	struct pollfd p = { .fd = c->events->fd, .events = POLLIN };
	struct rdma_cm_event *ev;

	while (rdma_get_cm_event(c->events, &ev) < 0) {
		if (errno != EAGAIN)
			return closed(c, -errno, "event channel");
		if (poll(&p, 1, remaining(deadline)) <= 0)
			return -ETIMEDOUT;
	}
	enum rdma_cm_event_type got = ev->event;
	if (got == RDMA_CM_EVENT_ESTABLISHED && ev->param.conn.private_data) {
		c->server_data_len =
			rn_min(ev->param.conn.private_data_len, sizeof(c->server_data));
		memcpy(c->server_data, ev->param.conn.private_data, c->server_data_len);
	}
	rdma_ack_cm_event(ev);
	if (got == want)
		return 0;
	return closed(c, got == RDMA_CM_EVENT_REJECTED ? -ECONNREFUSED : -ENETUNREACH,
		      rdma_event_str(got));
}

static int cf_conn_resolve(struct cf_conn *c, const char *host, const char *port, int64_t deadline)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;

	c->events = rdma_create_event_channel();
	if (!c->events)
		return closed(c, -errno, "no RDMA event channel");
	fcntl(c->events->fd, F_SETFL, fcntl(c->events->fd, F_GETFL) | O_NONBLOCK);
	if (rdma_create_id(c->events, &c->id, c, RDMA_PS_TCP) < 0)
		return closed(c, -errno, "no RDMA identifier");
	if (getaddrinfo(host, port, &hints, &ai) != 0)
		return closed(c, -EINVAL, "no such host or port");
	int rc = 0;
	if (rdma_resolve_addr(c->id, NULL, ai->ai_addr, remaining(deadline)) < 0)
		rc = closed(c, -errno, "no RDMA device reaches this address");
	freeaddrinfo(ai);
	if (!rc)
		rc = wait_event(c, RDMA_CM_EVENT_ADDR_RESOLVED, deadline);
	if (!rc && rdma_resolve_route(c->id, remaining(deadline)) < 0)
		rc = closed(c, -errno, "no route");
	if (!rc)
		rc = wait_event(c, RDMA_CM_EVENT_ROUTE_RESOLVED, deadline);
	return rc;
}

static int make_queues(struct cf_conn *c)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { c->o.sends, c->o.recvs, 1, 1, 0 },
	};

	c->pd = ibv_alloc_pd(c->id->verbs);
	c->comp = ibv_create_comp_channel(c->id->verbs);
	if (!c->pd || !c->comp)
		return closed(c, -ENOMEM, "no protection domain or completion channel");
	fcntl(c->comp->fd, F_SETFL, fcntl(c->comp->fd, F_GETFL) | O_NONBLOCK);
	c->send_cq = ibv_create_cq(c->id->verbs, c->o.sends + 1, NULL, c->comp, 0);
	c->recv_cq = ibv_create_cq(c->id->verbs, c->o.recvs + 1, NULL, c->comp, 0);
	if (!c->send_cq || !c->recv_cq)
		return closed(c, -ENOMEM, "no completion queue");
	attr.send_cq = c->send_cq;
	attr.recv_cq = c->recv_cq;
	if (rdma_create_qp(c->id, c->pd, &attr) < 0)
		return closed(c, -errno, "no queue pair");
	return 0;
}

static int cf_conn_post_recv(struct cf_conn *c, unsigned slot)
{
	struct ibv_sge sge = { (uintptr_t)c->recv_mem + slot * c->recv_size, c->recv_size,
			       c->recv_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(c->id->qp, &wr, &bad) ? -EIO : 0;
}

static int make_buffers(struct cf_conn *c)
{
	size_t recv_len = c->recv_size * c->o.recvs, send_len = (size_t)SEND_SLOT * c->o.sends;

	c->recv_mem = calloc(1, recv_len);
	c->send_mem = calloc(1, send_len);
	if (!c->recv_mem || !c->send_mem)
		return closed(c, -ENOMEM, "no memory");
	c->recv_mr = ibv_reg_mr(c->pd, c->recv_mem, recv_len, IBV_ACCESS_LOCAL_WRITE);
	c->send_mr = ibv_reg_mr(c->pd, c->send_mem, send_len, 0);
	if (!c->recv_mr || !c->send_mr)
		return closed(c, -ENOMEM, "memory registration (see ulimit -l)");
	for (unsigned i = 0; i < c->o.recvs; i++)
		if (cf_conn_post_recv(c, i) < 0)
			return closed(c, -EIO, "posting a Receive");
	return 0;
}

int cf_conn_prepare(struct cf_conn *c, const char *host, const char *port,
		    const struct cf_conn_options *o, int64_t deadline)
{
	memset(c, 0, sizeof(*c));
	c->o = *o;
	c->last_slot = -1;
	if (!c->o.recvs)
		c->o.recvs = 64;
	if (!c->o.sends)
		c->o.sends = 32;
	if (!c->o.inline_size)
		c->o.inline_size = CF_INLINE_MIN;
	c->recv_size = c->o.recv_size	 ? c->o.recv_size
		       : c->o.no_private ? CF_INLINE_MIN
					 : c->o.inline_size;
	int rc = cf_conn_resolve(c, host, port, deadline);
	if (!rc)
		rc = make_queues(c);
	if (!rc)
		rc = make_buffers(c);
	if (rc)
		cf_conn_close(c, false);
	return rc;
}

int cf_conn_request(struct cf_conn *c)
{
	uint8_t usual[CF_PRIVATE_SIZE];
	struct rdma_conn_param param = {
		.private_data = c->o.private_data,
		.private_data_len = c->o.private_len,
		.responder_resources = c->o.no_read_depth ? 0
				       : c->o.read_depth  ? c->o.read_depth
							  : 16,
		.retry_count = 6,
		.rnr_retry_count = c->o.rnr_retry,
	};
	struct ibv_device_attr attr;

	if (ibv_query_device(c->id->verbs, &attr) == 0) {
		c->is_siw = attr.vendor_id == SIW_VENDOR;
		if (param.responder_resources > attr.max_qp_rd_atom)
			param.responder_resources = attr.max_qp_rd_atom;
	}
	cf_private_encode(usual, c->o.invalidate, c->o.inline_size, c->o.inline_size);
	if (!c->o.private_data && !c->o.no_private) {
		param.private_data = usual;
		param.private_data_len = sizeof(usual);
	}
	return rdma_connect(c->id, &param) < 0 ? closed(c, -errno, "rdma_connect") : 0;
}

/* Both private messages together decide the thresholds (RFC 8797 sections 4.1, 4.2 and 5.1). */
static void agree(struct cf_conn *c)
{
	struct cf_private ours = { false, false, 0, 0, CF_INLINE_MIN, CF_INLINE_MIN };
	uint8_t usual[CF_PRIVATE_SIZE];

	cf_private_encode(usual, c->o.invalidate, c->o.inline_size, c->o.inline_size);
	if (c->o.private_data)
		cf_private_find(c->o.private_data, c->o.private_len, &ours);
	else if (!c->o.no_private)
		cf_private_find(usual, sizeof(usual), &ours);
	cf_private_find(c->server_data, c->server_data_len, &c->server);
	c->call_inline = rn_min(ours.send_size, c->server.recv_size);
	c->reply_inline = rn_min(ours.recv_size, c->server.send_size);
	c->may_invalidate = ours.invalidate && c->server.invalidate;
}

int cf_conn_established(struct cf_conn *c, int64_t deadline)
{
	int rc = wait_event(c, RDMA_CM_EVENT_ESTABLISHED, deadline);

	if (rc)
		return rc;
	c->established = true;
	agree(c);
	return 0;
}

static int cf_conn_open_once(struct cf_conn *c, const char *host, const char *port,
			     const struct cf_conn_options *o, int64_t deadline)
{
	int rc = cf_conn_prepare(c, host, port, o, deadline);

	if (rc)
		return rc;
	rc = cf_conn_request(c);
	if (!rc)
		rc = cf_conn_established(c, deadline);
	if (rc)
		cf_conn_close(c, false);
	return rc;
}

/*
 * The connection manager picks any local port that no identifier has. siw connects by TCP, which may still have that port's
 * last connection to the server in TIME_WAIT, and refuses before anything is sent. Another port will do.
 */
int cf_conn_open(struct cf_conn *c, const char *host, const char *port,
		 const struct cf_conn_options *o, int64_t deadline)
{
	int rc = cf_conn_open_once(c, host, port, o, deadline);

	for (int try = 1; rc == -EADDRINUSE && try < PORTS_TRIED; try++)
		rc = cf_conn_open_once(c, host, port, o, deadline);
	return rc;
}

/* Windows keep the queue pair that bound them: rxe waits for them before it destroys it. */
static void free_memory_windows(struct cf_conn *c)
{
	for (struct cf_window *w = c->windows; w; w = w->next) {
		if (w->mw)
			ibv_dealloc_mw(w->mw);
		w->mw = NULL;
	}
}

static void free_windows(struct cf_conn *c)
{
	struct cf_window *w;

	while ((w = c->windows)) {
		c->windows = w->next;
		if (w->bindable)
			ibv_dereg_mr(w->bindable);
		ibv_dereg_mr(w->mr);
		free(w->block);
		free(w);
	}
}

/* The reason for closing stays readable. */
void cf_conn_close(struct cf_conn *c, bool polite)
{
	if (polite && c->established && rdma_disconnect(c->id) == 0 && !c->closed)
		wait_event(c, RDMA_CM_EVENT_DISCONNECTED, cf_now_ms() + CLOSE_MS);
	c->closed = true;
	c->established = false;
	free_memory_windows(c);
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id);
	free_windows(c);
	if (c->recv_mr)
		ibv_dereg_mr(c->recv_mr);
	if (c->send_mr)
		ibv_dereg_mr(c->send_mr);
	if (c->send_cq)
		ibv_destroy_cq(c->send_cq);
	if (c->recv_cq)
		ibv_destroy_cq(c->recv_cq);
	if (c->comp)
		ibv_destroy_comp_channel(c->comp);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	if (c->id)
		rdma_destroy_id(c->id);
	if (c->events)
		rdma_destroy_event_channel(c->events);
	free(c->recv_mem);
	free(c->send_mem);
	c->recv_mr = c->send_mr = NULL;
	c->send_cq = c->recv_cq = NULL;
	c->comp = NULL;
	c->pd = NULL;
	c->id = NULL;
	c->events = NULL;
	c->recv_mem = c->send_mem = NULL;
}

/* ---- messages ---------------------------------------------------------------------------------
 */

static void reap_sends(struct cf_conn *c)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(c->send_cq, 1, &wc) > 0) {
		c->sends_busy--;
		if (wc.status != IBV_WC_SUCCESS)
			closed(c, 0, ibv_wc_status_str(wc.status));
	}
}

static void look_at_events(struct cf_conn *c)
{
	struct rdma_cm_event *ev;

	while (rdma_get_cm_event(c->events, &ev) == 0) {
		enum rdma_cm_event_type got = ev->event;
		rdma_ack_cm_event(ev);
		if (got != RDMA_CM_EVENT_ESTABLISHED && got != RDMA_CM_EVENT_ADDR_CHANGE)
			closed(c, 0, rdma_event_str(got));
	}
}

/*
 * siw as the server's device may miss a message that arrives while its side of the connection is
 * being set up, until more arrives: the first message of a connection can wait for ever. An RDMA
 * Write of no bytes makes siw look again, and no server sees it.
 */
static void nudge(struct cf_conn *c)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (c->is_siw && !c->heard && !c->closed && c->sends_busy < c->o.sends &&
	    ibv_post_send(c->id->qp, &wr, &bad) == 0)
		c->sends_busy++;
}

/* Waits until something may have completed or happened, or the deadline. Not for long, since siw
 * can complete a work request without an event. */
static void wait_for_anything(struct cf_conn *c, int64_t deadline)
{
	struct pollfd p[2] = { { .fd = c->comp->fd, .events = POLLIN },
			       { .fd = c->events->fd, .events = POLLIN } };
	struct ibv_cq *cq;
	void *ctx;

	if (poll(p, 2, rn_min(remaining(deadline), LOOK_MS)) <= 0) {
		nudge(c);
		return;
	}
	while (ibv_get_cq_event(c->comp, &cq, &ctx) == 0)
		ibv_ack_cq_events(cq, 1);
	if (p[1].revents && c->established)
		look_at_events(c);
}

int cf_conn_send(struct cf_conn *c, const void *msg, size_t len, int64_t deadline)
{
	struct ibv_sge sge = { .length = len };

	reap_sends(c);
	while (!c->closed && c->sends_busy >= c->o.sends) {
		if (cf_now_ms() >= deadline)
			return -ETIMEDOUT;
		ibv_req_notify_cq(c->send_cq, 0);
		reap_sends(c);
		if (c->sends_busy >= c->o.sends)
			wait_for_anything(c, deadline);
		reap_sends(c);
	}
	if (c->closed)
		return -ENOTCONN;
	if (len > SEND_SLOT) {
		struct cf_window *w = cf_window_new(c, len);
		if (!w)
			return -ENOMEM;
		memcpy(w->data, msg, len);
		sge.addr = (uintptr_t)w->data;
		sge.lkey = w->mr->lkey;
	} else {
		uint8_t *slot = c->send_mem + (size_t)(c->next_send++ % c->o.sends) * SEND_SLOT;
		memcpy(slot, msg, len);
		sge.addr = (uintptr_t)slot;
		sge.lkey = c->send_mr->lkey;
	}
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		return closed(c, -ENOTCONN, "a Send was refused");
	c->sends_busy++;
	return 0;
}

static bool take_message(struct cf_conn *c, const struct ibv_wc *wc, struct cf_received *r)
{
	if (wc->status != IBV_WC_SUCCESS) {
		closed(c, 0,
		       wc->status == IBV_WC_WR_FLUSH_ERR ? "connection lost"
							 : ibv_wc_status_str(wc->status));
		return false;
	}
	c->heard = true;
	c->last_slot = wc->wr_id;
	*r = (struct cf_received){
		.data = c->recv_mem + wc->wr_id * c->recv_size,
		.len = wc->byte_len,
		.invalidated = wc->wc_flags & IBV_WC_WITH_INV,
		.handle = wc->wc_flags & IBV_WC_WITH_INV ? wc->invalidated_rkey : 0,
	};
	return true;
}

enum cf_got cf_conn_receive(struct cf_conn *c, struct cf_received *r, int64_t deadline)
{
	struct ibv_wc wc;

	if (!c->id)
		return CF_GOT_CLOSED;
	if (c->last_slot >= 0 && !c->closed && cf_conn_post_recv(c, c->last_slot) < 0)
		closed(c, 0, "a Receive was refused");
	c->last_slot = -1;
	for (;;) {
		reap_sends(c);
		if (ibv_poll_cq(c->recv_cq, 1, &wc) > 0)
			return take_message(c, &wc, r) ? CF_GOT_MESSAGE : CF_GOT_CLOSED;
		if (c->closed)
			return CF_GOT_CLOSED;
		if (cf_now_ms() >= deadline)
			return CF_GOT_TIMEOUT;
		ibv_req_notify_cq(c->recv_cq, 0);
		ibv_req_notify_cq(c->send_cq, 0);
		reap_sends(c);
		if (ibv_poll_cq(c->recv_cq, 1, &wc) > 0)
			return take_message(c, &wc, r) ? CF_GOT_MESSAGE : CF_GOT_CLOSED;
		if (!c->closed)
			wait_for_anything(c, deadline);
	}
}
