/* SPDX-License-Identifier: BSD-2-Clause */
/* Grace period: which clients may reclaim after a restart, what others may do meanwhile, and when
 * it ends. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "tests/unit/recovery_fixture.h"

TestSuite(grace, .init = rec_start, .fini = rec_stop);

static void restart(void)
{
	rec_down();
	rec_up();
}

/* Acts as the tick does that many seconds from now. */
static void tick_in(uint64_t seconds)
{
	nfs4_grace_check(srv.recovery, nfs4_now() + seconds);
}

/* True during grace. nfs4_in_grace() stays true for a moment longer, until the end of grace is on
 * disk. */
static bool is_running(void)
{
	return atomic_load(&srv.recovery->grace.phase) == NFS4_GRACE_RUNNING;
}

Test(grace, without_records_there_is_none)
{
	struct rec_client *cl = rec_client("a", 1, false);

	cr_assert_not(nfs4_in_grace(&srv));
	cr_expect_eq(nfs4_may_reclaim(&srv, &cl->rec, false), NFS4ERR_NO_GRACE);
	cr_expect_eq(nfs4_may_open(&srv, &cl->rec, true), NFS4_OK);
	cr_expect_eq(nfs4_may_lock(&srv, &cl->rec), NFS4_OK);
	cr_expect_not(nfs4_grace_blocks_io(&srv));
	restart();
	cr_expect_not(nfs4_in_grace(&srv));
}

Test(grace, a_session_gets_nothing_before_reclaim_complete)
{
	struct rec_client *cl = rec_client("a", 1, true);

	cr_expect_eq(nfs4_may_open(&srv, &cl->rec, false), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_may_lock(&srv, &cl->rec), NFS4ERR_GRACE);
	cr_expect_not(nfs4_reclaim_is_done(&cl->rec));
	cr_expect_eq(nfs4_reclaim_done(&srv, &cl->rec), NFS4_OK);
	cr_expect(nfs4_reclaim_is_done(&cl->rec));
	cr_expect_eq(nfs4_reclaim_done(&srv, &cl->rec), NFS4ERR_COMPLETE_ALREADY);
	cr_expect_eq(nfs4_may_open(&srv, &cl->rec, false), NFS4_OK);
	cr_expect_eq(nfs4_may_lock(&srv, &cl->rec), NFS4_OK);
}

/* Linux's client omits RECLAIM_COMPLETE in one case, and retries its calls for ever. */
Test(grace, a_session_that_never_completes_gets_it_in_the_end)
{
	struct rec_client *cl;

	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	cl = rec_client("b", 1, true);
	cr_expect_eq(nfs4_may_lock(&srv, &cl->rec), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_may_lock(&srv, &cl->rec), NFS4ERR_GRACE);
	atomic_store(&cl->rec.asked_s, nfs4_now() - 3);
	cr_expect_eq(nfs4_may_lock(&srv, &cl->rec), NFS4_OK);
	cr_expect_eq(nfs4_may_open(&srv, &cl->rec, true), NFS4_OK);
	/* The exception does not apply while others reclaim. */
	restart();
	cr_assert(is_running());
	cl = rec_client("b", 1, true);
	cr_expect_eq(nfs4_may_open(&srv, &cl->rec, false), NFS4ERR_GRACE);
	atomic_store(&cl->rec.asked_s, nfs4_now() - 3);
	cr_expect_eq(nfs4_may_open(&srv, &cl->rec, false), NFS4ERR_GRACE);
}

Test(grace, who_was_recorded_reclaims_and_then_it_is_over)
{
	struct rec_client *a, *b;

	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	restart();
	cr_assert(is_running());
	a = rec_client("a", 1, true);
	b = rec_client("b", 1, true);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	cr_expect_eq(nfs4_may_reclaim(&srv, &b->rec, false), NFS4ERR_NO_GRACE);
	cr_expect_eq(nfs4_reclaim_done(&srv, &b->rec), NFS4_OK);
	cr_expect(is_running());
	/* New locks could conflict with a's reclaims. Opens that deny nothing cannot, because a
	 * denied nothing. */
	cr_expect_eq(nfs4_may_lock(&srv, &b->rec), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_may_open(&srv, &b->rec, true), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_may_open(&srv, &b->rec, false), NFS4_OK);
	cr_expect_not(nfs4_grace_blocks_io(&srv));
	cr_expect_eq(nfs4_may_open(&srv, &a->rec, false), NFS4ERR_GRACE);
	rec_record(a, NFS4_RECORD_STATE);
	cr_expect_eq(nfs4_reclaim_done(&srv, &a->rec), NFS4_OK);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4ERR_NO_GRACE);
	cr_assert(rec_grace_ends());
	cr_expect_eq(nfs4_may_lock(&srv, &b->rec), NFS4_OK);
	cr_expect_eq(nfs4_may_open(&srv, &b->rec, true), NFS4_OK);
}

