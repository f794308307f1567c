/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "rpc/program.h"
#include "transport/udp/udp_private.h"

#define CALL_BYTES 100u

static struct rn_budget budget;
static struct rn_payload_pool *pool;
static struct rpc_clients *clients;
static struct udp_server *srv;
static struct udp_listener *l;
static struct rpc_request *waiting[UDP_CALLS_MAX + 1];
static unsigned nwaiting;
static enum rpc_admission now_is; /* admission of whoever calls next */
static unsigned asked;		  /* times that it was asked for */

static enum rpc_admission admission(void *ctx, struct rpc_conn *conn)
{
	(void)ctx;
	asked++;
	atomic_store(&conn->admission, now_is);
	return now_is;
}

static void submit(void *ctx, struct rpc_request *req)
{
	(void)ctx;
	cr_assert_lt(nwaiting, UDP_CALLS_MAX);
	waiting[nwaiting++] = req;
}

static void setup(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct udp_config cfg = {
		.executor = { .submit = submit },
		.budget = &budget,
		.admission = admission,
	};

	rn_budget_init(&budget, 64u << 20);
	cfg.pool = pool = rn_payload_pool_new(&budget);
	cfg.clients = clients = rpc_clients_new();
	cr_assert(pool && clients && udp_server_new(&cfg, &srv) == 0);
	l = calloc(1, sizeof(*l));
	l->srv = srv;
	l->fd = udp_socket_open((const struct sockaddr *)&any, sizeof(any));
	cr_assert_geq(l->fd, 0);
	nwaiting = 0;
	asked = 0;
}

static void teardown(void)
{
	struct udp_stats n;

	while (nwaiting > 0) {
		struct rpc_request *req = waiting[--nwaiting];

		req->conn->ops->drop(req);
	}
	udp_server_stats(srv, &n);
	cr_assert_eq(n.requests_busy, 0);
	cr_assert_eq(rpc_clients_count(clients), 0);
	close(l->fd);
	free(l);
	udp_server_free(srv);
	rpc_clients_free(clients);
	rn_payload_pool_free(pool);
}

TestSuite(udp_call, .init = setup, .fini = teardown);

/* True if a call of that host was handed on. */
static bool call(unsigned host, uint16_t port, enum rpc_admission is)
{
	static uint8_t data[CALL_BYTES];
	struct sockaddr_in peer = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(0x0a000000u + host) };
	struct udp_datagram d = { .data = data, .len = sizeof(data) };
	const unsigned before = nwaiting;

	memcpy(&d.peer, &peer, sizeof(peer));
	now_is = is;
	udp_call_take(l, &d);
	return nwaiting > before;
}

static uint64_t busy(void)
{
	struct udp_stats n;

	udp_server_stats(srv, &n);
	return n.dropped[UDP_BUSY];
}

/* Addresses that nobody knows leave room for those that exports admit. */
static void crowd(enum rpc_admission is)
{
	for (unsigned i = 0; i < UDP_STRANGERS_MAX; i++)
		cr_assert(call((1 + i) << 8, 700, is));
	cr_assert_not(call(1000 << 8, 700, is));
	cr_assert_not(call(1001, 700, RPC_STRANGER));
	cr_assert_eq(busy(), 2);
	cr_assert(call(1001, 700, RPC_ADMITTED));
	cr_assert(call(1002, 700, RPC_RECENT));
}

Test(udp_call, strangers_have_a_part_of_the_places)
{
	crowd(RPC_STRANGER);
}

Test(udp_call, hosts_whose_names_are_asked_for_have_no_more_than_strangers)
{
	crowd(RPC_UNKNOWN);
}

Test(udp_call, places_of_a_stranger_come_back)
{
	for (unsigned i = 0; i < 3 * UDP_STRANGERS_MAX; i++) {
		cr_assert(call(1 + i, 700, RPC_STRANGER));
		struct rpc_request *req = waiting[--nwaiting];
		req->conn->ops->drop(req);
	}
	cr_assert_eq(busy(), 0);
}

Test(udp_call, ports_of_a_host_share_its_places)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < 2 * UDP_CALLS_MAX; i++)
		taken += call(1, (uint16_t)(1 + i), RPC_ADMITTED);
	cr_assert_eq(taken, UDP_CALLS_MAX / 2);
	cr_assert(call(2, 700, RPC_ADMITTED), "another host has places");
}

