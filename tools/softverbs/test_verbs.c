/* SPDX-License-Identifier: BSD-2-Clause */
/* Transfers: what the InfiniBand specification asks of queue pairs and memory regions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/sinks.h"
#include "tools/softverbs/test_fixture.h"

static void send_and_receive(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	for (uint32_t len = 0; len <= BUF_SIZE; len = len ? len * 4 : 1) {
		fill(p.a.buf, len, len);
		CHECK_EQ(post_recv(&p.b, 2, BUF_SIZE), 0);
		CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, len), 0);
		CHECK_EQ(expect_wc(&p.a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
		struct ibv_wc wc = expect_wc(&p.b, 2, IBV_WC_SUCCESS);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.byte_len, len);
		CHECK(is_filled(p.b.buf, len, len));
	}
	pair_free(&p);
}

static void rdma_write_and_read(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	for (uint32_t len = 0; len <= BUF_SIZE; len = len ? len * 4 : 1) {
		uint64_t at = (uintptr_t)p.b.buf;
		fill(p.a.buf, len, len);
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, len, at, p.b.mr->rkey), 0);
		CHECK_EQ(expect_wc(&p.a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
		CHECK(is_filled(p.b.buf, len, len));
		fill(p.b.buf, len, len + 1);
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 2, len, at, p.b.mr->rkey), 0);
		CHECK_EQ(expect_wc(&p.a, 2, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
		CHECK(is_filled(p.a.buf, len, len + 1));
	}
	pair_free(&p);
}

/* Immediate data, with and without a message; the invalidation of a key. */
static void immediate_and_invalidate(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };

	pair_make(&p, &o);
	sge = (struct ibv_sge){ (uintptr_t)p.a.buf, 8, p.a.mr->lkey };
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(0x12345678);
	post_recv(&p.b, 1, 64);
	post_recv(&p.b, 2, 64);
	CHECK_EQ(post_wr(&p.a, &wr), 0);
	struct ibv_wc wc = expect_wc(&p.b, 1, IBV_WC_SUCCESS);
	CHECK(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htobe32(0x12345678));
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.buf;
	wr.wr.rdma.rkey = p.b.mr->rkey;
	CHECK_EQ(post_wr(&p.a, &wr), 0);
	wc = expect_wc(&p.b, 2, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(wc.byte_len, 8);

	struct ibv_mr *mr =
		ibv_reg_mr(p.pd, p.b.buf, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_WRITE, 3, 8, (uintptr_t)p.b.buf, mr->rkey), 0);
	expect_wc(&p.a, 3, IBV_WC_SUCCESS);
	post_recv(&p.b, 4, 64);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = mr->rkey;
	CHECK_EQ(post_wr(&p.a, &wr), 0);
	wc = expect_wc(&p.b, 4, IBV_WC_SUCCESS);
	CHECK(wc.wc_flags & IBV_WC_WITH_INV);
	CHECK_EQ(wc.invalidated_rkey, mr->rkey);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_WRITE, 5, 8, (uintptr_t)p.b.buf, mr->rkey), 0);
	expect_wc(&p.a, 5, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	pair_free(&p);
}

static void scatter_and_gather(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	struct ibv_sge from[4], to[4];
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = from,
				  .num_sge = 4,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = to, .num_sge = 4 }, *bad;

	pair_make(&p, &o);
	fill(p.a.buf, 40000, 5);
	for (int i = 0; i < 4; i++) {
		from[i] = (struct ibv_sge){ (uintptr_t)p.a.buf + i * 10000, 10000, p.a.mr->lkey };
		to[i] = (struct ibv_sge){ (uintptr_t)p.b.buf + i * 20000,
					  i == 1 ? 0 : 13000u + (unsigned)i, p.b.mr->lkey };
	}
	to[3].length = 20000;
	CHECK_EQ(ibv_post_recv(p.b.qp, &recv, &bad), 0);
	CHECK_EQ(post_wr(&p.a, &wr), 0);
	CHECK_EQ(expect_wc(&p.b, 2, IBV_WC_SUCCESS).byte_len, 40000);
	CHECK(memcmp(p.b.buf, p.a.buf, 13000) == 0);
	CHECK(memcmp(p.b.buf + 40000, p.a.buf + 13000, 13002) == 0);
	CHECK(memcmp(p.b.buf + 60000, p.a.buf + 26002, 13998) == 0);
	wr.num_sge = 5;
	CHECK_EQ(post_wr(&p.a, &wr), EINVAL);
	recv.num_sge = 5;
	CHECK_EQ(ibv_post_recv(p.b.qp, &recv, &bad), EINVAL);
	pair_free(&p);
}

