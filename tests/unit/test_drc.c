/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rpc/principal.h"
#include "tests/unit/rpc_fake.h"

static struct fake f;
static struct fake_conn conn;
static uint8_t buf[2048];
static struct xdr_out call;

static void make(size_t entries)
{
	fake_init(&f, entries);
	fake_conn_init(&conn, 1, 1, 700);
}

static void end(void)
{
	cr_assert_eq(fake_leaks(&f), 0);
	fake_fini(&f);
}

/* Sends COUNT with this xid and argument from c; returns the answer. */
static uint32_t count(struct fake_conn *c, uint32_t xid, uint32_t arg)
{
	const unsigned before = c->replies;

	xdr_out_init(&call, buf, sizeof(buf));
	fake_call(&call, xid, FAKE_COUNT);
	xdr_put_u32(&call, arg);
	fake_dispatch(&f, c, &call);
	cr_assert_eq(c->replies, before + 1);
	cr_assert_eq(fake_word(c, 0), xid);
	cr_assert_eq(fake_word(c, 5), RPC_SUCCESS);
	return fake_word(c, 6);
}

Test(drc, a_retransmission_gets_the_first_reply)
{
	struct drc_stats s;

	make(64);
	cr_assert_eq(count(&conn, 1, 0), 1);
	cr_assert_eq(count(&conn, 1, 0), 1);
	cr_assert_eq(count(&conn, 2, 0), 2);
	cr_assert_eq(count(&conn, 1, 0), 1);
	drc_stats(f.server.drc, &s);
	cr_assert_eq(s.hits, 2);
	cr_assert_eq(s.misses, 2);
	cr_assert_eq(s.entries, 2);
	cr_assert_gt(s.bytes, 56);
	end();
}

Test(drc, a_call_that_needs_no_cache_runs_again)
{
	struct drc_stats s;

	make(64);
	for (uint32_t len = 0; len <= 1; len++) {
		for (int i = 0; i < 2; i++) {
			xdr_out_init(&call, buf, sizeof(buf));
			fake_call(&call, 1, FAKE_REST);
			xdr_put_opaque(&call, "x", len);
			fake_dispatch(&f, &conn, &call);
			cr_assert_eq(fake_word(&conn, 6), len);
		}
	}
	cr_assert_eq(f.count, 3);
	drc_stats(f.server.drc, &s);
	cr_assert_eq(s.hits, 1);
	end();
}

static uint64_t clock_ns;

static uint64_t told_time(void)
{
	return clock_ns;
}

static void pass_seconds(uint64_t n)
{
	clock_ns += n * 1000000000u;
}

/* Retransmissions over a new connection are recognized. Linux's client keeps its port over TCP, and
 * cannot over RDMA. */
Test(drc, a_client_that_connects_anew_is_known)
{
	struct fake_conn again, rdma, rdma_again;

	make(64);
	fake_conn_init(&again, 2, 1, 700);
	fake_conn_rdma(&rdma, 3, 2, 4000);
	fake_conn_rdma(&rdma_again, 4, 2, 4001);
	cr_assert_eq(count(&conn, 1, 0), 1);
	cr_assert_eq(count(&again, 1, 0), 1);
	cr_assert_eq(count(&rdma, 1, 0), 2);
	cr_assert_eq(count(&rdma_again, 1, 0), 2);
	end();
}

Test(drc, another_address_or_over_tcp_another_port_is_another_client)
{
	struct fake_conn port, host, rdma, rdma_host;

	make(64);
	fake_conn_init(&port, 2, 1, 999);
	fake_conn_init(&host, 3, 2, 700);
	fake_conn_rdma(&rdma, 4, 1, 700);
	fake_conn_rdma(&rdma_host, 5, 2, 700);
	cr_assert_eq(count(&conn, 1, 0), 1);
	cr_assert_eq(count(&port, 1, 0), 2);
	cr_assert_eq(count(&host, 1, 0), 3);
	cr_assert_eq(count(&rdma, 1, 0), 4, "the transport tells them apart, too");
	cr_assert_eq(count(&rdma_host, 1, 0), 5);
	end();
}

