/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits of calls (rpc/wait.h): by address, by kind, with a time; and the places that hosts share. */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nfs/conflict.h"
#include "nfs4/attr/owner_name.h"
#include "nfs4/nfs4_private.h"
#include "rpc/backchannel.h"
#include "rpc/client.h"
#include "tests/unit/rpc_fake.h"

#define MS RN_NS_PER_MS

static struct fake f;

/* A call that waits once. */
struct call {
	struct rpc_request *req;
	struct fake_conn conn;
	struct rpc_client client;
	const void *of;		    /* by rpc_wait; NULL: by rpc_try_later */
	enum rn_wait_for what;	    /* for that */
	int in_the_way;		    /* by nfs_await, if not 0 */
	struct nfs4_server *owners; /* by nfs4_user_name, if not NULL */
	uint64_t time_ns;	    /* limit of the wait, or patience */
	int rc;			    /* for an owner: names that are not known */
	struct nfs4_owner_name name;
	unsigned place; /* among the calls that are over */
	bool looks, over;
};

static unsigned nover;

static void start(void)
{
	fake_init(&f, 0);
}

static void stop(void)
{
	fake_fini(&f);
}

TestSuite(waits, .init = start, .fini = stop);

static void work(struct rpc_request *req)
{
	struct call *c = rn_container_of(req->conn, struct call, conn.base);

	if (c->of) {
		pthread_mutex_lock(&f.lock);
		c->rc = rpc_wait(req, c->what, c->of, c->time_ns ? rn_now_ns() + c->time_ns : 0,
				 &f.lock);
	} else if (c->owners) {
		struct nfs4_compound compound = { .server = c->owners, .req = req };

		nfs4_user_name(&compound, 42, &c->name);
		c->rc = (int)compound.names_unknown;
	} else if (c->in_the_way) {
		c->looks = nfs_await(req, c->in_the_way, c->time_ns);
	} else {
		c->looks = rpc_try_later(req, c->what, c->time_ns);
	}
	c->over = true;
	c->place = ++nover;
}

/* From that host, with an address in c. */
static void begin(struct call *c, uint8_t host)
{
	struct xdr_out none = { .base = (uint8_t *)c };

	fake_conn_init(&c->conn, 1, host, 700);
	c->conn.base.client = &c->client;
	c->client.key = (struct rn_host){ .bytes = { host } };
	c->req = fake_request(&f, &c->conn, &none);
	c->req->work = work;
	cr_assert(rpc_is_ready(&f.worker));
	rpc_run(c->req);
}

static void drop(struct call *c)
{
	cr_assert(c->over);
	c->req->conn->ops->drop(c->req);
}

Test(waits, each_goes_on_for_what_it_waits_for)
{
	struct call a = { .of = &a, .what = RN_WAIT_RECORD },
		    b = { .of = &b, .what = RN_WAIT_CALL };

	begin(&a, 1);
	begin(&b, 1);
	cr_expect_eq(atomic_load(&a.req->fiber->waits_for), RN_WAIT_RECORD);
	cr_expect_eq(atomic_load(&b.req->fiber->waits_for), RN_WAIT_CALL);
	rpc_wake(f.server.waits, &b);
	cr_expect_eq(fake_await_inbox(&f), 1);
	cr_expect(b.over && b.rc == 0 && !a.over);
	rpc_wake(f.server.waits, &b);
	cr_expect_eq(fake_run_inbox(&f), 0);
	rpc_wake(f.server.waits, &a);
	cr_expect_eq(fake_await_inbox(&f), 1);
	cr_expect(a.over && a.rc == 0);
	drop(&a);
	drop(&b);
}

/* In the order of their times, whichever began first. */
Test(waits, its_time_ends_it)
{
	struct call late = { .of = &f, .what = RN_WAIT_CALL, .time_ns = 300 * MS }, soon = late;

	soon.time_ns = 5 * MS;
	begin(&late, 1);
	begin(&soon, 1);
	while (!soon.over || !late.over)
		fake_await_inbox(&f);
	cr_expect_lt(soon.place, late.place);
	cr_expect(soon.rc == -ETIMEDOUT && late.rc == -ETIMEDOUT);
	drop(&soon);
	drop(&late);
}

Test(waits, a_kind_looks_again)
{
	struct call named = { .what = RN_WAIT_NAME }, held = { .what = RN_WAIT_STATE };
	const uint64_t began = rn_now_ns();

	begin(&named, 1);
	begin(&held, 1);
	cr_expect_eq(rpc_waits_count(f.server.waits), 2);
	rpc_wake_all(f.server.waits, 1u << RN_WAIT_NAME | 1u << RN_WAIT_USER);
	cr_expect_eq(fake_await_inbox(&f), 1);
	cr_expect(named.over && named.looks && !named.req->waited && !held.over);
	/* Nobody tells the other. */
	while (!held.over)
		fake_await_inbox(&f);
	cr_expect(held.looks && !held.req->waited);
	cr_expect_geq(rn_now_ns() - began, 200 * MS);
	cr_expect_eq(rpc_waits_count(f.server.waits), 0);
	drop(&named);
	drop(&held);
}