/* The data are those at the time of the post, and no key is needed. */
static void inline_data(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	uint8_t data[65];
	struct ibv_sge sge = { (uintptr_t)data, 64, 0 };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE };

	pair_make(&p, &o);
	fill(data, 64, 9);
	/* No receive yet: the message is sent again after the data have changed. */
	CHECK_EQ(post_wr(&p.a, &wr), 0);
	memset(data, 0, sizeof(data));
	post_recv(&p.b, 2, 64);
	expect_wc(&p.b, 2, IBV_WC_SUCCESS);
	CHECK(is_filled(p.b.buf, 64, 9));
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	sge.length = 65;
	CHECK_EQ(post_wr(&p.a, &wr), EINVAL);
	pair_free(&p);
}

static void atomics(void)
{
	struct options o = DEFAULTS;
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .send_flags = IBV_SEND_SIGNALED };

	pair_make(&p, &o);
	uint64_t *target = (uint64_t *)p.b.buf, *result = (uint64_t *)p.a.buf;
	sge = (struct ibv_sge){ (uintptr_t)result, 8, p.a.mr->lkey };
	*target = 40;
	wr.wr.atomic.remote_addr = (uintptr_t)target;
	wr.wr.atomic.rkey = p.b.mr->rkey;
	wr.wr.atomic.compare_add = 2;
	CHECK_EQ(post_wr(&p.a, &wr), 0);
	CHECK_EQ(expect_wc(&p.a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	CHECK_EQ(*target, 42);
	CHECK_EQ(*result, 40);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 41;
	wr.wr.atomic.swap = 7;
	CHECK_EQ(post_wr(&p.a, &wr), 0);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	CHECK_EQ(*target, 42);
	CHECK_EQ(*result, 42);
	wr.wr.atomic.compare_add = 42;
	CHECK_EQ(post_wr(&p.a, &wr), 0);
	expect_wc(&p.a, 1, IBV_WC_SUCCESS);
	CHECK_EQ(*target, 7);
	pair_free(&p);
}

/* More work requests than fit in any socket, and of all kinds: they complete in order. */
static void order(void)
{
	enum { N = 2000, LEN = 20000 };
	struct options o = DEFAULTS;
	struct pair p;
	unsigned posted = 0, done = 0;
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
						  IBV_WR_SEND };

	pair_make(&p, &o);
	for (unsigned i = 0; i < 16; i++)
		post_recv(&p.b, i, LEN);
	while (done < N) {
		uint32_t len = posted % 3 ? LEN : 100;
		if (posted < N && posted - done < o.send_wr) {
			CHECK_EQ(post_rdma(&p.a, ops[posted % 5], posted, len, (uintptr_t)p.b.buf,
					   p.b.mr->rkey),
				 0);
			posted++;
			continue;
		}
		CHECK_EQ(wait_wc(&p.a).wr_id, done);
		if (done % 5 == 4) {
			CHECK_EQ(wait_wc(&p.b).status, IBV_WC_SUCCESS);
			post_recv(&p.b, 0, LEN);
		}
		done++;
	}
	pair_free(&p);
}

static void message_too_long(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	post_recv(&p.b, 1, 100);
	post_recv(&p.b, 2, 100);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 3, 101), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 4, 1), 0);
	expect_wc(&p.b, 1, IBV_WC_LOC_LEN_ERR);
	expect_wc(&p.b, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&p.a, 3, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(&p.a, 4, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(state_of(p.a.qp), IBV_QPS_ERR);
	CHECK_EQ(state_of(p.b.qp), IBV_QPS_ERR);
	pair_free(&p);
}

struct access_case {
	enum ibv_wr_opcode op;
	int mr_access; /* access flags of the named region */
	unsigned qp_access;
	int64_t offset; /* from the region's start, which is 4096 into the buffer */
	uint32_t len;	/* the region has 4096 */
	bool other_pd;
	bool other_key;
	bool ok;
};

#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const struct access_case access_cases[] = {
	{ IBV_WR_RDMA_WRITE, RW, RW, 0, 4096, false, false, true },
	{ IBV_WR_RDMA_READ, RW, RW, 0, 4096, false, false, true },
	{ IBV_WR_RDMA_WRITE, RW, RW, 0, 4097, false, false, false },
	{ IBV_WR_RDMA_READ, RW, RW, 1, 4096, false, false, false },
	{ IBV_WR_RDMA_WRITE, RW, RW, -1, 4096, false, false, false },
	{ IBV_WR_RDMA_READ, RW, RW, 4096, 1, false, false, false },
	{ IBV_WR_RDMA_WRITE, RW, RW, INT64_MIN, 4096, false, false, false },
	{ IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, RW, 0, 1, false,
	  false, false },
	{ IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, RW, 0, 1, false,
	  false, false },
	{ IBV_WR_RDMA_WRITE, RW, IBV_ACCESS_REMOTE_READ, 0, 1, false, false, false },
	{ IBV_WR_RDMA_READ, RW, IBV_ACCESS_REMOTE_WRITE, 0, 1, false, false, false },
	{ IBV_WR_RDMA_WRITE, RW, RW, 0, 1, true, false, false },
	{ IBV_WR_RDMA_READ, RW, RW, 0, 1, false, true, false },
	{ IBV_WR_RDMA_WRITE, RW, RW, 0, 0, false, true, true }, /* an empty list needs no key */
};