Test(drc, a_port_of_udp_is_not_the_tcp_port_of_that_number)
{
	struct fake_conn udp, udp_again, udp_other;

	make(64);
	fake_conn_udp(&udp, 2, 1, 700);
	fake_conn_udp(&udp_again, 3, 1, 700);
	fake_conn_udp(&udp_other, 4, 1, 701);
	cr_assert_eq(count(&conn, 1, 0), 1);
	cr_assert_eq(count(&udp, 1, 0), 2);
	cr_assert_eq(count(&udp_again, 1, 0), 2);
	cr_assert_eq(count(&udp_other, 1, 0), 3);
	cr_assert_eq(count(&conn, 1, 0), 1);
	end();
}

Test(drc, a_reply_is_old_after_two_minutes)
{
	struct drc_stats s;

	make(64);
	drc_set_clock(f.server.drc, told_time);
	cr_assert_eq(count(&conn, 1, 0), 1);
	pass_seconds(DRC_AGE_SECONDS - 60);
	cr_assert_eq(count(&conn, 1, 0), 1);
	pass_seconds(60);
	cr_assert_eq(count(&conn, 1, 0), 1, "asking does not make it younger");
	pass_seconds(1);
	cr_assert_eq(count(&conn, 1, 0), 2, "now it is a new call");
	cr_assert_eq(count(&conn, 1, 0), 2);
	drc_stats(f.server.drc, &s);
	cr_assert_eq(s.expired, 1);
	cr_assert_eq(s.entries, 1);
	end();
}

Test(drc, old_replies_give_their_memory_back_as_others_come)
{
	struct drc_stats s;

	make(64);
	drc_set_clock(f.server.drc, told_time);
	for (uint32_t xid = 1; xid <= 40; xid++)
		count(&conn, xid, 0);
	pass_seconds(DRC_AGE_SECONDS + 1);
	for (uint32_t xid = 101; xid <= 110; xid++)
		count(&conn, xid, 0);
	drc_stats(f.server.drc, &s);
	cr_assert_eq(s.expired, 40);
	cr_assert_eq(s.evicted, 0);
	cr_assert_eq(s.entries, 10);
	end();
}

/* Sends PENDING from c. True if it ran and was not answered at once. */
static bool ran(struct fake_conn *c, uint32_t xid)
{
	const unsigned before = f.count;

	xdr_out_init(&call, buf, sizeof(buf));
	fake_call(&call, xid, FAKE_PENDING);
	xdr_put_u32(&call, xid);
	fake_dispatch(&f, c, &call);
	return f.count > before;
}

Test(drc, what_runs_is_not_too_old)
{
	struct fake_conn again;

	make(64);
	drc_set_clock(f.server.drc, told_time);
	fake_conn_init(&again, 2, 1, 700);
	cr_assert(ran(&conn, 1));
	pass_seconds(10 * DRC_AGE_SECONDS);
	cr_assert_not(ran(&again, 1), "it waits for the first");
	fake_complete(&f, f.pending, RPC_RUN_DONE);
	cr_assert_eq(fake_run_inbox(&f), 1);
	cr_assert_eq(again.replies, 1);
	cr_assert_eq(f.count, 1);
	end();
}

/*
 * Processes behind one address may use the same xid. A known limit: the same call (xid, procedure,
 * all arguments, identity) within two minutes is taken for a retransmission. Over TCP that needs
 * the port of an earlier connection, over RDMA it always applies.
 */
Test(drc, what_two_processes_behind_one_address_do_to_each_other)
{
	struct fake_conn tcp_other, tcp_reused, rdma, rdma_other;
	uint32_t n;

	make(64);
	drc_set_clock(f.server.drc, told_time);
	fake_conn_init(&tcp_other, 2, 1, 701);
	fake_conn_init(&tcp_reused, 3, 1, 700);
	fake_conn_rdma(&rdma, 4, 1, 1);
	fake_conn_rdma(&rdma_other, 5, 1, 2);
	n = count(&conn, 1, 0);
	cr_assert_neq(count(&tcp_other, 1, 0), n, "TCP, a port of its own: nothing");
	cr_assert_eq(count(&tcp_reused, 1, 0), n, "TCP, the same port: the same call is answered");
	cr_assert_neq(count(&tcp_reused, 1, 1), n, "other arguments are not");
	n = count(&rdma, 1, 0);
	cr_assert_eq(count(&rdma_other, 1, 0), n, "RDMA: the same call is answered");
	cr_assert_neq(count(&rdma_other, 1, 1), n, "other arguments are not");
	cr_assert_neq(count(&rdma_other, 2, 0), n, "another xid is not");
	pass_seconds(DRC_AGE_SECONDS + 1);
	cr_assert_gt(count(&tcp_reused, 1, 0), n, "and nothing later");
	cr_assert_gt(count(&rdma_other, 1, 0), n);
	end();
}