Test(udp_call, a_sender_is_the_same_connection_for_all_its_calls)
{
	cr_assert(call(1, 700, RPC_ADMITTED));
	cr_assert(call(1, 700, RPC_ADMITTED));
	cr_assert(call(1, 701, RPC_ADMITTED));
	cr_assert(call(2, 700, RPC_ADMITTED));
	cr_assert_eq(waiting[0]->conn->id, waiting[1]->conn->id);
	cr_assert_neq(waiting[0]->conn->id, waiting[2]->conn->id);
	cr_assert_neq(waiting[0]->conn->id, waiting[3]->conn->id);
}

/* Drops the call that was handed on last. */
static void drop_last(void)
{
	struct rpc_request *req = waiting[--nwaiting];

	req->conn->ops->drop(req);
}

Test(udp_call, a_call_without_a_place_costs_no_question)
{
	while (call(1, 700, RPC_ADMITTED))
		;
	const unsigned before = asked;
	cr_assert_not(call(1, 701, RPC_ADMITTED));
	cr_assert_eq(asked, before);
}

Test(udp_call, forged_addresses_cost_few_questions)
{
	unsigned seconds = 1;
	const uint64_t begin = rn_now_ns();

	cr_assert(call(0x50000, 700, RPC_ADMITTED));
	asked = 0;
	for (unsigned i = 0; i < 250; i++) /* of one network */
		if (call(1 + i, 700, RPC_UNKNOWN))
			drop_last();
	seconds += (unsigned)(rn_now_ns() / RN_NS_PER_SECOND - begin / RN_NS_PER_SECOND);
	cr_assert_geq(asked, UDP_ASKED_NETWORK);
	cr_assert_leq(asked, seconds * UDP_ASKED_NETWORK);
	for (unsigned i = 0; i < 1000; i++)
		if (call((1 + i) << 8, 700, RPC_UNKNOWN))
			drop_last();
	seconds += (unsigned)(rn_now_ns() / RN_NS_PER_SECOND - begin / RN_NS_PER_SECOND);
	cr_assert_leq(asked, seconds * UDP_ASKED_ALL);
	cr_assert(call(0x50000, 701, RPC_ADMITTED), "a host that is known goes on");
}

Test(udp_call, hosts_that_are_looked_up_again_take_no_questions_from_others)
{
	cr_assert(call(1, 700, RPC_ADMITTED));
	for (unsigned i = 0; i < 2 * UDP_ASKED_ALL; i++) {
		cr_assert(call(1, 701, RPC_UNKNOWN));
		drop_last();
	}
	cr_assert(call(2, 700, RPC_UNKNOWN), "a new one of its network");
}

/* Answers calls of that procedure with more than was sent, until one is not sent. Returns their number. */
static unsigned answered_until_rationed(const struct rpc_proc *proc)
{
	enum { TRIES = 2000 };
	static const uint8_t more[2048];
	struct udp_stats n;
	unsigned i = 0;

	do {
		cr_assert(call(1, 700, RPC_ADMITTED));
		struct rpc_request *req = waiting[--nwaiting];

		req->proc = proc;
		req->call.proc = 1;
		xdr_put_fixed(&req->out, more, sizeof(more));
		req->conn->ops->reply(req);
		udp_server_stats(srv, &n);
	} while (++i < TRIES && n.dropped[UDP_RATIONED] == 0);
	return n.dropped[UDP_RATIONED] > 0 ? i : 0;
}

/* PATHCONF and GETQUOTA have a path, which anybody may guess. */
Test(udp_call, procedures_without_a_handle_are_rationed)
{
	static const unsigned flags[] = { RPC_FOR_ALL, RPC_NO_EXPORT, RPC_BY_PATH };
	const struct rpc_proc with_handle = { .name = "with a handle" };

	cr_expect_eq(answered_until_rationed(&with_handle), 0);
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		const struct rpc_proc proc = { .name = "without", .flags = flags[i] };

		teardown();
		setup();
		cr_expect_gt(answered_until_rationed(&proc), 1, "flag %u", flags[i]);
	}
}