static void access_case(const struct access_case *c)
{
	struct options o = DEFAULTS;
	struct pair p;

	o.access = c->qp_access;
	pair_make(&p, &o);
	struct ibv_pd *pd = ibv_alloc_pd(p.ctx);
	uint8_t *at = p.b.buf + 4096;
	struct ibv_mr *mr = ibv_reg_mr(c->other_pd ? pd : p.pd, at, 4096, c->mr_access);
	CHECK(mr);
	uint32_t rkey = mr->rkey ^ (c->other_key ? 1 : 0);
	CHECK_EQ(post_rdma(&p.a, c->op, 1, c->len, (uintptr_t)at + (uint64_t)c->offset, rkey), 0);
	expect_wc(&p.a, 1, c->ok ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	if (!c->ok)
		expect_event(p.ctx, IBV_EVENT_QP_ACCESS_ERR, p.b.qp);
	CHECK_EQ(state_of(p.b.qp), c->ok ? IBV_QPS_RTS : IBV_QPS_ERR);
	CHECK_EQ(ibv_dealloc_pd(pd), c->other_pd ? EBUSY : 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	if (c->other_pd)
		CHECK_EQ(ibv_dealloc_pd(pd), 0);
	pair_free(&p);
}

static void remote_access(void)
{
	for (size_t i = 0; i < sizeof(access_cases) / sizeof(access_cases[0]); i++)
		access_case(&access_cases[i]);
}

/* Local keys: of the other domain, out of bounds, of a region that has gone, not to be written. */
static void local_access(void)
{
	struct options o = DEFAULTS;

	for (int i = 0; i < 5; i++) {
		struct pair p;
		pair_make(&p, &o);
		struct ibv_pd *pd = ibv_alloc_pd(p.ctx);
		struct ibv_mr *mr = ibv_reg_mr(i == 0 ? pd : p.pd, p.a.buf, 100, 0);
		struct ibv_sge sge = { (uintptr_t)p.a.buf, i == 1 ? 101 : 50, mr->lkey };
		struct ibv_send_wr wr = { .wr_id = 1,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = i == 3 ? IBV_WR_RDMA_READ : IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED,
					  .wr.rdma = { (uintptr_t)p.b.buf, p.b.mr->rkey } };
		if (i == 2) {
			CHECK_EQ(ibv_dereg_mr(mr), 0);
			mr = NULL;
		}
		post_recv(&p.b, 2, 100);
		CHECK_EQ(post_wr(&p.a, &wr), 0);
		expect_wc(&p.a, 1, i == 4 ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
		CHECK_EQ(state_of(p.a.qp), i == 4 ? IBV_QPS_RTS : IBV_QPS_ERR);
		if (mr)
			CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(ibv_dealloc_pd(pd), 0);
		pair_free(&p);
	}
}

/* Receive with a wrong key: both ends learn of it. */
static void receive_access(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	struct ibv_mr *mr = ibv_reg_mr(p.pd, p.b.buf, 100, 0);
	struct ibv_sge sge = { (uintptr_t)p.b.buf, 100, mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	CHECK_EQ(ibv_post_recv(p.b.qp, &recv, &bad), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 2, 10), 0);
	expect_wc(&p.b, 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(&p.a, 2, IBV_WC_REM_OP_ERR);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	pair_free(&p);
}

static void bad_registrations(void)
{
	struct ibv_context *ctx = open_device(0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char c;

	errno = 0;
	CHECK(!ibv_reg_mr(pd, (void *)4096, 4096, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
	CHECK(!ibv_reg_mr(pd, &c, 1, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	CHECK(!ibv_reg_mr(pd, &c, SIZE_MAX, 0) && errno == EINVAL);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* Without a receive, the message is sent again as often as rnr_retry says, or for ever. */
static void rnr_retries(void)
{
	for (int retries = 0; retries < 3; retries++) {
		struct options o = DEFAULTS;
		struct pair p;
		o.rnr_retry = (uint8_t)retries;
		pair_make(&p, &o);
		CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, 10), 0);
		expect_wc(&p.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		CHECK_EQ(state_of(p.a.qp), IBV_QPS_ERR);
		CHECK_EQ(state_of(p.b.qp), IBV_QPS_RTS);
		pair_free(&p);
	}
	struct options o = DEFAULTS;
	struct pair p;
	pair_make(&p, &o);
	fill(p.a.buf, 200000, 3);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 1, 200000), 0);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 2, 0, (uintptr_t)p.b.buf, p.b.mr->rkey), 0);
	CHECK_EQ(post_send(&p.a, IBV_WR_SEND, 3, 1), 0);
	/* Something else goes on meanwhile: the link is not blocked. */
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(post_rdma(&p.b, IBV_WR_RDMA_READ, 4, 1, (uintptr_t)p.a.buf, p.a.mr->rkey),
			 0);
		expect_wc(&p.b, 4, IBV_WC_SUCCESS);
	}
	post_recv(&p.b, 5, 200000);
	expect_wc(&p.b, 5, IBV_WC_SUCCESS);
	CHECK(is_filled(p.b.buf, 200000, 3));
	post_recv(&p.b, 6, 1);
	expect_wc(&p.b, 6, IBV_WC_SUCCESS);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&p.a, id, IBV_WC_SUCCESS);
	pair_free(&p);
}

/* More Reads than may be outstanding wait at the requester; a responder that allows fewer than its
 * peer believes refuses. */
static void read_limits(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	o.rd_atomic = o.dest_rd_atomic = 1;
	pair_make(&p, &o);
	for (uint64_t id = 0; id < 16; id++)
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, id, 50000, (uintptr_t)p.b.buf,
				   p.b.mr->rkey),
			 0);
	for (uint64_t id = 0; id < 16; id++)
		expect_wc(&p.a, id, IBV_WC_SUCCESS);
	pair_free(&p);

	o.rd_atomic = 4;
	o.dest_rd_atomic = 0;
	pair_make(&p, &o);
	CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 1, 8, (uintptr_t)p.b.buf, p.b.mr->rkey), 0);
	expect_wc(&p.a, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_event(p.ctx, IBV_EVENT_QP_REQ_ERR, p.b.qp);
	pair_free(&p);
}