Test(grace, a_client_that_restarted_has_nothing_to_reclaim)
{
	struct rec_client *a;

	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 2, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4ERR_NO_GRACE);
	cr_assert(rec_grace_ends());
}

Test(grace, the_two_kinds_of_clients_are_told_apart)
{
	struct rec_client *a;

	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, true);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4ERR_NO_GRACE);
	cr_expect_eq(nfs4_reclaim_done(&srv, &a->rec), NFS4_OK);
	cr_expect(is_running());
	a = rec_client("a", 1, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
}

Test(grace, who_denied_something_keeps_others_out)
{
	struct rec_client *a, *b, *c;

	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE | NFS4_RECORD_DENY);
	rec_record(rec_client("b", 1, true), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, true);
	b = rec_client("b", 1, true);
	c = rec_client("c", 1, true);
	cr_expect_eq(nfs4_reclaim_done(&srv, &c->rec), NFS4_OK);
	cr_expect(nfs4_grace_blocks_io(&srv));
	cr_expect_eq(nfs4_may_open(&srv, &c->rec, false), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, true), NFS4_OK);
	cr_expect_eq(nfs4_may_reclaim(&srv, &b->rec, true), NFS4ERR_RECLAIM_BAD);
	cr_expect_eq(nfs4_may_reclaim(&srv, &b->rec, false), NFS4_OK);
	cr_expect_eq(nfs4_reclaim_done(&srv, &a->rec), NFS4_OK);
	cr_expect_not(nfs4_grace_blocks_io(&srv));
	cr_expect_eq(nfs4_may_open(&srv, &c->rec, false), NFS4_OK);
	cr_expect(is_running());
}

/* RFC 7530 section 9.6.3.4.2: the second edge condition. */
Test(grace, who_misses_it_may_not_reclaim_in_the_next_one)
{
	struct rec_client *a;

	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	rec_record(rec_client("b", 1, false), NFS4_RECORD_STATE);
	restart();
	rec_record(rec_client("b", 1, false), NFS4_RECORD_STATE);
	tick_in(89);
	cr_assert(is_running());
	tick_in(90);
	cr_assert(rec_grace_ends());
	a = rec_client("a", 1, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4ERR_NO_GRACE);
	restart();
	cr_assert(is_running());
	a = rec_client("a", 1, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4ERR_NO_GRACE);
	a = rec_client("b", 1, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
}

/* RFC 7530 section 9.6.3.4.1: the first edge condition. */
Test(grace, whose_state_was_given_away_may_not_reclaim)
{
	struct rec_client *a = rec_client("a", 1, true);
	unsigned tries = 0;

	rec_record(a, NFS4_RECORD_STATE);
	cr_expect_not(nfs4_record_revoke(&srv, &a->rec));
	while (!nfs4_record_revoke(&srv, &a->rec) && tries++ < 5000)
		usleep(1000);
	cr_assert_lt(tries, 5000);
	cr_expect(nfs4_record_revoke(&srv, &a->rec));
	cr_expect_not(nfs4_record_has(&a->rec, NFS4_RECORD_STATE));
	restart();
	cr_expect_not(nfs4_in_grace(&srv));
}

/* RFC 8881 section 8.4.3: the second edge condition, for a client that has reclaimed some of its
 * state. */
Test(grace, who_did_not_finish_may_not_reclaim_in_the_next_one_until_it_says_that_it_has)
{
	struct rec_client *a;

	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	restart();
	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	tick_in(90);
	cr_assert(rec_grace_ends());
	restart();
	cr_expect_not(nfs4_in_grace(&srv));
	/* The same again, but the client sends RECLAIM_COMPLETE late. */
	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, true);
	rec_record(a, NFS4_RECORD_STATE);
	tick_in(90);
	cr_assert(rec_grace_ends());
	cr_expect_eq(nfs4_reclaim_done(&srv, &a->rec), NFS4_OK);
	restart();
	cr_expect(is_running());
	a = rec_client("a", 1, true);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
}

