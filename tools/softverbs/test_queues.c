/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues: their limits, flushing, events, shared receive queues, peers that end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/softverbs/test_fixture.h"

static void to_error(struct end *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	CHECK_EQ(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
}

static bool is_empty(struct end *e)
{
	struct ibv_wc wc;

	return ibv_poll_cq(e->cq, 1, &wc) == 0;
}

static int post_quiet(struct end *e, uint64_t id, unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 8, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = flags };

	return post_wr(e, &wr);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* In the error state all work requests complete in order, also unsignalled ones and later posts. */
static void flush_in_error_state(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	for (uint64_t id = 1; id <= 3; id++)
		CHECK_EQ(post_quiet(&p.a, id, 0), 0); /* the peer has no receives */
	for (uint64_t id = 4; id <= 5; id++)
		CHECK_EQ(post_recv(&p.a, id, 10), 0);
	to_error(&p.a);
	for (uint64_t id = 1; id <= 5; id++)
		expect_wc(&p.a, id, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(post_quiet(&p.a, 6, 0), 0);
	CHECK_EQ(post_recv(&p.a, 7, 10), 0);
	expect_wc(&p.a, 6, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&p.a, 7, IBV_WC_WR_FLUSH_ERR);
	CHECK(is_empty(&p.a));
	pair_free(&p);
}

static void unsignalled(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	for (uint64_t id = 0; id < 16; id++)
		CHECK_EQ(post_recv(&p.b, id, 10), 0);
	for (uint64_t id = 0; id < 7; id++)
		CHECK_EQ(post_quiet(&p.a, id, 0), 0);
	CHECK_EQ(post_quiet(&p.a, 7, IBV_SEND_SIGNALED), 0);
	expect_wc(&p.a, 7, IBV_WC_SUCCESS);
	CHECK(is_empty(&p.a));
	for (uint64_t id = 0; id < 8; id++)
		expect_wc(&p.b, id, IBV_WC_SUCCESS);
	pair_free(&p);

	o.sig_all = true;
	pair_make(&p, &o);
	CHECK_EQ(post_recv(&p.b, 0, 10), 0);
	CHECK_EQ(post_quiet(&p.a, 9, 0), 0);
	expect_wc(&p.a, 9, IBV_WC_SUCCESS);
	pair_free(&p);
}

/* An entry is free when its completion or a later one has been polled. */
static void send_queue_full(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	o.send_wr = 4;
	pair_make(&p, &o);
	for (uint64_t id = 0; id < 8; id++)
		CHECK_EQ(post_recv(&p.b, id, 10), 0);
	for (uint64_t id = 0; id < 4; id++)
		CHECK_EQ(post_quiet(&p.a, id, id == 2 ? IBV_SEND_SIGNALED : 0), 0);
	for (uint64_t id = 0; id < 4; id++)
		expect_wc(&p.b, id, IBV_WC_SUCCESS);
	CHECK_EQ(post_quiet(&p.a, 4, 0), ENOMEM);
	expect_wc(&p.a, 2, IBV_WC_SUCCESS);
	for (uint64_t id = 4; id < 7; id++)
		CHECK_EQ(post_quiet(&p.a, id, 0), 0);
	CHECK_EQ(post_quiet(&p.a, 7, 0), ENOMEM);
	pair_free(&p);
}

/* All requests before the one that does not fit or is invalid are posted. */
static void lists(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	struct ibv_send_wr list[3] = { { .wr_id = 1, .opcode = IBV_WR_SEND, .next = &list[1] },
				       { .wr_id = 2, .opcode = IBV_WR_SEND, .next = &list[2] },
				       { .wr_id = 3, .opcode = IBV_WR_SEND } };
	struct ibv_send_wr *bad;

	o.send_wr = 2;
	pair_make(&p, &o);
	CHECK_EQ(ibv_post_send(p.a.qp, list, &bad), ENOMEM);
	CHECK(bad == &list[2]);
	to_error(&p.a);
	expect_wc(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
	list[1].opcode = IBV_WR_DRIVER1;
	CHECK_EQ(ibv_post_send(p.a.qp, list, &bad), EINVAL);
	CHECK(bad == &list[1]);
	expect_wc(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
	CHECK(is_empty(&p.a));
	pair_free(&p);
}

static void receive_queue_full(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	o.recv_wr = 3;
	pair_make(&p, &o);
	for (uint64_t id = 0; id < 3; id++)
		CHECK_EQ(post_recv(&p.b, id, 10), 0);
	CHECK_EQ(post_recv(&p.b, 3, 10), ENOMEM);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, 1), 0);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	CHECK_EQ(post_recv(&p.b, 3, 10), ENOMEM);
	expect_wc(&p.b, 0, IBV_WC_SUCCESS);
	CHECK_EQ(post_recv(&p.b, 3, 10), 0);
	pair_free(&p);
}

static void completion_queue_overflow(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	struct ibv_wc wc;

	o.cqe = 2;
	pair_make(&p, &o);
	for (uint64_t id = 0; id < 3; id++)
		CHECK_EQ(post_recv(&p.b, id, 10), 0);
	for (uint64_t id = 0; id < 3; id++)
		CHECK_EQ(post_quiet(&p.a, id, 0), 0);
	expect_event(p.ctx, IBV_EVENT_CQ_ERR, p.b.cq);
	expect_event(p.ctx, IBV_EVENT_QP_FATAL, p.b.qp);
	CHECK_EQ(state_of(p.b.qp), IBV_QPS_ERR);
	expect_wc(&p.b, 0, IBV_WC_SUCCESS);
	expect_wc(&p.b, 1, IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(p.b.cq, 1, &wc) < 0);
	pair_free(&p);
}

static void *take_cq_event(void *arg)
{
	struct end *e = arg;
	struct ibv_cq *cq;
	void *ctx;

	CHECK_EQ(ibv_get_cq_event(e->channel, &cq, &ctx), 0);
	CHECK(cq == e->cq && ctx == e);
	return NULL;
}

/* An event for the first completion after arming, and for no other. */
static void arming(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	struct ibv_cq *cq;
	void *ctx;

	pair_make(&p, &o);
	CHECK_EQ(fcntl(p.b.channel->fd, F_SETFL, O_NONBLOCK), 0);
	for (uint64_t id = 0; id < 8; id++)
		CHECK_EQ(post_recv(&p.b, id, 10), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, 1), 0);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	CHECK(ibv_get_cq_event(p.b.channel, &cq, &ctx) < 0 && errno == EAGAIN);
	CHECK_EQ(ibv_req_notify_cq(p.b.cq, 0), 0);
	CHECK(!readable(p.b.channel->fd)); /* the one before does not count */
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, 1), 0);
		expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	}
	CHECK(readable(p.b.channel->fd));
	take_cq_event(&p.b);
	CHECK(!readable(p.b.channel->fd));
	CHECK(ibv_get_cq_event(p.b.channel, &cq, &ctx) < 0 && errno == EAGAIN);
	/* A blocking channel, and a thread that waits at it. */
	pthread_t t;
	CHECK_EQ(fcntl(p.b.channel->fd, F_SETFL, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(p.b.cq, 0), 0);
	CHECK_EQ(pthread_create(&t, NULL, take_cq_event, &p.b), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, 1), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	/* Events that were not taken go with the queue; those taken must be acknowledged. */
	CHECK_EQ(ibv_req_notify_cq(p.b.cq, 0), 0);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 2, 1), 0);
	expect_wc(&p.a, 2, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_comp_channel(p.b.channel), EBUSY);
	CHECK_EQ(ibv_destroy_cq(p.b.cq), EBUSY);
	ibv_ack_cq_events(p.b.cq, 2);
	pair_free(&p);
}

