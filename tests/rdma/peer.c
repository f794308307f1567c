/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/rdma/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RESOLVE_MS 3000
#define MESSAGES_SIZE (PEER_RECVS * PEER_RECV_SIZE + PEER_SENDS * PEER_SEND_SIZE)

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

static int post_recv(struct peer *p, unsigned i)
{
	uint8_t *buf = p->block + (size_t)i * PEER_RECV_SIZE;
	struct ibv_sge sge = { (uintptr_t)buf, p->recv_size, p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;
	return ibv_post_recv(p->id->qp, &wr, &bad) ? -EIO : 0;
}

static int resolve(struct peer *p, const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST }, *ai;

	if (rdma_create_id(NULL, &p->id, NULL, RDMA_PS_TCP) < 0)
		return -errno;
	if (getaddrinfo(host, port, &hints, &ai) != 0)
		return -EINVAL;
	int err = rdma_resolve_addr(p->id, NULL, ai->ai_addr, RESOLVE_MS) < 0 ? -errno : 0;
	freeaddrinfo(ai);
	if (!err && rdma_resolve_route(p->id, RESOLVE_MS) < 0)
		err = -errno;
	return err;
}

static int make_queues(struct peer *p, bool idle)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { idle ? 1 : PEER_SENDS, idle ? 1 : PEER_RECVS, 1, 1, 0 },
	};

	p->send_cq = ibv_create_cq(p->id->verbs, attr.cap.max_send_wr + 1, NULL, NULL, 0);
	p->recv_cq = ibv_create_cq(p->id->verbs, attr.cap.max_recv_wr + 1, NULL, NULL, 0);
	if (!p->send_cq || !p->recv_cq)
		return -ENOMEM;
	attr.send_cq = p->send_cq;
	attr.recv_cq = p->recv_cq;
	if (rdma_create_qp(p->id, NULL, &attr) < 0)
		return -errno;
	return 0;
}

int peer_post_recvs(struct peer *p)
{
	for (unsigned i = 0; i < PEER_RECVS; i++)
		if (post_recv(p, i) < 0)
			return -EIO;
	return 0;
}

static int make_buffers(struct peer *p, const struct peer_options *o)
{
	p->recv_size = o->recv_size ? o->recv_size : PEER_RECV_SIZE;
	p->data_size = o->data_size ? o->data_size : PEER_DATA_SIZE;
	p->block_size = (MESSAGES_SIZE + p->data_size + 4095) & ~(size_t)4095;
	p->block = aligned_alloc(4096, p->block_size);
	if (!p->block)
		return -ENOMEM;
	memset(p->block, 0, p->block_size);
	p->data = p->block + MESSAGES_SIZE;
	p->mr = ibv_reg_mr(p->id->pd, p->block, MESSAGES_SIZE + p->data_size,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE);
	if (!p->mr)
		return -ENOMEM;
	return o->no_recvs ? 0 : peer_post_recvs(p);
}

int peer_connect(struct peer *p, const char *host, const char *port, const struct peer_options *o)
{
	const uint8_t private_msg[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, o->invalidate, 3, 3 };
	struct rdma_conn_param param = {
		.private_data = o->no_private ? NULL : private_msg,
		.private_data_len = o->no_private ? 0 : sizeof(private_msg),
		.responder_resources = o->no_resources ? 0
				       : o->resources  ? o->resources
						       : 8,
		.retry_count = 6,
		.rnr_retry_count = o->rnr_retry, /* Linux's client sets 0 */
	};

	memset(p, 0, sizeof(*p));
	int err = resolve(p, host, port);
	if (!err)
		err = make_queues(p, o->idle);
	if (!err && !o->idle)
		err = make_buffers(p, o);
	if (!err && rdma_connect(p->id, &param) < 0)
		err = -errno;
	if (err)
		peer_close(p, false);
	return err;
}