Test(drc, a_call_of_another_process_that_is_the_same_waits_for_the_first)
{
	struct fake_conn port, rdma, rdma_other;

	make(64);
	fake_conn_init(&port, 2, 1, 701);
	fake_conn_rdma(&rdma, 4, 1, 1);
	fake_conn_rdma(&rdma_other, 5, 1, 2);
	cr_assert(ran(&conn, 1));
	struct rpc_request *first = f.pending;
	cr_assert(ran(&port, 1), "TCP: not held up");
	fake_complete(&f, f.pending, RPC_RUN_DONE);
	fake_complete(&f, first, RPC_RUN_DONE);
	cr_assert(ran(&rdma, 1));
	cr_assert_not(ran(&rdma_other, 1), "RDMA: held up");
	fake_complete(&f, f.pending, RPC_RUN_DONE);
	cr_assert_eq(fake_run_inbox(&f), 1);
	cr_assert_eq(rdma_other.replies, 1);
	end();
}

Test(drc, a_mapped_address_is_the_ipv4_client)
{
	struct fake_conn mapped;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&mapped.base.peer;

	make(64);
	fake_conn_init(&mapped, 2, 1, 0);
	memset(&mapped.base.peer, 0, sizeof(mapped.base.peer));
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(700);
	memcpy(&sin6->sin6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01", 16);
	cr_assert_eq(count(&conn, 1, 0), 1);
	cr_assert_eq(count(&mapped, 1, 0), 1);
	sin6->sin6_addr.s6_addr[15] = 2;
	cr_assert_eq(count(&mapped, 1, 0), 2);
	end();
}

/* Sends COUNT under xid 1 with one word of the credential (at byte `at`) replaced. */
static uint32_t count_as(uint32_t at, uint32_t word)
{
	xdr_out_init(&call, buf, sizeof(buf));
	fake_call(&call, 1, FAKE_COUNT);
	xdr_put_u32(&call, 0);
	xdr_patch_u32(&call, at, word);
	fake_dispatch(&f, &conn, &call);
	return fake_word(&conn, 6);
}

enum { AT_STAMP = 32, AT_HOST = 40, AT_UID = 44, AT_GID = 48, AT_GROUP = 56 };

Test(drc, a_reused_xid_with_other_arguments_or_another_user_is_another_call)
{
	make(64);
	cr_assert_eq(count(&conn, 1, 0), 1);
	cr_assert_eq(count(&conn, 1, 5), 2);
	cr_assert_eq(count_as(AT_UID, 1001), 3);
	cr_assert_eq(count_as(AT_GID, 101), 4);
	cr_assert_eq(count_as(AT_GROUP, 5), 5);
	cr_assert_eq(count(&conn, 1, 0), 1);
	end();
}

/* A reply that went under TLS is not sent in plain text to a connection that repeats the call. */
Test(drc, the_protection_of_the_connection_matters)
{
	make(64);
	atomic_store(&conn.base.protection, (uint8_t)RPC_TLS);
	cr_assert_eq(count(&conn, 1, 0), 1);
	atomic_store(&conn.base.protection, (uint8_t)RPC_PLAIN);
	cr_assert_eq(count(&conn, 1, 0), 2);
	cr_assert_eq(count(&conn, 1, 0), 2);
	end();
}

Test(drc, the_bytes_of_the_credential_do_not_matter)
{
	make(64);
	cr_assert_eq(count(&conn, 1, 0), 1);
	cr_assert_eq(count_as(AT_STAMP, 99), 1);
	cr_assert_eq(count_as(AT_HOST, 0x61626364), 1);
	end();
}

Test(drc, data_from_a_read_chunk_sums_up_as_inline_data_does)
{
	uint8_t data[] = { 'a', 'b', 'c' };

	make(64);
	for (uint32_t len = 1; len <= sizeof(data); len++) {
		xdr_out_init(&call, buf, sizeof(buf));
		fake_call(&call, len, FAKE_REST);
		xdr_put_opaque(&call, data, len);
		fake_dispatch(&f, &conn, &call);
		cr_assert_eq(f.count, len);

		struct rpc_request *req = fake_request(&f, &conn, &call);
		req->seg[0].len -= 4;
		req->seg[1] = (struct rpc_seg){ .base = data, .len = len, .placed = true };
		req->nseg = 2;
		fake_begin(&f, req);
		cr_assert_eq(f.count, len, "%u bytes ran again", len);
	}
	end();
}

#define LONG (1u << 20)

/* Sends a call with LONG bytes behind COUNT's argument, in two segments: head and rest. */
static uint32_t count_long(const uint8_t *rest)
{
	xdr_out_init(&call, buf, sizeof(buf));
	fake_call(&call, 1, FAKE_COUNT);
	xdr_put_u32(&call, 0);
	struct rpc_request *req = fake_request(&f, &conn, &call);
	req->seg[1] = (struct rpc_seg){ .base = (uint8_t *)rest, .len = LONG };
	req->nseg = 2;
	fake_begin(&f, req);
	return fake_word(&conn, 6);
}

Test(drc, every_byte_of_long_arguments_counts)
{
	static const uint32_t at[] = { 0, 300, 8191, 8192, LONG / 2, LONG - 4096, LONG - 1 };
	uint8_t *rest = calloc(1, LONG);

	make(64);
	cr_assert_eq(count_long(rest), 1);
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		rest[at[i]] ^= 1;
		cr_assert_eq(count_long(rest), 2 + i, "byte %u", at[i]);
		rest[at[i]] ^= 1;
		cr_assert_eq(count_long(rest), 1);
	}
	end();
	free(rest);
}

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Prints the cache's cost for a WRITE of 1 MiB. Nothing is asserted, because the machine may be
 * busy. */