static void solicited(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	for (uint64_t id = 0; id < 8; id++)
		CHECK_EQ(post_recv(&p.b, id, 10), 0);
	CHECK_EQ(ibv_req_notify_cq(p.b.cq, 1), 0);
	CHECK_EQ(post_quiet(&p.a, 1, IBV_SEND_SIGNALED), 0);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	CHECK(!readable(p.b.channel->fd));
	CHECK_EQ(post_quiet(&p.a, 2, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
	expect_wc(&p.a, 2, IBV_WC_SUCCESS);
	CHECK(readable(p.b.channel->fd));
	take_cq_event(&p.b);
	/* An error always raises an event. */
	CHECK_EQ(ibv_req_notify_cq(p.b.cq, 1), 0);
	to_error(&p.b);
	CHECK(readable(p.b.channel->fd));
	take_cq_event(&p.b);
	ibv_ack_cq_events(p.b.cq, 2);
	pair_free(&p);
}

static struct pair *acked_pair;
static bool acked;

static void *ack_later(void *arg)
{
	(void)arg;
	/* The queue must not be destroyed before this. */
	for (int i = 0; i < 1000; i++)
		sched_yield();
	__atomic_store_n(&acked, true, __ATOMIC_SEQ_CST);
	ibv_ack_cq_events(acked_pair->a.cq, 1);
	return NULL;
}

static void unacknowledged(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	pthread_t t;

	pair_make(&p, &o);
	acked_pair = &p;
	CHECK_EQ(ibv_req_notify_cq(p.a.cq, 0), 0);
	CHECK_EQ(post_recv(&p.b, 1, 10), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, 1), 0);
	take_cq_event(&p.a);
	CHECK_EQ(ibv_destroy_qp(p.a.qp), 0);
	CHECK_EQ(pthread_create(&t, NULL, ack_later, NULL), 0);
	CHECK_EQ(ibv_destroy_cq(p.a.cq), 0);
	CHECK(__atomic_load_n(&acked, __ATOMIC_SEQ_CST));
	CHECK_EQ(pthread_join(t, NULL), 0);
	p.a.qp = NULL;
	p.a.cq = NULL;
	pair_free(&p);
}

static void srq_receives(void)
{
	struct ibv_context *ctx = open_device(0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct options o = DEFAULTS;
	struct end client[2], server[2];
	uint8_t buf[4][64];

	CHECK(srq);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	for (int i = 0; i < 2; i++) {
		end_make(&client[i], pd, &o, NULL);
		end_make(&server[i], pd, &o, srq);
		end_init(&client[i], &o);
		end_init(&server[i], &o);
		end_connect(&client[i], server[i].qp->qp_num, &o);
		end_connect(&server[i], client[i].qp->qp_num, &o);
	}
	CHECK_EQ(post_recv(&server[0], 1, 10), EINVAL);
	for (uint64_t i = 0; i < 5; i++) {
		struct ibv_sge sge = { (uintptr_t)buf[i % 4], 64, mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;
		CHECK_EQ(ibv_post_srq_recv(srq, &wr, &bad), i < 4 ? 0 : ENOMEM);
	}
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	for (unsigned i = 0; i < 4; i++) {
		fill(client[i % 2].buf, 64, i);
		CHECK_EQ(post_send(&client[i % 2], IBV_WR_SEND, i, 64), 0);
		expect_wc(&client[i % 2], i, IBV_WC_SUCCESS);
		expect_wc(&server[i % 2], i, IBV_WC_SUCCESS);
		CHECK(is_filled(buf[i], 64, i));
	}
	expect_event(ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	CHECK_EQ(ibv_query_srq(srq, &attr), 0);
	CHECK_EQ(attr.srq_limit, 0); /* once */
	/* Receives stay for the others when one queue pair breaks. */
	struct ibv_recv_wr wr = { .wr_id = 9 }, *bad;
	CHECK_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
	to_error(&server[0]);
	expect_event(ctx, IBV_EVENT_QP_LAST_WQE_REACHED, server[0].qp);
	CHECK(is_empty(&server[0]));
	CHECK_EQ(post_send(&client[1], IBV_WR_SEND, 5, 0), 0);
	expect_wc(&server[1], 9, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_srq(srq), EBUSY);
	for (int i = 0; i < 2; i++) {
		end_free(&client[i]);
		end_free(&server[i]);
	}
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

static void states(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	struct end e;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	pair_make(&p, &o);
	end_make(&e, p.pd, &o, NULL);
	CHECK_EQ(state_of(e.qp), IBV_QPS_RESET);
	CHECK_EQ(post_recv(&e, 1, 1), EINVAL);
	CHECK_EQ(post_send(&e, IBV_WR_SEND, 1, 1), EINVAL);
	CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), EINVAL);
	end_init(&e, &o);
	CHECK_EQ(post_recv(&e, 1, 1), 0);
	CHECK_EQ(post_send(&e, IBV_WR_SEND, 1, 1), EINVAL);
	attr.qp_state = IBV_QPS_RTR;
	CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), EINVAL); /* no peer is given */
	/* Through RESET a broken queue pair is as new. */
	to_error(&e);
	expect_wc(&e, 1, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(post_recv(&e, 2, 1), 0);
	attr.qp_state = IBV_QPS_RESET;
	CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
	CHECK(is_empty(&e));
	CHECK_EQ(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE), 0);
	end_init(&e, &o);
	end_init(&p.a, &o);
	end_connect(&e, p.a.qp->qp_num, &o);
	end_connect(&p.a, e.qp->qp_num, &o);
	CHECK_EQ(post_recv(&e, 3, 1), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 4, 1), 0);
	expect_wc(&e, 3, IBV_WC_SUCCESS);
	expect_wc(&p.a, 4, IBV_WC_SUCCESS);
	end_free(&e);
	pair_free(&p);
}

