/* SPDX-License-Identifier: BSD-2-Clause */
/* floor.h: connections, work requests and completions by libibverbs. */
#include "floor.h"
#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define SENT UINT64_MAX
#define QUIET 17u /* Sends alone of which one makes a completion */

uint8_t *floor_call(struct floor *f, unsigned slot)
{
	return f->block + slot * FLOOR_MESSAGE;
}

uint8_t *floor_reply(struct floor *f, unsigned slot)
{
	return floor_call(f, FLOOR_SLOTS + slot);
}

uint8_t *floor_data(struct floor *f, unsigned slot)
{
	return floor_call(f, 2 * FLOOR_SLOTS) + (size_t)slot * FLOOR_DATA;
}

void floor_receive(struct floor *f, unsigned slot)
{
	struct ibv_sge sge = { (uintptr_t)floor_call(f, slot), FLOOR_MESSAGE, f->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(f->id->qp, &wr, &bad))
		err(1, "Receive");
}

void floor_send(struct floor *f, unsigned slot, size_t len, const struct chunk *chunk)
{
	struct ibv_sge data = { (uintptr_t)floor_data(f, slot), chunk->len, f->mr->lkey };
	struct ibv_sge message = { (uintptr_t)floor_reply(f, slot), (uint32_t)len, f->mr->lkey };
	struct ibv_send_wr send = {
		.wr_id = SENT, .sg_list = &message, .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr write = { .wr_id = SENT,
				     .next = &send,
				     .sg_list = &data,
				     .num_sge = 1,
				     .opcode = IBV_WR_RDMA_WRITE,
				     .wr.rdma = { chunk->address, chunk->key } };
	struct ibv_send_wr *bad;

	/* Most Sends without an RDMA Write make no completion, since ringnfsd's do not. */
	if (chunk->key || ++f->sends % QUIET == 0)
		send.send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(f->id->qp, chunk->key ? &write : &send, &bad))
		err(1, "Send");
}

uint32_t floor_get_header(struct xdr *call, struct chunk *chunk)
{
	uint32_t xid = get32(call), segments;

	xdr_take(call, 16);
	if (get32(call)) {
		segments = get32(call);
		if (segments != 1)
			errx(1, "%u segments of a Write chunk", segments);
		chunk->key = get32(call);
		chunk->len = get32(call);
		chunk->address = get64(call);
		get32(call);
	}
	get32(call);
	return xid;
}

void floor_put_header(struct xdr *x, uint32_t xid, const struct chunk *chunk)
{
	put32(x, xid);
	put32(x, 1);
	put32(x, FLOOR_SLOTS);
	put32(x, 0);
	put32(x, 0);
	if (chunk->key) {
		put32(x, 1);
		put32(x, 1);
		put32(x, chunk->key);
		put32(x, chunk->len);
		put64(x, chunk->address);
	}
	put32(x, 0);
	put32(x, 0);
	put32(x, xid);
	put32(x, 1);		  /* REPLY */
	put64(x, 0), put64(x, 0); /* accepted, no verifier, success */
}

static void accept_one(struct floor *f, struct rdma_cm_id *listener)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { 2 * FLOOR_SLOTS, FLOOR_SLOTS, 1, 1, 0 } };
	struct rdma_conn_param param = { .initiator_depth = 1, .rnr_retry_count = 7 };
	unsigned i;

	if (rdma_get_request(listener, &f->id))
		err(1, "rdma_get_request");
	f->channel = ibv_create_comp_channel(f->id->verbs);
	if (f->channel)
		f->cq = ibv_create_cq(f->id->verbs, 3 * (int)FLOOR_SLOTS, NULL, f->channel, 0);
	attr.send_cq = attr.recv_cq = f->cq;
	if (!f->cq || rdma_create_qp(f->id, NULL, &attr))
		err(1, "queue pair");
	f->mr = ibv_reg_mr(f->id->pd, f->block,
			   FLOOR_SLOTS * (size_t)(2 * FLOOR_MESSAGE + FLOOR_DATA),
			   IBV_ACCESS_LOCAL_WRITE);
	if (!f->mr || ibv_req_notify_cq(f->cq, 0))
		err(1, "memory");
	for (i = 0; i < FLOOR_SLOTS; i++)
		floor_receive(f, i);
	if (rdma_accept(f->id, &param))
		err(1, "rdma_accept");
}

static void release(struct floor *f)
{
	struct rdma_cm_event *event;

	/* The client's farewell is read before ours, which waits for its answer. */
	if (rdma_get_cm_event(f->id->channel, &event) == 0)
		rdma_ack_cm_event(event);
	rdma_destroy_qp(f->id);
	ibv_dereg_mr(f->mr);
	ibv_destroy_cq(f->cq);
	ibv_destroy_comp_channel(f->channel);
	rdma_destroy_id(f->id);
	f->cq = NULL;
}

/* Waits for a completion; false if the client goes. */
static bool wait_for_completion(struct floor *f)
{
	struct pollfd fds[] = { { .fd = f->channel->fd, .events = POLLIN },
				{ .fd = f->id->channel->fd, .events = POLLIN } };
	struct ibv_cq *cq;
	void *context;

	if (poll(fds, 2, -1) < 0)
		err(1, "poll");
	if (fds[1].revents)
		return false;
	if (ibv_get_cq_event(f->channel, &cq, &context))
		err(1, "completions");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		err(1, "completions");
	return true;
}

static void serve_all(struct floor *f, floor_serve_fn *serve)
{
	struct ibv_wc wc[16];
	int i, n;

	while (wait_for_completion(f)) {
		while ((n = ibv_poll_cq(f->cq, 16, wc)) > 0) {
			for (i = 0; i < n; i++) {
				if (wc[i].status != IBV_WC_SUCCESS)
					return;
				if (wc[i].wr_id != SENT)
					serve(f, (unsigned)wc[i].wr_id, wc[i].byte_len);
			}
		}
	}
}

void floor_run(const char *address, const char *port, floor_serve_fn *serve, void *server)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	struct rdma_cm_id *listener;
	struct floor f = { .server = server };

	if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
		errx(2, "%s: not an IPv4 address", address);
	f.block = aligned_alloc(4096, FLOOR_SLOTS * (size_t)(2 * FLOOR_MESSAGE + FLOOR_DATA));
	if (!f.block)
		errx(1, "no memory");
	if (rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&at) || rdma_listen(listener, 8))
		err(1, "listening on port %s", port);
	puts("ready");
	fflush(stdout);
	for (;;) {
		accept_one(&f, listener);
		serve_all(&f, serve);
		release(&f);
	}
}
