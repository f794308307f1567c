/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs, completion queues and memory regions: what the InfiniBand specification asks of them. */
#include <errno.h>
#include <string.h>

#include "tests/softverbs/test_fixture.h"

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

static void write_and_read(void)
{
	struct options o = DEFAULTS;
	struct pair p;

	pair_make(&p, &o);
	for (uint32_t len = 0; len <= BUF_SIZE; len = len ? len * 4 : 1) {
		fill(p.a.buf, len, len);
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, len, (uintptr_t)p.b.buf,
				   p.b.mr->rkey),
			 0);
		CHECK_EQ(expect_wc(&p.a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
		CHECK(is_filled(p.b.buf, len, len));
		fill(p.b.buf, len, len + 1);
		CHECK_EQ(post_rdma(&p.a, IBV_WR_RDMA_READ, 2, len, (uintptr_t)p.b.buf,
				   p.b.mr->rkey),
			 0);
		CHECK_EQ(expect_wc(&p.a, 2, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
		CHECK(is_filled(p.a.buf, len, len + 1));
	}
	pair_free(&p);
}

static const struct test tests[] = {
	{ "send_and_receive", send_and_receive },
	{ "write_and_read", write_and_read },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return test_main(tests, argc, argv);
}