/* Retries end for a peer that is in error, was destroyed or never existed. A peer that is not yet
 * connected is waited for. */
static void retries_exhausted(void)
{
	for (int i = 0; i < 3; i++) {
		struct options o = DEFAULTS;
		struct pair p;
		pair_make(&p, &o);
		if (i == 0) {
			to_error(&p.b);
		} else if (i == 1) {
			CHECK_EQ(ibv_destroy_qp(p.b.qp), 0);
			p.b.qp = NULL;
		} else {
			struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
			CHECK_EQ(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE), 0);
			end_init(&p.a, &o);
			end_connect(&p.a, 0xfffffe, &o);
		}
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 1, 8, (uintptr_t)p.b.buf, p.b.mr->rkey),
			 0);
		CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 2, 8), 0);
		expect_wc(&p.a, 1, IBV_WC_RETRY_EXC_ERR);
		expect_wc(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
		pair_free(&p);
	}
	struct options o = DEFAULTS;
	struct pair p;
	struct end late;
	pair_make(&p, &o);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	CHECK_EQ(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE), 0);
	end_make(&late, p.pd, &o, NULL);
	end_init(&p.a, &o);
	end_init(&late, &o);
	end_connect(&p.a, late.qp->qp_num, &o);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, 8), 0);
	for (int i = 0; i < 100; i++)
		CHECK(is_empty(&p.a));
	CHECK_EQ(post_recv(&late, 2, 8), 0);
	end_connect(&late, p.a.qp->qp_num, &o);
	expect_wc(&late, 2, IBV_WC_SUCCESS);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	end_free(&late);
	pair_free(&p);
}