Test(grace, a_restart_within_it_loses_nobody)
{
	static const char *const ids[] = { "back", "not-back", "new" };

	rec_record(rec_client(ids[0], 1, true), NFS4_RECORD_STATE);
	rec_record(rec_client(ids[1], 1, true), NFS4_RECORD_STATE);
	restart();
	rec_record(rec_client(ids[0], 1, true), NFS4_RECORD_STATE);
	rec_record(rec_client(ids[2], 1, true), NFS4_RECORD_STATE);
	restart();
	for (unsigned i = 0; i < 3; i++) {
		struct rec_client *cl = rec_client(ids[i], 1, true);

		cr_assert(is_running());
		cr_expect_eq(nfs4_may_reclaim(&srv, &cl->rec, false), NFS4_OK, "%s", ids[i]);
		cr_expect_eq(nfs4_reclaim_done(&srv, &cl->rec), NFS4_OK);
	}
	cr_assert(rec_grace_ends());
}

Test(grace, who_says_goodbye_is_not_waited_for)
{
	struct rec_client *a = rec_client("a", 1, true), *b = rec_client("b", 1, true);

	rec_record(a, NFS4_RECORD_STATE);
	rec_record(b, NFS4_RECORD_STATE);
	nfs4_record_forget(&srv, &a->rec);
	restart();
	cr_assert(is_running());
	a = rec_client("a", 1, true);
	b = rec_client("b", 1, true);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4ERR_NO_GRACE);
	/* Returns only to complete its reclaims. */
	nfs4_record_forget(&srv, &b->rec);
	cr_assert(rec_grace_ends());
	restart();
	cr_expect_not(nfs4_in_grace(&srv));
}

/* A client of 4.0 has no RECLAIM_COMPLETE, and none of its other calls says that it is done. */
Test(grace, a_client_of_4_0_is_waited_for)
{
	struct rec_client *a, *b;

	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	rec_record(rec_client("b", 1, false), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, false);
	b = rec_client("b", 1, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	cr_expect_eq(nfs4_may_open(&srv, &a->rec, false), NFS4_OK);
	cr_expect_eq(nfs4_may_lock(&srv, &a->rec), NFS4ERR_GRACE);
	tick_in(60);
	tick_in(89);
	cr_assert(is_running());
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	cr_expect_eq(nfs4_may_lock(&srv, &b->rec), NFS4ERR_GRACE);
	tick_in(100);
	cr_assert(rec_grace_ends());
	cr_expect_eq(nfs4_may_lock(&srv, &b->rec), NFS4_OK);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4ERR_NO_GRACE);
}

/* New locks of a client conflict with no reclaim if it is the only one left. */
Test(grace, the_last_client_of_4_0_does_not_wait_for_itself)
{
	struct rec_client *a, *b, *c;

	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE | NFS4_RECORD_DENY);
	rec_record(rec_client("b", 1, true), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, false);
	b = rec_client("b", 1, true);
	c = rec_client("c", 1, false);
	cr_expect_eq(nfs4_may_lock(&srv, &a->rec), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_reclaim_done(&srv, &b->rec), NFS4_OK);
	cr_expect_eq(nfs4_may_lock(&srv, &a->rec), NFS4_OK);
	cr_expect_eq(nfs4_may_open(&srv, &a->rec, true), NFS4_OK);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, true), NFS4_OK);
	cr_expect_eq(nfs4_may_lock(&srv, &b->rec), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_may_lock(&srv, &c->rec), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_may_open(&srv, &c->rec, false), NFS4ERR_GRACE);
	cr_expect(nfs4_grace_blocks_locks(&srv));
	cr_expect(nfs4_grace_blocks_io(&srv));
	tick_in(90);
	cr_assert(rec_grace_ends());
}

Test(grace, goes_on_while_reclaims_keep_coming_but_not_for_ever)
{
	struct rec_client *a;

	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	cr_expect_leq(srv.recovery->grace.reclaimed_s, nfs4_now());
	cr_expect_gt(srv.recovery->grace.reclaimed_s, 0);
	for (uint64_t at = 85; at < 180; at += 5) {
		srv.recovery->grace.reclaimed_s = nfs4_now() + at;
		tick_in(at + 4);
		cr_assert(is_running(), "%llu", (unsigned long long)at);
	}
	tick_in(181);
	cr_assert(rec_grace_ends());
}