/* A failure that says what is in the way waits for just that; others are answered. */
Test(waits, failures_say_what_they_wait_for)
{
	static const struct {
		int rc;
		enum rn_wait_for what;
	} table[] = {
		{ -RN_EUNNAMED, RN_WAIT_NAME },	 { -RN_EDELEG, RN_WAIT_STATE },
		{ -RN_EYIELDS, RN_WAIT_STATE },	 { -RN_ELEASE, RN_WAIT_NOTHING },
		{ -RN_EFULL, RN_WAIT_NOTHING },	 { -EACCES, RN_WAIT_NOTHING },
		{ -RN_EGRACE, RN_WAIT_NOTHING },
	};

	for (unsigned i = 0; i < rn_array_size(table); i++) {
		const enum rn_wait_for what = table[i].what;
		struct call c = { .in_the_way = table[i].rc };

		begin(&c, 1);
		cr_expect_eq(c.over, what == RN_WAIT_NOTHING, "%s", rn_error_text(table[i].rc));
		if (what != RN_WAIT_NOTHING) {
			cr_expect_eq(atomic_load(&c.req->fiber->waits_for), what);
			rpc_wake_all(f.server.waits, 1u << what);
			cr_expect_eq(fake_await_inbox(&f), 1);
		}
		cr_expect_eq(c.looks, what != RN_WAIT_NOTHING);
		drop(&c);
	}
}

/* A call whose time is over looks once more before it is answered, as an answer may have come meanwhile. */
Test(waits, patience_ends)
{
	struct call c = { .what = RN_WAIT_STATE, .time_ns = 10 * MS };

	begin(&c, 1);
	while (!c.over)
		fake_await_inbox(&f);
	cr_expect(c.looks && c.req->waited);
	cr_expect_not(rpc_try_later(c.req, RN_WAIT_STATE, 0));
	drop(&c);
}

static bool known;

static int name_of(void *ctx, const struct sockaddr *peer, uint32_t id, char *name, size_t size)
{
	(void)ctx;
	(void)peer;
	return known ? (snprintf(name, size, "user%u", id), 0) : -RN_EUNNAMED;
}

/* An attribute waits for its owner's name, for 30 ms, and is the number then. */
Test(waits, owners_names_are_waited_for)
{
	static struct nfs4_server server;
	struct call c = { .owners = &server }, late = c;
	const uint64_t began = rn_now_ns();

	server.cfg.idmap = (struct nfs4_idmap){ .uid_to_name = name_of, .names_always = true };
	begin(&c, 1);
	cr_assert(!c.over);
	cr_expect_eq(atomic_load(&c.req->fiber->waits_for), RN_WAIT_NAME);
	known = true;
	rpc_wake_all(f.server.waits, 1u << RN_WAIT_NAME);
	while (!c.over)
		fake_await_inbox(&f);
	cr_expect(c.rc == 0 && c.name.len == 6 && memcmp(c.name.s, "user42", 6) == 0);
	drop(&c);
	known = false;
	begin(&late, 1);
	while (!late.over)
		fake_await_inbox(&f);
	cr_expect(late.rc == 1 && late.name.len == 2 && memcmp(late.name.s, "42", 2) == 0);
	cr_expect_geq(rn_now_ns() - began, 30 * MS);
	drop(&late);
}

/* A call whose client has gone looks once more, soon, and does not wait again. */
Test(waits, a_client_that_has_gone_ends_them)
{
	struct call c = { .what = RN_WAIT_STATE };
	const uint64_t began = rn_now_ns();

	begin(&c, 1);
	rpc_backchannel_close(&c.conn.base);
	while (!c.over)
		fake_await_inbox(&f);
	cr_expect(c.looks);
	cr_expect_leq(rn_now_ns() - began, 2000 * MS);
	cr_expect_not(rpc_try_later(c.req, RN_WAIT_STATE, 0));
	drop(&c);
}

/* By whatever it waits; a call of another connection goes on waiting for the same. */
Test(waits, a_client_that_has_gone_is_told_apart)
{
	struct call gone = { .of = &f, .what = RN_WAIT_CALL }, there = gone, timed = gone;

	timed.time_ns = 5000 * MS;
	begin(&gone, 1);
	begin(&there, 1);
	begin(&timed, 1);
	cr_expect_eq(atomic_load(&there.req->fiber->waits_until_ns), 0);
	cr_expect_gt(atomic_load(&timed.req->fiber->waits_until_ns), rn_now_ns());
	rpc_backchannel_close(&gone.conn.base);
	rpc_backchannel_close(&timed.conn.base);
	while (!gone.over || !timed.over)
		fake_await_inbox(&f);
	cr_expect(gone.rc == -RN_EGONE && timed.rc == -RN_EGONE && !there.over);
	rpc_wake(f.server.waits, &f);
	while (!there.over)
		fake_await_inbox(&f);
	cr_expect_eq(there.rc, 0);
	cr_expect_eq(atomic_load(&there.req->fiber->waits_until_ns), 0);
	drop(&gone);
	drop(&there);
	drop(&timed);
}

/* A host has at most 16 waiting calls: its own oldest one makes room for another, and no other host loses a call. */
Test(waits, hosts_share_the_places)
{
	static struct call other = { .what = RN_WAIT_NAME }, busy[18];

	begin(&other, 2);
	for (unsigned i = 0; i < rn_array_size(busy); i++) {
		busy[i].what = RN_WAIT_NAME;
		begin(&busy[i], 1);
	}
	cr_expect_eq(rpc_waits_count(f.server.waits), 17);
	while (!busy[0].over || !busy[1].over)
		fake_await_inbox(&f);
	cr_expect(busy[0].looks && busy[0].req->waited, "it looks once more");
	cr_expect_not(busy[2].over || other.over);
	rpc_waits_close(f.server.waits, 1u << RN_WAIT_RECORD);
	cr_expect_eq(rpc_waits_count(f.server.waits), 17, "they wait for something else");
	rpc_waits_close(f.server.waits, 1u << RN_WAIT_NAME);
	while (!other.over || !busy[17].over)
		fake_await_inbox(&f);
	cr_expect(other.looks && other.req->waited);
	drop(&other);
	for (unsigned i = 0; i < rn_array_size(busy); i++)
		drop(&busy[i]);
}