struct hello {
	uint32_t qpn, rkey;
	uint64_t addr;
};

static void exchange_hello(int fd, const struct end *e, struct hello *peer)
{
	struct hello mine = { e->qp->qp_num, e->mr->rkey, (uintptr_t)e->buf };

	CHECK_EQ(write(fd, &mine, sizeof(mine)), sizeof(mine));
	CHECK_EQ(read(fd, peer, sizeof(*peer)), sizeof(*peer));
}

static void one_end(struct end *e, int fd, struct hello *peer)
{
	struct options o = DEFAULTS;
	struct ibv_pd *pd = ibv_alloc_pd(open_device(0));
	char c = 0;

	end_make(e, pd, &o, NULL);
	end_init(e, &o);
	exchange_hello(fd, e, peer);
	end_connect(e, peer->qpn, &o);
	CHECK_EQ(write(fd, &c, 1), 1);
	CHECK_EQ(read(fd, &c, 1), 1);
}

static void child_end(int fd)
{
	struct end e;
	struct hello peer;
	char c;

	one_end(&e, fd, &peer);
	CHECK_EQ(post_recv(&e, 1, BUF_SIZE), 0);
	expect_wc(&e, 1, IBV_WC_SUCCESS);
	CHECK(is_filled(e.buf, BUF_SIZE, 1));
	CHECK_EQ(post_send(&e, IBV_WR_SEND, 2, BUF_SIZE), 0);
	expect_wc(&e, 2, IBV_WC_SUCCESS);
	/* Waits to be killed; the engine serves the parent meanwhile. */
	CHECK_EQ(read(fd, &c, 1), 1);
}