Test(drc, cost_of_a_long_call)
{
	uint8_t *rest = calloc(1, LONG);
	uint64_t best = UINT64_MAX;

	make(64);
	for (unsigned i = 0; i < 50; i++) {
		const uint64_t start = real_ns();

		cr_assert_eq(count_long(rest), 1);
		const uint64_t took = real_ns() - start;
		best = took < best ? took : best;
	}
	fprintf(stderr, "# a call of 1 MiB through the reply cache: %.0f us\n",
		(double)best / 1000);
	end();
	free(rest);
}

Test(drc, the_sum_does_not_depend_on_how_the_call_was_cut)
{
	make(64);
	cr_assert_eq(count(&conn, 1, 0), 1);
	for (uint32_t at = 1; at < call.used; at++) {
		struct rpc_request *req = fake_request(&f, &conn, &call);

		req->seg[0].len = at;
		req->seg[1].base = call.base + at;
		req->seg[1].len = (uint32_t)call.used - at;
		req->nseg = 2;
		fake_begin(&f, req);
		cr_assert_eq(fake_word(&conn, 6), 1, "cut at %u", at);
	}
	end();
}

Test(drc, the_oldest_finished_go_first)
{
	struct drc_stats s;

	make(4);
	for (uint32_t xid = 1; xid <= 5; xid++)
		cr_assert_eq(count(&conn, xid, 0), xid);
	cr_assert_eq(count(&conn, 2, 0), 2, "still there");
	cr_assert_eq(count(&conn, 1, 0), 6, "evicted, so it ran again");
	drc_stats(f.server.drc, &s);
	cr_assert_eq(s.entries, 4);
	cr_assert_eq(s.evicted, 2);
	end();
}

Test(drc, tells_what_it_reaches_back_to)
{
	struct drc_stats s;

	make(4);
	drc_set_clock(f.server.drc, told_time);
	for (uint32_t xid = 1; xid <= 4; xid++)
		count(&conn, xid, 0);
	drc_stats(f.server.drc, &s);
	cr_expect_eq(s.reach_seconds, DRC_AGE_SECONDS);
	pass_seconds(7);
	count(&conn, 5, 0);
	drc_stats(f.server.drc, &s);
	cr_expect_eq(s.reach_seconds, 7);
	pass_seconds(20);
	count(&conn, 6, 0);
	drc_stats(f.server.drc, &s);
	cr_expect_eq(s.reach_seconds, 7, "the least of late");
	pass_seconds(DRC_AGE_SECONDS + 1);
	drc_stats(f.server.drc, &s);
	cr_expect_eq(s.reach_seconds, DRC_AGE_SECONDS);
	end();
}

