/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor of NFS over RDMA: verbsfloor ADDRESS PORT FILE
 *
 * Answers nfsload's calls with the same verbs and system calls on the file as a server would need,
 * and with nothing else: a Receive, statx or pread, an RDMA Write, a Send. It looks at nothing but
 * the procedure and, of a READ, offset and count, and believes both. One connection at a time.
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "xdr.h"

#define SLOTS 64u
#define MESSAGE 1024u
#define DATA (1u << 20)
#define SENT UINT64_MAX
#define QUIET 17u /* Sends alone of which one makes a completion */
#define NFSPROC3_READ 6u

struct floor {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *block; /* receive buffers, send buffers, data */
	int fd;
	unsigned sends; /* alone, without data before them */
};

static uint8_t *recv_buf(struct floor *f, unsigned i)
{
	return f->block + i * MESSAGE;
}

static uint8_t *send_buf(struct floor *f, unsigned i)
{
	return recv_buf(f, SLOTS + i);
}

static uint8_t *data_buf(struct floor *f, unsigned i)
{
	return recv_buf(f, 2 * SLOTS) + (size_t)i * DATA;
}

static void post_recv(struct floor *f, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)recv_buf(f, i), MESSAGE, f->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(f->id->qp, &wr, &bad))
		err(1, "Receive");
}

static void accept_one(struct floor *f, struct rdma_cm_id *listener)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { 2 * SLOTS, SLOTS, 1, 1, 0 } };
	struct rdma_conn_param param = { .initiator_depth = 1, .rnr_retry_count = 7 };
	unsigned i;

	if (rdma_get_request(listener, &f->id))
		err(1, "rdma_get_request");
	f->channel = ibv_create_comp_channel(f->id->verbs);
	if (f->channel)
		f->cq = ibv_create_cq(f->id->verbs, 3 * (int)SLOTS, NULL, f->channel, 0);
	attr.send_cq = attr.recv_cq = f->cq;
	if (!f->cq || rdma_create_qp(f->id, NULL, &attr))
		err(1, "queue pair");
	f->mr = ibv_reg_mr(f->id->pd, f->block, SLOTS * (size_t)(2 * MESSAGE + DATA),
			   IBV_ACCESS_LOCAL_WRITE);
	if (!f->mr || ibv_req_notify_cq(f->cq, 0))
		err(1, "memory");
	for (i = 0; i < SLOTS; i++)
		post_recv(f, i);
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

/* A segment of the client's memory. */
struct chunk {
	uint32_t key, len;
	uint64_t address;
};

/* Sends the reply, behind the data if there is a chunk for them. */
static void post_reply(struct floor *f, unsigned i, size_t len, const struct chunk *chunk)
{
	struct ibv_sge data = { (uintptr_t)data_buf(f, i), chunk->len, f->mr->lkey };
	struct ibv_sge message = { (uintptr_t)send_buf(f, i), (uint32_t)len, f->mr->lkey };
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

static void put_reply_header(struct xdr *x, uint32_t xid, const struct chunk *chunk)
{
	put32(x, xid);
	put32(x, 1);
	put32(x, SLOTS);
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

/* Makes the system call of a GETATTR, and puts a reply of the same length. */
static void put_attributes(struct floor *f, struct xdr *x)
{
	static const uint8_t rest[80];
	struct statx st;

	if (statx(f->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st))
		err(1, "statx");
	put32(x, 1);
	put_bytes(x, rest, sizeof(rest));
}

static void serve(struct floor *f, unsigned i, uint32_t len)
{
	struct xdr call = { .p = recv_buf(f, i), .end = recv_buf(f, i) + len };
	struct xdr tail = { .p = call.end - 12, .end = call.end };
	struct xdr x = { .p = send_buf(f, i), .end = send_buf(f, i) + MESSAGE };
	struct chunk chunk = { 0 };
	uint32_t xid = get32(&call), proc;
	uint64_t offset;

	xdr_take(&call, 16);
	if (get32(&call)) {
		get32(&call);
		chunk.key = get32(&call);
		chunk.len = get32(&call);
		chunk.address = get64(&call);
		get32(&call);
	}
	get32(&call);
	xdr_take(&call, 20);
	proc = get32(&call);
	if (proc == NFSPROC3_READ) {
		offset = get64(&tail);
		chunk.len = get32(&tail);
		if (chunk.len > DATA ||
		    pread(f->fd, data_buf(f, i), chunk.len, (off_t)offset) != (ssize_t)chunk.len)
			err(1, "pread");
	}
	post_recv(f, i);
	put_reply_header(&x, xid, &chunk);
	put32(&x, 0);
	if (proc == NFSPROC3_READ) {
		put32(&x, 1);
		put_attributes(f, &x);
		put32(&x, chunk.len);
		put32(&x, 0);
		put32(&x, chunk.len);
	} else {
		put_attributes(f, &x);
	}
	post_reply(f, i, (size_t)(x.p - send_buf(f, i)), &chunk);
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

static void serve_all(struct floor *f)
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

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct rdma_cm_id *listener;
	struct floor f = { 0 };

	if (argc != 4 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1)
		errx(2, "usage: verbsfloor ADDRESS PORT FILE");
	at.sin_port = htons((uint16_t)atoi(argv[2]));
	f.fd = open(argv[3], O_RDONLY | O_CLOEXEC);
	if (f.fd < 0)
		err(1, "%s", argv[3]);
	f.block = aligned_alloc(4096, SLOTS * (size_t)(2 * MESSAGE + DATA));
	if (!f.block)
		errx(1, "no memory");
	if (rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&at) || rdma_listen(listener, 8))
		err(1, "listening on port %s", argv[2]);
	puts("ready");
	fflush(stdout);
	for (;;) {
		accept_one(&f, listener);
		serve_all(&f);
		release(&f);
	}
}