/* Kills one of two processes in the middle of transfers. */
static void two_processes(void)
{
	struct end e;
	struct hello peer;
	int fd[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(fd[0]);
		child_end(fd[1]);
		_exit(0);
	}
	close(fd[1]);
	one_end(&e, fd[0], &peer);
	fill(e.buf, BUF_SIZE, 1);
	CHECK_EQ(post_recv(&e, 1, BUF_SIZE), 0);
	CHECK_EQ(post_send(&e, IBV_WR_SEND, 2, BUF_SIZE), 0);
	expect_wc(&e, 2, IBV_WC_SUCCESS);
	expect_wc(&e, 1, IBV_WC_SUCCESS);
	memset(e.buf, 0, BUF_SIZE);
	CHECK_EQ(post_rdma(&e, IBV_WR_RDMA_READ, 3, BUF_SIZE, peer.addr, peer.rkey), 0);
	expect_wc(&e, 3, IBV_WC_SUCCESS);
	CHECK(is_filled(e.buf, BUF_SIZE, 1));
	fill(e.buf, BUF_SIZE, 2);
	CHECK_EQ(post_rdma(&e, IBV_WR_RDMA_WRITE, 4, BUF_SIZE, peer.addr, peer.rkey), 0);
	expect_wc(&e, 4, IBV_WC_SUCCESS);
	CHECK_EQ(post_send(&e, IBV_WR_SEND, 5, 8), 0); /* no receive: stays */
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	expect_wc(&e, 5, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(state_of(e.qp), IBV_QPS_ERR);
}

/* A queue pair is destroyed and its buffer used again at once: the receiver has the message as it
 * was sent, or none. */
static void destroy_while_sending(void)
{
	struct options o = DEFAULTS;

	for (unsigned i = 0; i < 50; i++) {
		struct pair p;
		struct ibv_wc wc;
		pair_make(&p, &o);
		fill(p.a.buf, BUF_SIZE, i);
		CHECK_EQ(post_recv(&p.b, 1, BUF_SIZE), 0);
		CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 2, BUF_SIZE), 0);
		CHECK_EQ(ibv_destroy_qp(p.a.qp), 0);
		p.a.qp = NULL;
		memset(p.a.buf, 0xee, BUF_SIZE);
		if (ibv_poll_cq(p.b.cq, 1, &wc) == 1)
			CHECK(wc.status == IBV_WC_SUCCESS && is_filled(p.b.buf, BUF_SIZE, i));
		pair_free(&p);
	}
}

/* The thread sanitizer ends a child of fork() that begins a thread, unless it is told not to. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static void exchange_messages(struct pair *p)
{
	for (unsigned i = 0; i < 10; i++) {
		fill(p->a.buf, 20000, i);
		CHECK_EQ(post_recv(&p->b, 1, 20000), 0);
		CHECK_EQ(post_send(&p->a, IBV_WR_SEND, 2, 20000), 0);
		expect_wc(&p->b, 1, IBV_WC_SUCCESS);
		expect_wc(&p->a, 2, IBV_WC_SUCCESS);
		CHECK(is_filled(p->b.buf, 20000, i));
	}
}

/* The child of a process that uses the fabric has a part of its own in it; and it does not keep its
 * parent alive for others. */