Test(grace, ends_when_the_reclaims_do)
{
	struct rec_client *a;

	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	srv.recovery->grace.reclaimed_s = nfs4_now() + 85;
	tick_in(93);
	cr_assert(is_running());
	tick_in(96);
	cr_assert(rec_grace_ends());
}

Test(grace, is_as_long_as_the_lease_that_clients_know_of)
{
	srv.cfg.lease_seconds = 200;
	restart();
	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	srv.cfg.lease_seconds = 10;
	srv.cfg.grace_seconds = 20;
	restart();
	tick_in(190);
	cr_expect(is_running());
	restart(); /* an ordinary restart, which says nothing about the clients' leases */
	tick_in(190);
	cr_expect(is_running());
	tick_in(200);
	cr_assert(rec_grace_ends());
	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	restart();
	tick_in(20);
	cr_expect(rec_grace_ends());
}

Test(grace, a_client_that_goes_and_comes_again_within_it)
{
	struct rec_client *a, *again;

	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, true);
	/* A new client id, confirmed before the old one is freed */
	again = rec_client("a", 1, true);
	nfs4_record_fini(&srv, &a->rec);
	cr_expect_eq(nfs4_may_reclaim(&srv, &again->rec, false), NFS4_OK);
	rec_record(again, NFS4_RECORD_STATE);
	cr_expect_eq(nfs4_reclaim_done(&srv, &again->rec), NFS4_OK);
	cr_assert(rec_grace_ends());
}

/* A cluster's answers. */
static struct {
	bool blocks, takes;
} cluster;

static bool cluster_blocks(void *ctx)
{
	(void)ctx;
	return cluster.blocks;
}

static bool cluster_takes(void *ctx)
{
	(void)ctx;
	return cluster.takes;
}

static const struct nfs4_cluster in_cluster = { .blocks_locks = cluster_blocks,
						.takes_reclaims = cluster_takes };

Test(grace, new_locks_wait_for_clients_of_the_whole_cluster)
{
	struct rec_client *a = rec_client("a", 1, true);

	srv.cfg.cluster = &in_cluster;
	cluster.blocks = true;
	cr_expect_eq(nfs4_reclaim_done(&srv, &a->rec), NFS4_OK);
	cr_assert_not(nfs4_in_grace(&srv));
	cr_expect_eq(nfs4_may_lock(&srv, &a->rec), NFS4ERR_GRACE);
	cr_expect_eq(nfs4_may_open(&srv, &a->rec, true), NFS4ERR_GRACE);
	cr_expect(nfs4_grace_blocks_locks(&srv));
	cr_expect_eq(nfs4_may_open(&srv, &a->rec, false), NFS4_OK);
	cr_expect_not(nfs4_grace_blocks_io(&srv));
	cluster.blocks = false;
	cr_expect_eq(nfs4_may_lock(&srv, &a->rec), NFS4_OK);
	cr_expect_eq(nfs4_may_open(&srv, &a->rec, true), NFS4_OK);
	cr_expect_not(nfs4_grace_blocks_locks(&srv));
}

/* The time for reclaims begins when all members of the cluster have stopped to grant locks. */
Test(grace, reclaims_wait_for_the_other_members)
{
	struct rec_client *a;

	srv.cfg.cluster = &in_cluster;
	rec_record(rec_client("a", 1, true), NFS4_RECORD_STATE);
	restart();
	a = rec_client("a", 1, true);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4ERR_DELAY);
	cr_expect_not(nfs4_grace_takes_reclaim(&srv));
	tick_in(80);
	tick_in(160);
	cr_assert(is_running());
	cluster.takes = true;
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	cr_expect(nfs4_grace_takes_reclaim(&srv));
	tick_in(240);
	cr_assert(is_running());
	tick_in(350);
	cr_expect(rec_grace_ends());
}

/* No other client of this server is expected, but those of others may be. */
Test(grace, in_a_cluster_the_last_client_waits_for_the_others)
{
	struct rec_client *a;

	srv.cfg.cluster = &in_cluster;
	rec_record(rec_client("a", 1, false), NFS4_RECORD_STATE);
	restart();
	cluster.blocks = cluster.takes = true;
	a = rec_client("a", 1, false);
	cr_expect_eq(nfs4_may_reclaim(&srv, &a->rec, false), NFS4_OK);
	cr_expect_eq(nfs4_may_lock(&srv, &a->rec), NFS4ERR_GRACE);
	cluster.blocks = false;
	cr_expect_eq(nfs4_may_lock(&srv, &a->rec), NFS4_OK);
}
