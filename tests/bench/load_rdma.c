/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC-over-RDMA version 1 (RFC 8166) for the load generator: the measured calls of a connection go
 * by a queue pair, what a READ returns by a Write chunk. Handles and files come over TCP. Only calls
 * that fit into a message are possible: all but WRITE.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include "load.h"

#define MESSAGE 1024u /* without a private message, both ways */
#define RESOLVE_MS 5000

struct rdma {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *block; /* receive buffers, send buffers, and data of READs */
	unsigned calls, under_way, credits;
	uint32_t size; /* of a call's data */
};

static uint8_t *recv_buf(struct rdma *r, unsigned i)
{
	return r->block + (size_t)i * MESSAGE;
}

static uint8_t *send_buf(struct rdma *r, unsigned i)
{
	return recv_buf(r, r->calls + i);
}

static uint8_t *data_buf(struct rdma *r, unsigned i)
{
	return recv_buf(r, 2 * r->calls) + (size_t)i * r->size;
}

static void post_recv(struct rdma *r, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)recv_buf(r, i), MESSAGE, r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(r->id->qp, &wr, &bad))
		die("posting a Receive: %s", strerror(errno));
}

static void resolve(struct load *l, struct rdma *r)
{
	struct sockaddr_in to = l->address;

	to.sin_port = htons(l->o.rdma_port);
	if (rdma_create_id(NULL, &r->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(r->id, NULL, (struct sockaddr *)&to, RESOLVE_MS) ||
	    rdma_resolve_route(r->id, RESOLVE_MS))
		die("no RDMA device leads to %s: %s", l->o.host, strerror(errno));
}

static void make_queues(struct rdma *r)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { r->calls, r->calls, 1, 1, 0 } };
	size_t size = (size_t)r->calls * (2 * MESSAGE + r->size);
	unsigned i;

	r->channel = ibv_create_comp_channel(r->id->verbs);
	if (r->channel)
		r->cq = ibv_create_cq(r->id->verbs, (int)(2 * r->calls), NULL, r->channel, 0);
	attr.send_cq = attr.recv_cq = r->cq;
	if (!r->cq || rdma_create_qp(r->id, NULL, &attr))
		die("making a queue pair: %s", strerror(errno));
	r->block = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	if (!r->block)
		die("no memory");
	r->mr = ibv_reg_mr(r->id->pd, r->block, size,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!r->mr || ibv_req_notify_cq(r->cq, 0))
		die("registering memory: %s", strerror(errno));
	for (i = 0; i < r->calls; i++)
		post_recv(r, i);
}

int load_rdma_connect(struct load *l, struct conn *k)
{
	struct rdma_conn_param param = { .responder_resources = 8,
					 .retry_count = 6,
					 .rnr_retry_count = 7 };
	struct rdma *r = calloc(1, sizeof(*r));
	unsigned i;

	if (!r)
		die("no memory");
	r->calls = l->o.calls;
	r->size = (l->o.size + 4095) & ~4095u;
	r->credits = 1; /* until the server has said more */
	resolve(l, r);
	make_queues(r);
	if (rdma_connect(r->id, &param))
		die("connecting to RDMA port %u: %s", l->o.rdma_port, strerror(errno));
	for (i = 0; i < r->calls && l->job->data; i++)
		k->calls[i].placed = data_buf(r, i);
	k->rdma = r;
	fcntl(r->channel->fd, F_SETFL, O_NONBLOCK);
	return r->channel->fd;
}

void load_rdma_leave(struct conn *k)
{
	struct rdma *r = k->rdma;

	rdma_disconnect(r->id);
	rdma_destroy_qp(r->id);
	ibv_dereg_mr(r->mr);
	ibv_destroy_cq(r->cq);
	ibv_destroy_comp_channel(r->channel);
	rdma_destroy_id(r->id);
	free(r->block);
	free(r);
}

/* The transport's header of a call; returns its length. */
static size_t put_header(struct rdma *r, const struct call *c, uint8_t *to, size_t room)
{
	struct xdr x = { .p = to, .end = to + room };

	put32(&x, c->xid);
	put32(&x, 1);
	put32(&x, r->calls);
	put32(&x, 0); /* RDMA_MSG */
	put32(&x, 0);
	if (c->placed) { /* a Write chunk of one segment */
		put32(&x, 1);
		put32(&x, 1);
		put32(&x, r->mr->rkey);
		put32(&x, r->size);
		put64(&x, (uintptr_t)c->placed);
	}
	put32(&x, 0);
	put32(&x, 0);
	return (size_t)(x.p - to);
}

static void send_call(struct rdma *r, struct call *c)
{
	struct ibv_sge sge = { .addr = (uintptr_t)send_buf(r, c->index), .lkey = r->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = r->calls,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	uint8_t header[64];
	size_t n = put_header(r, c, header, sizeof(header)), rest = c->head_len - 4;

	if (n + rest > MESSAGE || c->data_len)
		die("this call does not fit into a message");
	memcpy(send_buf(r, c->index), header, n);
	memcpy(send_buf(r, c->index) + n, c->head + 4, rest); /* without the record mark */
	sge.length = (uint32_t)(n + rest);
	if (ibv_post_send(r->id->qp, &wr, &bad))
		die("posting a Send: %s", strerror(errno));
	r->under_way++;
}

/* Sends what the credits allow; the rest follows replies. */
void load_rdma_flush(struct load *l, struct conn *k)
{
	struct rdma *r = k->rdma;

	k->to_flush = false;
	while (k->out_head != k->out_tail && r->under_way < r->credits) {
		send_call(r, k->out[k->out_head]);
		k->out_head = (k->out_head + 1) % (l->o.calls + 1);
	}
}

/* Reads the transport's header; returns the bytes that the server has written into the chunk. */
static uint32_t get_header(struct rdma *r, struct xdr *x)
{
	uint32_t n, len = 0;

	get32(x);
	get32(x);
	r->credits = get32(x);
	if (get32(x) != 0 || get32(x) != 0)
		die("the server answers with an error of the transport");
	if (get32(x)) {
		for (n = get32(x); n && !x->bad; n--) {
			get32(x);
			len += get32(x);
			get64(x);
		}
		get32(x);
	}
	if (get32(x) || x->bad || !r->credits)
		die("a reply's header is wrong");
	return len;
}

static void handle(struct load *l, struct conn *k, const struct ibv_wc *wc)
{
	struct rdma *r = k->rdma;
	uint8_t *buf;
	struct xdr x;

	if (wc->status != IBV_WC_SUCCESS)
		die("connection %u: %s", k->index, ibv_wc_status_str(wc->status));
	if (wc->wr_id == r->calls) /* a Send */
		return;
	buf = recv_buf(r, (unsigned)wc->wr_id);
	x = (struct xdr){ .p = buf, .end = buf + wc->byte_len };
	l->placed_len = get_header(r, &x);
	r->under_way--;
	load_reply(l, k, &x);
	post_recv(r, (unsigned)wc->wr_id);
}

void load_rdma_event(struct load *l, struct conn *k)
{
	struct rdma *r = k->rdma;
	struct ibv_wc wc[16];
	struct ibv_cq *cq;
	void *context;
	int i, n;

	if (ibv_get_cq_event(r->channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		die("asking for completions: %s", strerror(errno));
	while ((n = ibv_poll_cq(cq, 16, wc)) > 0)
		for (i = 0; i < n; i++)
			handle(l, k, &wc[i]);
	load_rdma_flush(l, k);
}