static void forked(void)
{
	struct options o = DEFAULTS;
	struct end e;
	struct hello peer;
	int fd[2], status;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(fd[0]);
		one_end(&e, fd[1], &peer);
		pid_t grandchild = fork();
		if (grandchild == 0) {
			struct pair p;
			pair_make(&p, &o);
			exchange_messages(&p);
			_exit(0);
		}
		CHECK_EQ(waitpid(grandchild, &status, 0), grandchild);
		CHECK_EQ(status, 0);
		grandchild = fork();
		if (grandchild == 0) {
			char c;
			(void)!read(fd[1], &c, 1); /* stays until the test has ended */
			_exit(0);
		}
		CHECK_EQ(post_send(&e, IBV_WR_SEND, 1, 8), 0);
		expect_wc(&e, 1, IBV_WC_SUCCESS);
		CHECK_EQ(kill(getpid(), SIGKILL), 0);
	}
	close(fd[1]);
	one_end(&e, fd[0], &peer);
	CHECK_EQ(post_recv(&e, 2, 8), 0);
	expect_wc(&e, 2, IBV_WC_SUCCESS);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(post_send(&e, IBV_WR_SEND, 3, 8), 0);
	expect_wc(&e, 3, IBV_WC_RETRY_EXC_ERR);
	close(fd[0]);
}

/* Deregisters a region while it is read: the reader gets the old bytes or an error. */
static void deregister_while_read(void)
{
	struct options o = DEFAULTS;

	for (unsigned i = 0; i < 50; i++) {
		struct pair p;
		pair_make(&p, &o);
		struct ibv_mr *mr = ibv_reg_mr(p.pd, p.b.buf, BUF_SIZE, IBV_ACCESS_REMOTE_READ);
		fill(p.b.buf, BUF_SIZE, i);
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 1, BUF_SIZE, (uintptr_t)p.b.buf,
				   mr->rkey),
			 0);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		memset(p.b.buf, 0xee, BUF_SIZE);
		struct ibv_wc wc = wait_wc(&p.a);
		if (wc.status == IBV_WC_SUCCESS)
			CHECK(is_filled(p.a.buf, BUF_SIZE, i));
		else
			CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
		pair_free(&p);
	}
}

static void *work(void *arg)
{
	struct pair *p = arg;

	for (unsigned i = 0; i < 300; i++) {
		uint32_t len = i % 3 ? 100 + i : 100000;
		fill(p->a.buf, len, i);
		CHECK_EQ(post_recv(&p->b, 1, BUF_SIZE), 0);
		CHECK_EQ(post_send(&p->a, IBV_WR_SEND, 2, len), 0);
		expect_wc(&p->b, 1, IBV_WC_SUCCESS);
		CHECK(is_filled(p->b.buf, len, i));
		expect_wc(&p->a, 2, IBV_WC_SUCCESS);
		memset(p->a.buf, 0, len);
		CHECK_EQ(post_rdma(&p->a, IBV_WR_RDMA_READ, 3, len, (uintptr_t)p->b.buf,
				   p->b.mr->rkey),
			 0);
		expect_wc(&p->a, 3, IBV_WC_SUCCESS);
		CHECK(is_filled(p->a.buf, len, i));
	}
	return NULL;
}

static void threads(void)
{
	enum { N = 4 };
	struct options o = DEFAULTS;
	struct pair p[N];
	pthread_t t[N];

	for (int i = 0; i < N; i++)
		pair_make(&p[i], &o);
	for (int i = 0; i < N; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, work, &p[i]), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < N; i++)
		pair_free(&p[i]);
}