Test(drc, memory_is_bounded)
{
	const uint32_t most = 100;
	struct drc_stats s;
	size_t one;

	make(64);
	count(&conn, 0, 0);
	drc_stats(f.server.drc, &s);
	one = s.bytes;
	drc_free(f.server.drc);
	f.server.drc = drc_new(1 << 20, 3 * 16 * one); /* 16 shards */
	for (uint32_t xid = 1; xid <= most; xid++)
		count(&conn, xid, 0);
	drc_stats(f.server.drc, &s);
	cr_assert_eq(s.bytes, s.entries * one);
	cr_assert_leq(s.bytes, 3 * 16 * one);
	cr_assert_eq(s.entries + s.evicted, most);
	cr_assert_eq(count(&conn, most, 0), most + 1, "the count goes on from the first call");
	end();
}

Test(drc, what_is_in_progress_is_never_evicted)
{
	struct rpc_request *pending[4];

	make(2);
	for (uint32_t i = 0; i < 4; i++) {
		xdr_out_init(&call, buf, sizeof(buf));
		fake_call(&call, i, FAKE_PENDING);
		xdr_put_u32(&call, i);
		fake_dispatch(&f, &conn, &call);
		pending[i] = f.pending;
		cr_assert_not_null(pending[i]->drc);
	}
	f.count = 0;
	for (uint32_t xid = 9; xid <= 11; xid++)
		count(&conn, xid, 0);
	for (int i = 0; i < 4; i++) {
		cr_assert_not_null(pending[i]->drc);
		fake_complete(&f, pending[i], RPC_RUN_DONE);
	}
	cr_assert_eq(count(&conn, 12, 0), 4);
	cr_assert_eq(count(&conn, 12, 0), 4);
	end();
}

/* Rows: so many hosts change as much as they can, beside one that changes two things. */
Test(drc, a_busy_host_pushes_out_its_own_replies)
{
	static const unsigned hosts[] = { 1, 16, 20 };
	struct fake_conn polite;

	for (unsigned row = 0; row < sizeof(hosts) / sizeof(hosts[0]); row++) {
		struct fake_conn busy[20];
		struct drc_stats s;

		make(64);
		fake_conn_init(&polite, 1, 1, 700);
		for (unsigned i = 0; i < hosts[row]; i++)
			fake_conn_init(&busy[i], 2 + i, 2 + i, 700);
		const uint32_t first = count(&polite, 1, 0), second = count(&polite, 2, 0);

		for (uint32_t xid = 1; xid <= 100; xid++) {
			for (unsigned i = 0; i < hosts[row]; i++)
				count(&busy[i], xid, 0);
		}
		cr_expect_eq(count(&polite, 1, 0), first, "beside %u", hosts[row]);
		cr_expect_eq(count(&polite, 2, 0), second, "beside %u", hosts[row]);
		drc_stats(f.server.drc, &s);
		cr_expect_eq(s.entries, 64);
		end();
	}
}

Test(drc, a_long_reply_and_one_with_bulk_are_not_kept)
{
	struct drc_stats s;

	make(64);
	for (int bulk = 0; bulk < 2; bulk++) {
		xdr_out_init(&call, buf, sizeof(buf));
		fake_call(&call, 1, FAKE_COUNT);
		struct rpc_request *req = fake_request(&f, &conn, &call);
		req->call.xid = 1;
		cr_assert_eq(drc_lookup(f.server.drc, req), DRC_NEW);
		if (bulk)
			xdr_put_bulk(&req->out, rn_payload_get(f.pool, 4), 0, 4);
		else
			xdr_reserve(&req->out, DRC_REPLY_MAX + 4);
		drc_done(f.server.drc, req);
		cr_assert_null(req->drc);
		drc_stats(f.server.drc, &s);
		cr_assert_eq(s.entries, 0);
		req->conn->ops->drop(req);
	}
	end();
}

Test(drc, an_abandoned_call_runs_again)
{
	make(64);
	xdr_out_init(&call, buf, sizeof(buf));
	fake_call(&call, 1, FAKE_COUNT);
	for (int i = 0; i < 2; i++) {
		struct rpc_request *req = fake_request(&f, &conn, &call);

		cr_assert_eq(drc_lookup(f.server.drc, req), DRC_NEW);
		struct rpc_request *dup = fake_request(&f, &conn, &call);
		cr_assert_eq(drc_lookup(f.server.drc, dup), DRC_IN_PROGRESS);
		dup->conn->ops->drop(dup);
		drc_abandon(f.server.drc, req);
		req->conn->ops->drop(req);
	}
	end();
}

/* The call with xid 1 by a principal, which the name service maps to that user. */
static struct rpc_request *call_of(const struct rpc_principal *p, uint32_t uid)
{
	struct rpc_request *req;

