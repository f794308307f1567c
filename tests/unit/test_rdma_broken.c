/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that have broken a connection: recognition, and eviction from the table. */
#include <criterion/criterion.h>
#include <string.h>

#include "transport/rdma/rdma_broken.h"

#define SECOND 1000000000ull

static struct rr_broken b;
static const struct rpc_address here = { { 10, 1 }, 0 }, there = { { 10, 2 }, 0 };

static struct rr_header call_of(uint32_t xid, uint32_t handle)
{
	struct rr_header h = { .xid = xid, .vers = 1, .credits = 32, .nreads = 1 };

	h.read[0].position = 100;
	h.read[0].target = (struct rr_segment){ handle, 4096, 0x1000 };
	return h;
}

static void set_up(void)
{
	rr_broken_init(&b);
}

static void tear_down(void)
{
	rr_broken_fini(&b);
}

TestSuite(rdma_broken, .init = set_up, .fini = tear_down);

Test(rdma_broken, the_same_call_only)
{
	struct rr_header h = call_of(7, 1), other;

	cr_expect_not(rr_broken_has(&b, &here, &h, SECOND));
	rr_broken_add(&b, &here, &h, RR_PROVEN, SECOND);
	cr_expect(rr_broken_has(&b, &here, &h, 2 * SECOND));
	h.credits = 64; /* may differ */
	cr_expect(rr_broken_has(&b, &here, &h, 2 * SECOND));
	cr_expect_not(rr_broken_has(&b, &there, &h, 2 * SECOND), "another client");
	other = call_of(8, 1);
	cr_expect_not(rr_broken_has(&b, &here, &other, 2 * SECOND), "another call");
	other = call_of(7, 2);
	cr_expect_not(rr_broken_has(&b, &here, &other, 2 * SECOND), "other memory");
	other = h;
	other.read[0].target.length--;
	cr_expect_not(rr_broken_has(&b, &here, &other, 2 * SECOND), "another length");
	other = h;
	other.read[0].position += 4;
	cr_expect_not(rr_broken_has(&b, &here, &other, 2 * SECOND), "another position");
	other = h;
	other.has_reply = true;
	cr_expect_not(rr_broken_has(&b, &here, &other, 2 * SECOND), "a Reply chunk besides");
}

/* A call that was running when one connection broke is no suspect; at the second one it is. */
Test(rdma_broken, suspected_twice)
{
	const struct rr_header h = call_of(7, 1), other = call_of(8, 1);

	rr_broken_add(&b, &here, &h, RR_SUSPECTED, SECOND);
	rr_broken_add(&b, &here, &other, RR_SUSPECTED, SECOND);
	cr_expect_not(rr_broken_has(&b, &here, &h, SECOND));
	rr_broken_add(&b, &here, &h, RR_SUSPECTED, 2 * SECOND);
	cr_expect(rr_broken_has(&b, &here, &h, 2 * SECOND));
	cr_expect_not(rr_broken_has(&b, &here, &other, 2 * SECOND));
	rr_broken_add(&b, &here, &other, RR_SUSPECTED, (3 + RR_BROKEN_SECONDS) * SECOND);
	cr_expect_not(rr_broken_has(&b, &here, &other, (3 + RR_BROKEN_SECONDS) * SECOND),
		      "long apart");
}

/* The same segments as one chunk, as two, and as a Reply chunk are different calls. */
Test(rdma_broken, chunks_are_told_apart)
{
	struct rr_header h = { .xid = 1, .nwrites = 1, .nsegs = 2 }, two = h, reply = h;

	h.seg[0] = two.seg[0] = reply.seg[0] = (struct rr_segment){ 1, 10, 0 };
	h.seg[1] = two.seg[1] = reply.seg[1] = (struct rr_segment){ 2, 20, 0 };
	h.write[0] = (struct rr_write_chunk){ 0, 2 };
	two.nwrites = 2;
	two.write[0] = (struct rr_write_chunk){ 0, 1 };
	two.write[1] = (struct rr_write_chunk){ 1, 1 };
	reply.nwrites = 0;
	reply.has_reply = true;
	reply.reply = (struct rr_write_chunk){ 0, 2 };
	rr_broken_add(&b, &here, &h, RR_PROVEN, SECOND);
	cr_expect(rr_broken_has(&b, &here, &h, SECOND));
	cr_expect_not(rr_broken_has(&b, &here, &two, SECOND));
	cr_expect_not(rr_broken_has(&b, &here, &reply, SECOND));
}

Test(rdma_broken, forgotten_after_a_while)
{
	const struct rr_header h = call_of(7, 1);

	rr_broken_add(&b, &here, &h, RR_PROVEN, SECOND);
	cr_expect(rr_broken_has(&b, &here, &h, (1 + RR_BROKEN_SECONDS) * SECOND));
	cr_expect_not(rr_broken_has(&b, &here, &h, (2 + RR_BROKEN_SECONDS) * SECOND));
	cr_expect_eq(b.n, 0, "nothing is looked at any more");
}

/* A client with very many suspects evicts only its own. */
Test(rdma_broken, a_client_has_few_places)
{
	const struct rr_header mine = call_of(7, 1);

	rr_broken_add(&b, &here, &mine, RR_PROVEN, SECOND);
	for (uint32_t i = 0; i < 10 * RR_BROKEN_CALLS; i++) {
		struct rr_header h = call_of(i, 1);
		rr_broken_add(&b, &there, &h, RR_PROVEN, SECOND + i);
		cr_assert(rr_broken_has(&b, &there, &h, SECOND + i));
	}
	cr_expect(rr_broken_has(&b, &here, &mine, 2 * SECOND));
	unsigned kept = 0;
	for (uint32_t i = 0; i < 10 * RR_BROKEN_CALLS; i++) {
		struct rr_header h = call_of(i, 1);
		kept += rr_broken_has(&b, &there, &h, 2 * SECOND);
	}
	cr_expect_eq(kept, RR_BROKEN_OF_HOST);
}

/* Very many clients evict the oldest entries, and there is always a free one. */
Test(rdma_broken, the_oldest_gives_way)
{
	const struct rr_header h = call_of(7, 1);
	struct rpc_address k = { { 0 }, 0 };

	for (uint32_t i = 0; i < 3 * RR_BROKEN_CALLS; i++) {
		memcpy(k.bytes, &i, sizeof(i));
		rr_broken_add(&b, &k, &h, RR_PROVEN, SECOND + i);
	}
	for (uint32_t i = 0; i < 3 * RR_BROKEN_CALLS; i++) {
		memcpy(k.bytes, &i, sizeof(i));
		cr_expect_eq(rr_broken_has(&b, &k, &h, 2 * SECOND), i >= 2 * RR_BROKEN_CALLS);
	}
}

/* The addresses of an IPv6 network are one host: they evict only their own. */
Test(rdma_broken, a_network_has_few_places)
{
	const struct rr_header mine = call_of(7, 1);
	struct rpc_address k = { { 0x20, 1, 0xd, 0xb8 }, 0 };

	rr_broken_add(&b, &here, &mine, RR_PROVEN, SECOND);
	for (uint32_t i = 0; i < 2 * RR_BROKEN_CALLS; i++) {
		memcpy(k.bytes + 12, &i, sizeof(i));
		rr_broken_add(&b, &k, &mine, RR_PROVEN, SECOND + i);
	}
	cr_expect(rr_broken_has(&b, &here, &mine, 2 * SECOND));
	cr_expect_eq(b.quota.used, 1 + RR_BROKEN_OF_HOST);
}