/* Several devices, and the limits and demands of iWARP. */
static void devices(void)
{
	struct options o = DEFAULTS;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int n;

	setenv("SOFTVERBS_DEVICES", "one=127.0.0.2:iwarp two=127.0.0.3,::1", 1);
	struct ibv_device **list = ibv_get_device_list(&n);
	CHECK(list && n == 2);
	CHECK(strcmp(ibv_get_device_name(list[0]), "one") == 0);
	CHECK_EQ(list[0]->transport_type, IBV_TRANSPORT_IWARP);
	CHECK_EQ(list[1]->transport_type, IBV_TRANSPORT_IB);
	CHECK(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
	ibv_free_device_list(list);

	struct pair p;
	pair_make(&p, &o);
	CHECK_EQ(ibv_query_device(p.ctx, &attr), 0);
	CHECK_EQ(attr.max_sge_rd, 1);
	CHECK_EQ(ibv_query_port(p.ctx, 1, &port), 0);
	CHECK_EQ(port.state, IBV_PORT_ACTIVE);
	CHECK_EQ(ibv_query_port(p.ctx, 2, &port), EINVAL);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND_WITH_IMM, 1, 1), EINVAL);
	uint64_t at = (uintptr_t)p.b.buf;
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 1, 8, at, p.b.mr->rkey), 0);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	struct ibv_mr *all = p.a.mr;
	p.a.mr = ibv_reg_mr(p.pd, p.a.buf, 8, IBV_ACCESS_LOCAL_WRITE);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 1, 8, at, p.b.mr->rkey), 0);
	expect_wc(&p.a, 1, IBV_WC_LOC_PROT_ERR);
	CHECK_EQ(ibv_dereg_mr(all), 0);
	pair_free(&p);
}

/* A thousand connections of one process have one link and no descriptors of their own. */
static void many_queue_pairs(void)
{
	enum { N = 1000 };
	struct options o = { .send_wr = 4, .recv_wr = 4, .sge = 1, .rnr_retry = 7 };
	struct ibv_context *ctx = open_device(0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 8 * N, NULL, NULL, 0);
	static struct end a[N], b[N];
	static uint8_t buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 4, 4, 1, 1, 0 }
	};

	int before = dup(0);
	for (int i = 0; i < N; i++) {
		a[i] = b[i] = (struct end){ .cq = cq, .buf = buf, .mr = mr };
		a[i].qp = ibv_create_qp(pd, &attr);
		b[i].qp = ibv_create_qp(pd, &attr);
		CHECK(a[i].qp && b[i].qp);
		end_init(&a[i], &o);
		end_init(&b[i], &o);
		end_connect(&a[i], b[i].qp->qp_num, &o);
		end_connect(&b[i], a[i].qp->qp_num, &o);
		CHECK_EQ(post_recv(&b[i], (uint64_t)i, 64), 0);
	}
	for (int i = 0; i < N; i++)
		CHECK_EQ(post_send(&a[i], IBV_WR_SEND, N + (uint64_t)i, 1), 0);
	for (int i = 0; i < 2 * N; i++)
		CHECK_EQ(wait_wc(&a[0]).status, IBV_WC_SUCCESS);
	int after = dup(0);
	CHECK(after - before < 8);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(ibv_destroy_qp(a[i].qp), 0);
		CHECK_EQ(ibv_destroy_qp(b[i].qp), 0);
	}
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

static const struct test tests[] = {
	{ "flush", flush_in_error_state },
	{ "unsignalled", unsignalled },
	{ "send_queue_full", send_queue_full },
	{ "lists", lists },
	{ "receive_queue_full", receive_queue_full },
	{ "completion_queue_overflow", completion_queue_overflow },
	{ "arming", arming },
	{ "solicited", solicited },
	{ "unacknowledged", unacknowledged },
	{ "shared_receives", srq_receives },
	{ "states", states },
	{ "no_answer", retries_exhausted },
	{ "two_processes", two_processes },
	{ "destroy_while_sending", destroy_while_sending },
	{ "forked", forked },
	{ "deregister_while_read", deregister_while_read },
	{ "threads", threads },
	{ "devices", devices },
	{ "many_queue_pairs", many_queue_pairs },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return test_main(tests, argc, argv);
}