	xdr_out_init(&call, buf, sizeof(buf));
	fake_call(&call, 1, FAKE_COUNT);
	xdr_put_u32(&call, 0);
	req = fake_request(&f, &conn, &call);
	req->server = &f.server;
	req->call = (struct rpc_call){
		.xid = 1,
		.prog = FAKE_PROG,
		.proc = FAKE_COUNT,
		.cred = { .flavor = RPC_RPCSEC_GSS,
			  .sec = RPC_SEC_KRB5I,
			  .principal = p,
			  .uid = uid },
	};
	return req;
}

static void answer(struct rpc_request *req, uint32_t word)
{
	xdr_put_u32(&req->out, word);
	drc_done(f.server.drc, req);
	req->conn->ops->reply(req);
}

/* The word of the cached reply, or 0: there is none for that principal. */
static uint32_t kept_for(const struct rpc_principal *p, uint32_t uid)
{
	struct rpc_request *req = call_of(p, uid);
	const enum drc_verdict v = drc_lookup(f.server.drc, req);

	drc_abandon(f.server.drc, req);
	req->conn->ops->reply(req);
	return v == DRC_REPLAY ? fake_word(&conn, 0) : 0;
}

/* Two principals may be one user. A reply is for the principal whose call it answers, though: a user who has become another
 * principal while he sent a call again, since his context had ended, has it run again. */
Test(drc, a_reply_is_for_its_principal)
{
	struct rpc_principal *host = rpc_principal_new("host/a@R", 8);
	struct rpc_principal *root = rpc_principal_new("root/a@R", 8);
	struct rpc_principal *same = rpc_principal_new("host/a@R", 8);
	struct rpc_request *first, *second, *again;

	make(64);
	first = call_of(host, 0);
	second = call_of(root, 0);
	cr_assert_eq(drc_lookup(f.server.drc, first), DRC_NEW);
	cr_assert_eq(drc_lookup(f.server.drc, second), DRC_NEW, "not dropped for the first");
	again = call_of(same, 0);
	cr_assert_eq(drc_lookup(f.server.drc, again), DRC_IN_PROGRESS);
	again->conn->ops->drop(again);
	answer(first, 11);
	cr_expect_eq(kept_for(NULL, 0), 0);
	answer(second, 22);
	cr_expect_eq(kept_for(host, 0), 11);
	cr_expect_eq(kept_for(same, 0), 11, "by another context");
	cr_expect_eq(kept_for(same, 1000), 11, "the name service gives another user now");
	cr_expect_eq(kept_for(root, 0), 22);
	end();
	rpc_principal_put(host);
	rpc_principal_put(root);
	rpc_principal_put(same);
}

#define THREADS 4
#define CALLS 4000

struct caller {
	pthread_t thread;
	unsigned index;
	unsigned wrong;
};

/* Each thread sends the same xids from its own address, each twice. */
static void *call_all(void *arg)
{
	struct caller *me = arg;
	static __thread uint8_t mem[256];
	struct fake_conn c;

	fake_conn_init(&c, 10 + me->index, (uint8_t)(10 + me->index), 700);
	for (uint32_t xid = 0; xid < CALLS; xid++) {
		struct xdr_out x;
		uint32_t first = 0;

		for (int again = 0; again < 2; again++) {
			xdr_out_init(&x, mem, sizeof(mem));
			fake_call(&x, xid, FAKE_HOW);
			xdr_put_u32(&x, RPC_RUN_DONE);
			struct rpc_request *req = fake_request(&f, &c, &x);
			req->call.xid = xid;
			const enum drc_verdict v = drc_lookup(f.server.drc, req);
			if (v == DRC_NEW) {
				first = xid * THREADS + me->index;
				xdr_put_u32(&req->out, first);
				drc_done(f.server.drc, req);
			}
			me->wrong += v != (again ? DRC_REPLAY : DRC_NEW);
			req->conn->ops->reply(req);
			me->wrong += fake_word(&c, 0) != first;
		}
	}
	return NULL;
}

Test(drc, threads_do_not_mix_up_clients, .timeout = 60)
{
	struct caller callers[THREADS] = { 0 };

	make(8 * THREADS * CALLS); /* large enough that no entry is evicted while a thread sleeps */
	for (unsigned i = 0; i < THREADS; i++) {
		callers[i].index = i;
		pthread_create(&callers[i].thread, NULL, call_all, &callers[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(callers[i].thread, NULL);
		cr_assert_eq(callers[i].wrong, 0);
	}
	end();
}