void peer_close(struct peer *p, bool disconnect)
{
	if (p->id) {
		/* In synchronous mode rdma_disconnect() waits for an event that does not come for a
		 * connection that the server has closed. Such an id is destroyed without it. */
		if (disconnect && !p->closed)
			rdma_disconnect(p->id);
		if (p->id->qp)
			rdma_destroy_qp(p->id);
	}
	if (p->mr)
		ibv_dereg_mr(p->mr);
	if (p->send_cq)
		ibv_destroy_cq(p->send_cq);
	if (p->recv_cq)
		ibv_destroy_cq(p->recv_cq);
	if (p->id)
		rdma_destroy_id(p->id);
	free(p->block);
	memset(p, 0, sizeof(*p));
}

static void reap_sends(struct peer *p)
{
	struct ibv_wc wc;
	while (ibv_poll_cq(p->send_cq, 1, &wc) > 0) {
		p->sent--;
		if (wc.status != IBV_WC_SUCCESS)
			p->closed = true;
	}
}

int peer_send(struct peer *p, const void *msg, size_t len)
{
	int64_t until = now_ms() + 10000;

	if (len > PEER_SEND_SIZE)
		return -EMSGSIZE;
	while (!p->closed && p->sent >= PEER_SENDS && now_ms() < until)
		reap_sends(p);
	if (p->closed || p->sent >= PEER_SENDS)
		return -ENOTCONN;
	unsigned i = p->next_send++ % PEER_SENDS;
	uint8_t *buf = p->block + PEER_RECVS * PEER_RECV_SIZE + (size_t)i * PEER_SEND_SIZE;
	memcpy(buf, msg, len);
	struct ibv_sge sge = { (uintptr_t)buf, len, p->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	if (ibv_post_send(p->id->qp, &wr, &bad))
		return -EIO;
	p->sent++;
	return 0;
}

int peer_write(struct peer *p, uint32_t key, uint64_t address, uint32_t len)
{
	int64_t until = now_ms() + 10000;
	struct ibv_sge sge = { (uintptr_t)p->data, len, p->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { address, key },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc = { 0 };

	if (len > p->data_size)
		return -EMSGSIZE;
	while (!p->closed && p->sent && now_ms() < until)
		reap_sends(p);
	if (p->closed || p->sent || ibv_post_send(p->id->qp, &wr, &bad))
		return -ENOTCONN;
	while (!ibv_poll_cq(p->send_cq, 1, &wc) && now_ms() < until)
		;
	p->closed = wc.status != IBV_WC_SUCCESS;
	return wc.status == IBV_WC_SUCCESS ? 0 : -EACCES;
}

static void look_for_disconnect(struct peer *p)
{
	struct rdma_cm_event *ev;
	int flags = fcntl(p->id->channel->fd, F_GETFL);

	fcntl(p->id->channel->fd, F_SETFL, flags | O_NONBLOCK);
	if (rdma_get_cm_event(p->id->channel, &ev) == 0) {
		p->closed = true;
		rdma_ack_cm_event(ev);
	}
	fcntl(p->id->channel->fd, F_SETFL, flags);
}

int peer_wait(struct peer *p, void *buf, int timeout_ms)
{
	int64_t until = now_ms() + timeout_ms;
	struct timespec pause = {
		0, 200000
	}; /* longer and longer: who waits for nothing computes little */
	struct ibv_wc wc;

	for (;;) {
		reap_sends(p);
		if (ibv_poll_cq(p->recv_cq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS) {
				p->closed = true;
				return PEER_CLOSED;
			}
			memcpy(buf, p->block + wc.wr_id * PEER_RECV_SIZE, wc.byte_len);
			post_recv(p, wc.wr_id);
			return wc.byte_len;
		}
		if (p->closed)
			return PEER_CLOSED;
		look_for_disconnect(p);
		if (now_ms() >= until)
			return PEER_TIMEOUT;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 3000000)
			pause.tv_nsec += pause.tv_nsec / 4;
	}
}