/* A Read over iWARP: the peer learns the sink, and hardware wants rights of the peer's for it. */
static void read_sinks(void)
{
	static const char *const kinds[] = { "", ":iwarp", ":siw" };
	struct options o = DEFAULTS;
	char devices[64] = "";
	struct softverbs_sink sink;

	for (unsigned i = 0; i < 3; i++)
		sprintf(devices + strlen(devices), "d%u=127.0.0.%u%s ", i, i + 1, kinds[i]);
	setenv("SOFTVERBS_DEVICES", devices, 1);
	for (unsigned i = 0; i < 3; i++) {
		struct pair p;
		o.device = i;
		pair_make(&p, &o);
		const uint64_t at = (uintptr_t)p.b.buf;
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 1, 100, at, p.b.mr->rkey), 0);
		expect_wc(&p.a, 1, IBV_WC_SUCCESS);
		if (i > 0) {
			CHECK_EQ(softverbs_sinks(&sink, 1), 1);
			CHECK_EQ(sink.key, p.a.mr->lkey);
			CHECK_EQ(sink.address, (uintptr_t)p.a.buf);
			CHECK_EQ(sink.length, 100);
			CHECK_EQ(sink.qp_num, p.b.qp->qp_num);
		} else {
			CHECK_EQ(softverbs_sinks(&sink, 1), 0);
		}
		struct ibv_mr *all = p.a.mr;
		p.a.mr = ibv_reg_mr(p.pd, p.a.buf, 100, IBV_ACCESS_LOCAL_WRITE);
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 2, 100, at, p.b.mr->rkey), 0);
		expect_wc(&p.a, 2, i == 1 ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
		CHECK_EQ(ibv_dereg_mr(all), 0);
		pair_free(&p);
	}
}

static const struct test tests[] = {
	{ "send_and_receive", send_and_receive },
	{ "write_and_read", rdma_write_and_read },
	{ "immediate_and_invalidate", immediate_and_invalidate },
	{ "scatter_and_gather", scatter_and_gather },
	{ "inline_data", inline_data },
	{ "atomics", atomics },
	{ "order", order },
	{ "message_too_long", message_too_long },
	{ "remote_access", remote_access },
	{ "local_access", local_access },
	{ "receive_access", receive_access },
	{ "bad_registrations", bad_registrations },
	{ "receiver_not_ready", rnr_retries },
	{ "read_limits", read_limits },
	{ "read_sinks", read_sinks },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return test_main(tests, argc, argv);
}
