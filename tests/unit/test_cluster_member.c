/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a cluster over a store in memory, in a time of the test's own. While a call to the store of one member takes its time,
 * the others go on. The last test has members that are slow, crash and cannot reach the store at random, and checks at each moment that a
 * member which others have declared dead does not answer any more, and that nobody grants locks once all are said to enforce.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/member.h"
#include "lib/error.h"
#include "lib/util.h"

#define NODES 3u
#define DEAD_MS MEMBER_DEAD_MS
#define ROUNDS 400u

struct node {
	struct cluster_store store;
	const char *name;
	struct member *m; /* NULL: not running */
	struct cluster_digest digest;
	uint64_t due_ms;       /* of the next step; of the start, if it is not running */
	int64_t wall_ahead_ms; /* of its clock */
	bool in_step; /* a step of it is under way, perhaps in the middle of a call to the store */
	bool enforcing, fenced, may_reclaim, leaving, apart;
	int fails; /* what the store answers; 0: it works */
	bool only_beats_fail;
	unsigned slow_ms; /* that the next call to the store takes */
	unsigned evicted;
	uint64_t asked_since[64]; /* when it asked about the locks of a run, by its number */
	int no_locks;		  /* what the file system answers; 0: it works */
	bool lost;
};

static struct {
	uint64_t now_ms;
	uint8_t bytes[CLUSTER_BYTES_MAX];
	size_t len;
	uint64_t version;
	struct cluster_beat beat[NODES];
	struct node node[NODES];
	uint64_t dropped_run; /* whose locks the file system has dropped */
	bool faults;	      /* random ones */
	char said[4096];
} sim;
static unsigned resumed;

static struct cluster_object object_now(void)
{
	struct cluster_object o;

	cluster_init(&o);
	if (sim.version != 0)
		cr_assert_eq(cluster_decode(sim.bytes, sim.len, &o), 0);
	return o;
}

/* ---- what must hold at each moment ---- */

static void check_node(const struct cluster_object *o, struct node *n)
{
	const struct cluster_member *row = cluster_look(o, n->name);

	if (!n->m || !member_may_answer(n->m))
		return;
	cr_assert_not(n->fenced, "%s answers, and was told that it is fenced", n->name);
	cr_assert(!sim.faults || !n->apart, "%s leaves, and no clock is apart", n->name);
	cr_assert_not_null(row);
	cr_assert_neq(row->state, CLUSTER_DEAD, "%s answers at %llu ms, and is declared dead",
		      n->name, (unsigned long long)sim.now_ms);
	if (cluster_all_enforce(o))
		cr_assert(n->enforcing, "all are said to enforce, and %s grants locks", n->name);
}

static void check_all(void)
{
	const struct cluster_object o = object_now();

	for (unsigned i = 0; i < NODES; i++)
		check_node(&o, &sim.node[i]);
}

/* ---- the server around a member ---- */

static void on_enforce(void *ctx, bool on)
{
	((struct node *)ctx)->enforcing = on;
}

static void on_reclaim(void *ctx, uint64_t epoch)
{
	struct node *n = ctx;
	const struct cluster_object o = object_now();

	cr_expect_eq(epoch, o.epoch);
	cr_expect(cluster_all_enforce(&o), "reclaims begin before all enforce");
	n->may_reclaim = true;
}

static void on_fenced(void *ctx, const char *reason)
{
	struct node *n = ctx;

	cr_assert_not(n->fenced, "told twice");
	cr_assert_not_null(reason);
	n->fenced = true;
}

static void on_apart(void *ctx)
{
	struct node *n = ctx;

	cr_assert_not(n->apart, "told twice");
	n->apart = n->leaving = true;
	member_leave(n->m, true);
}

/* Answers to the second question about a run since that time, as the file system takes its time. */
static int on_stands(void *ctx, uint64_t run, uint64_t since)
{
	struct node *n = ctx;

	uint64_t *asked = &n->asked_since[run % rn_array_size(n->asked_since)];

	if (since != 0 && *asked < since) {
		*asked = sim.now_ms;
		return -EINPROGRESS;
	}
	return n->no_locks ? n->no_locks : run != sim.dropped_run;
}

static void on_reclaims_lost(void *ctx)
{
	struct node *n = ctx;

	cr_assert_not(n->lost, "told twice");
	n->lost = true;
	member_reclaimed(n->m);
}

static uint64_t now_of(void *ctx)
{
	(void)ctx;
	return sim.now_ms;
}

static uint64_t wall_of(void *ctx)
{
	return (UINT64_C(1700000000000) + sim.now_ms +
		(uint64_t)((struct node *)ctx)->wall_ahead_ms) *
	       1000000u;
}

static const struct member_calls calls = {
	.enforce = on_enforce,
	.reclaim_allowed = on_reclaim,
	.stands = on_stands,
	.reclaims_lost = on_reclaims_lost,
	.fenced = on_fenced,
	.apart = on_apart,
	.now_ms = now_of,
	.wall_ns = wall_of,
};

static void on_log(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	const size_t used = strlen(sim.said);

	(void)ctx;
	(void)level;
	vsnprintf(sim.said + used, sizeof(sim.said) - used, fmt, ap);
}

static const struct rn_logger logger = { .level = RN_INFO, .write = on_log };

static bool said(const char *what)
{
	const bool found = strstr(sim.said, what) != NULL;

	sim.said[0] = 0;
	return found;
}

static struct member_cfg cfg_of(struct node *n, bool has_records)
{
	return (struct member_cfg){
		{ n->name, n->digest, has_records, DEAD_MS, { 0 } }, &n->store, &calls, n, &logger
	};
}

/* The program is run anew, and goes on as the same run. */
static int resume(struct node *n)
{
	const struct member_cfg cfg = cfg_of(n, true);
	const struct member_run run = member_run(n->m);
	int rc;

	member_free(n->m);
	n->m = NULL;
	n->enforcing = true;
	n->in_step = true;
	rc = member_resume(&cfg, &run, &n->m);
	n->in_step = false;
	n->due_ms = sim.now_ms;
	return rc;
}

static int start(unsigned i, bool has_records, enum cluster_refusal *refusal)
{
	struct node *n = &sim.node[i];
	const struct member_cfg cfg = cfg_of(n, has_records);
	int rc;

	n->enforcing = true;
	n->fenced = n->may_reclaim = n->leaving = n->apart = n->lost = false;
	n->in_step = true;
	rc = member_start(&cfg, &n->m, refusal);
	n->in_step = false;
	n->due_ms = sim.now_ms;
	return rc;
}

static void end(unsigned i)
{
	member_free(sim.node[i].m);
	sim.node[i].m = NULL;
}

/* ---- time ---- */

static void run_node(struct node *n)
{
	enum cluster_refusal refusal;

	if (!n->m) {
		n->due_ms = sim.now_ms + 1000;
		start((unsigned)(n - sim.node), true, &refusal);
		return;
	}
	if (n->fenced || (n->leaving && member_may_close(n->m)) ||
	    (sim.faults && random() % 400 == 0)) {
		end((unsigned)(n - sim.node)); /* it has ended, or crashes; and is started again */
		n->due_ms = sim.now_ms + (sim.faults ? (uint64_t)random() % 20000 : 100);
		return;
	}
	if (sim.faults && !n->enforcing && !n->leaving && random() % 100 == 0) {
		resumed += resume(n) == 0;
		return;
	}
	if (n->may_reclaim)
		member_reclaimed(n->m);
	if (sim.faults && random() % 500 == 0) {
		member_leave(n->m, random() % 2);
		n->leaving = true;
	}
	n->in_step = true;
	n->due_ms = sim.now_ms + 1 + member_step(n->m);
	n->in_step = false;
	if (sim.faults && random() % 60 == 0)
		n->due_ms += (uint64_t)random() % 20000; /* it is stopped for a time */
}

static void run_until(uint64_t until)
{
	for (;;) {
		struct node *next = NULL;

		for (unsigned i = 0; i < NODES; i++) {
			struct node *n = &sim.node[i];

			if (!n->in_step && n->due_ms <= until &&
			    (!next || n->due_ms < next->due_ms))
				next = n;
		}
		if (!next)
			break;
		if (next->due_ms > sim.now_ms)
			sim.now_ms = next->due_ms;
		check_all();
		run_node(next);
		check_all();
	}
	if (until > sim.now_ms)
		sim.now_ms = until;
	check_all();
}

/* ---- the store ---- */

static struct node *node_of(struct cluster_store *s)
{
	return rn_container_of(s, struct node, store);
}

/* Time that a part of a call takes. */
static void pass_time(struct node *n)
{
	unsigned ms = n->slow_ms;

	n->slow_ms = 0;
	if (sim.faults && random() % 80 == 0)
		ms = (unsigned)random() % 12000;
	if (ms > 0)
		run_until(sim.now_ms + ms);
}

static int sim_read(struct cluster_store *s, uint8_t *bytes, size_t size, size_t *len,
		    uint64_t *version)
{
	struct node *n = node_of(s);

	pass_time(n);
	*version = 0;
	if (n->fails && !n->only_beats_fail)
		return n->fails;
	if (sim.version == 0)
		return -ENOENT;
	cr_assert_leq(sim.len, size);
	memcpy(bytes, sim.bytes, sim.len);
	*len = sim.len;
	*version = sim.version;
	pass_time(n);
	return 0;
}

static int sim_swap(struct cluster_store *s, uint64_t version, const uint8_t *bytes, size_t len)
{
	struct node *n = node_of(s);

	pass_time(n);
	if (n->fails && !n->only_beats_fail)
		return n->fails;
	if (version != sim.version)
		return -RN_ECHANGED;
	memcpy(sim.bytes, bytes, len);
	sim.len = len;
	sim.version++;
	check_all();
	pass_time(n);
	return sim.faults && random() % 50 == 0 ? -EIO
						: 0; /* it was done, and the answer is lost */
}

static int sim_beat(struct cluster_store *s, const struct cluster_beat *beat)
{
	struct node *n = node_of(s);

	pass_time(n);
	if (n->fails)
		return n->fails;
	sim.beat[n - sim.node] = *beat;
	pass_time(n);
	return 0;
}

static int sim_look(struct cluster_store *s, const char *name, struct cluster_beat *beat)
{
	struct node *n = node_of(s);

	pass_time(n);
	if (n->fails && !n->only_beats_fail)
		return n->fails;
	for (unsigned i = 0; i < NODES; i++)
		if (strcmp(sim.beat[i].name, name) == 0) {
			*beat = sim.beat[i];
			pass_time(n);
			return 0;
		}
	return -ENOENT;
}

static int sim_evict(struct cluster_store *s, const char *name, uint64_t incarnation)
{
	const struct cluster_object o = object_now();

	const struct cluster_member *row = cluster_look(&o, name);

	cr_expect(cluster_all_enforce(&o) || sim.faults || (row && row->lost),
		  "%s is evicted before all enforce", name);
	(void)incarnation;
	node_of(s)->evicted++;
	return 0;
}

static const struct cluster_store_ops sim_ops = { sim_read, sim_swap,  sim_beat, sim_look,
						  NULL,	    sim_evict, NULL };

static void begin(void)
{
	static const char *const names[NODES] = { "a", "b", "c" };

	memset(&sim, 0, sizeof(sim));
	sim.now_ms = 1000000;
	for (unsigned i = 0; i < NODES; i++) {
		sim.node[i].store.ops = &sim_ops;
		sim.node[i].name = names[i];
		sim.node[i].due_ms = UINT64_MAX;
	}
}

static void finish(void)
{
	for (unsigned i = 0; i < NODES; i++)
		end(i);
}

TestSuite(cluster_member, .init = begin, .fini = finish);

static void start_nodes(unsigned n)
{
	enum cluster_refusal refusal;

	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(start(i, false, &refusal), 0);
	run_until(sim.now_ms + 3000);
}

/* A machine stops: nothing of it runs any more, though nobody knows. */
static void stop_machine(unsigned i)
{
	sim.node[i].due_ms = UINT64_MAX;
}

Test(cluster_member, restart)
{
	enum cluster_refusal refusal;

	start_nodes(2);
	cr_expect_not(sim.node[0].enforcing);
	cr_expect(member_may_answer(sim.node[0].m));
	end(0);
	cr_assert_eq(start(0, true, &refusal), 0);
	cr_expect(member_has_reclaims(sim.node[0].m));
	stop_machine(0);
	run_until(sim.now_ms + 3000);
	cr_expect(sim.node[1].enforcing, "b enforces for a");
	sim.node[0].due_ms = sim.now_ms;
	cr_expect_eq(sim.node[0].evicted, 0);
	run_until(sim.now_ms + 1);
	cr_expect(sim.node[0].may_reclaim);
	cr_expect_eq(sim.node[0].evicted, 1, "its last run may have been on another machine");
	run_until(sim.now_ms + 5000);
	cr_expect_not(sim.node[0].enforcing);
	cr_expect_not(sim.node[1].enforcing);
	cr_expect_eq(object_now().reclaim_epoch, 0);
}

Test(cluster_member, death)
{
	const uint64_t died = sim.now_ms + 3000;
	struct cluster_object o;

	start_nodes(3);
	stop_machine(0);
	run_until(died + DEAD_MS * 4 / 5 + 1);
	cr_expect_not(member_may_answer(sim.node[0].m), "its lease is over");
	run_until(died + DEAD_MS - 1500);
	cr_expect_eq(object_now().reclaim_epoch, 0, "it is declared dead too early");
	run_until(died + DEAD_MS + 4000);
	o = object_now();
	cr_expect_eq(cluster_look(&o, "a")->state, CLUSTER_DEAD);
	cr_expect(sim.node[1].enforcing && sim.node[2].enforcing);
	cr_expect(said("member a is dead"));
	cr_expect_eq(sim.node[1].evicted, 1);
	/* The member that was declared dead was only slow. */
	sim.node[0].in_step = true;
	member_step(sim.node[0].m);
	sim.node[0].in_step = false;
	cr_expect(sim.node[0].fenced);
	cr_expect_not(member_may_answer(sim.node[0].m));
	sim.node[0].due_ms = sim.now_ms; /* it is started again */
	run_until(sim.now_ms + 10000);
	cr_expect_eq(object_now().reclaim_epoch, 0);
	cr_expect_not(sim.node[1].enforcing);
}

/* The file system gives up the client of a member that runs, and then that ends. */
Test(cluster_member, locks_dropped_before_death)
{
	struct cluster_object o;

	start_nodes(3);
	sim.dropped_run = cluster_look(member_object(sim.node[0].m), "a")->incarnation;
	stop_machine(0);
	run_until(sim.now_ms + DEAD_MS + 4000);
	o = object_now();
	cr_expect_eq(cluster_look(&o, "a")->state, CLUSTER_DEAD);
	cr_expect(cluster_look(&o, "a")->lost);
	cr_expect_eq(o.reclaim_epoch, 0, "nobody waits for what nobody may reclaim");
	cr_expect_not(sim.node[1].enforcing || sim.node[2].enforcing);
	cr_expect(said("dropped the locks of member a"));
	cr_expect_gt(sim.node[1].evicted, 0, "another mount of it may live");
	end(0);
	sim.node[0].due_ms = sim.now_ms;
	run_until(sim.now_ms + 5000);
	cr_expect_not(sim.node[0].may_reclaim);
	o = object_now();
	cr_expect_not(cluster_look(&o, "a")->lost, "its records were dropped before it joined");
	cr_expect_not(sim.node[0].enforcing);
}

/* The member is started again before another has declared it dead. */
Test(cluster_member, locks_dropped_before_restart)
{
	enum cluster_refusal refusal;

	start_nodes(2);
	sim.dropped_run = cluster_look(member_object(sim.node[0].m), "a")->incarnation;
	end(0);
	cr_assert_eq(start(0, true, &refusal), 0);
	cr_expect_not(member_has_reclaims(sim.node[0].m));
	cr_expect_eq(object_now().reclaim_epoch, 0);
	end(0);
	/* A file system that does not tell. */
	sim.node[0].no_locks = -EIO;
	cr_expect_eq(start(0, true, &refusal), -EIO);
	sim.node[0].no_locks = 0;
	sim.node[0].due_ms = UINT64_MAX;
}

/* They are dropped after it was started again, and before the others have stopped granting. */
Test(cluster_member, locks_dropped_after_restart)
{
	enum cluster_refusal refusal;

	start_nodes(2);
	sim.dropped_run = cluster_look(member_object(sim.node[0].m), "a")->incarnation;
	const uint64_t run = sim.dropped_run;

	sim.dropped_run = 0;
	end(0);
	cr_assert_eq(start(0, true, &refusal), 0);
	cr_expect(member_has_reclaims(sim.node[0].m));
	/* b stops granting, and does not say so before it knows. */
	sim.node[1].no_locks = -EIO;
	run_until(sim.now_ms + 5000);
	cr_expect(sim.node[1].enforcing);
	cr_expect_not(sim.node[0].may_reclaim);
	cr_expect(said("cannot look for another's locks"));
	sim.dropped_run = run;
	sim.node[1].no_locks = 0;
	run_until(sim.now_ms + 5000);
	cr_expect(sim.node[0].lost, "it is told that its clients may not reclaim");
	cr_expect_not(sim.node[0].may_reclaim);
	cr_expect_not(sim.node[0].enforcing || sim.node[1].enforcing);
	const struct cluster_object o = object_now();

	cr_expect(!cluster_look(&o, "a")->lost && cluster_look(&o, "a")->state == CLUSTER_RUNNING);
	cr_expect_eq(o.reclaim_epoch, 0);
}

/* The program of a member is run anew: the others see no more than its heartbeat. */
Test(cluster_member, resumes)
{
	const struct cluster_object before = (start_nodes(2), object_now());
	struct cluster_object o;

	for (unsigned i = 0; i < 5; i++) {
		cr_assert_eq(resume(&sim.node[0]), 0);
		cr_expect(member_may_answer(sim.node[0].m));
		cr_expect(sim.node[0].enforcing, "no locks before the first step");
		run_until(sim.now_ms + 1);
		cr_expect_not(sim.node[0].enforcing);
		run_until(sim.now_ms + 100 + 2 * DEAD_MS * (i % 2));
		cr_expect_not(sim.node[1].enforcing);
	}
	o = object_now();
	cr_expect_eq(o.epoch, before.epoch);
	cr_expect_eq(cluster_look(&o, "a")->incarnation, cluster_look(&before, "a")->incarnation);
	cr_expect_eq(sim.node[1].evicted, 0);
	/* Settings that all have in common are others. */
	sim.node[0].digest.settings[0] ^= 1;
	cr_expect_eq(resume(&sim.node[0]), -ESTALE);
	sim.node[0].digest.settings[0] ^= 1;
	cr_expect_null(sim.node[0].m);
}

Test(cluster_member, resumes_too_late)
{
	start_nodes(2);
	const struct member_run run = member_run(sim.node[0].m);
	struct node *n = &sim.node[0];
	const struct member_cfg cfg = cfg_of(n, true);

	stop_machine(0);
	end(0);
	n->fails = -EIO;
	cr_expect_eq(member_resume(&cfg, &run, &n->m), -EIO);
	n->fails = 0;
	run_until(sim.now_ms + DEAD_MS + 5000);
	cr_expect_eq(member_resume(&cfg, &run, &n->m), -ESTALE);
	cr_expect_null(n->m);
}

Test(cluster_member, store_fails)
{
	start_nodes(2);
	sim.node[0].fails = -EIO;
	run_until(sim.now_ms + DEAD_MS * 4 / 5 - 2000);
	cr_expect_not(sim.node[0].fenced, "a short failure does nothing");
	cr_expect(said("cannot write its heartbeat"));
	sim.node[0].fails = 0;
	run_until(sim.now_ms + 2 * DEAD_MS);
	cr_expect_not(sim.node[0].fenced);
	stop_machine(1);
	end(1);
	sim.node[0].fails = -EIO;
	sim.node[0].only_beats_fail = true;
	sim.said[0] = 0;
	for (unsigned i = 0; i < 10 && !sim.node[0].fenced; i++)
		run_until(sim.now_ms + 1000);
	cr_expect(sim.node[0].fenced);
	cr_expect(said("did not reach the store in time"));
}

/* Calls to the store that take long: within the lease, and beyond it. */
Test(cluster_member, store_hangs)
{
	start_nodes(2);
	sim.node[0].slow_ms = DEAD_MS / 2;
	run_until(sim.now_ms + DEAD_MS);
	cr_expect(sim.node[0].m && member_may_answer(sim.node[0].m));
	cr_expect_not(said("fenced"));
	sim.node[0].slow_ms = DEAD_MS;
	run_until(sim.now_ms + DEAD_MS);
	cr_expect(said("did not reach the store in time"));
	run_until(sim.now_ms + DEAD_MS);
	cr_expect_eq(object_now().reclaim_epoch, 0, "it was started again");
}

Test(cluster_member, leaving)
{
	enum cluster_refusal refusal;

	start_nodes(2);
	stop_machine(1);
	member_leave(sim.node[0].m, true);
	run_until(sim.now_ms + 1500);
	cr_expect(sim.node[0].enforcing);
	cr_expect_not(member_may_close(sim.node[0].m), "b does not enforce yet");
	sim.node[1].due_ms = sim.now_ms;
	run_until(sim.now_ms + 3000);
	cr_expect(sim.node[1].enforcing);
	cr_expect(member_may_close(sim.node[0].m));
	cr_expect_not(sim.node[0].fenced);
	end(0);
	cr_assert_eq(start(0, false, &refusal), 0);
	run_until(sim.now_ms + 3000);
	cr_expect_not(sim.node[1].enforcing);
}

Test(cluster_member, removed)
{
	struct cluster_object o;

	start_nodes(2);
	o = object_now();
	o.member[0].state = CLUSTER_STOPPED;
	cr_assert_eq(cluster_remove(&o, "a"), CLUSTER_OK);
	sim.len = cluster_encode(&o, sim.bytes);
	sim.version++;
	sim.node[0].in_step = true;
	member_step(sim.node[0].m);
	cr_expect(sim.node[0].fenced);
	cr_expect(said("removed from the cluster"));
	sim.node[0].in_step = false;
	stop_machine(0);
}

static bool is_running(const char *name)
{
	const struct cluster_object o = object_now();
	const struct cluster_member *row = cluster_look(&o, name);

	return row && row->state == CLUSTER_RUNNING;
}

/* Runs until that member has left because of its clock, and does not start it again. */
static void expect_apart(unsigned i)
{
	for (unsigned s = 0; s < 36000 && !sim.node[i].apart; s++)
		run_until(sim.now_ms + 100);
	cr_assert(sim.node[i].apart, "%s does not leave", sim.node[i].name);
	for (unsigned k = 0; k < NODES; k++)
		cr_expect(k == i || !sim.node[k].apart, "%s leaves, too", sim.node[k].name);
	while (sim.node[i].m)
		run_until(sim.now_ms + 10);
	stop_machine(i);
	cr_expect_not(is_running(sim.node[i].name));
}

/* If two members differ, that which was started last leaves, whichever is ahead. */
Test(cluster_member, clocks_of_two)
{
	for (unsigned i = 0; i < 2; i++) {
		finish();
		begin();
		sim.node[i].wall_ahead_ms = 12;
		start_nodes(2);
		expect_apart(1);
		cr_expect(said("ms ahead of this one's"));
		run_until(sim.now_ms + 600000);
		cr_expect_not(sim.node[0].apart);
	}
}

/* If one of three members differs from both others, it leaves, whenever it was started. */
Test(cluster_member, clocks_of_three)
{
	for (unsigned i = 0; i < 2 * NODES; i++) {
		finish();
		begin();
		sim.node[i / 2].wall_ahead_ms = i % 2 ? 15 : -15;
		start_nodes(NODES);
		expect_apart(i / 2);
		cr_expect(said("it leaves"));
	}
}

/* Nobody differs from most of the others. */
Test(cluster_member, clocks_in_a_row)
{
	sim.node[0].wall_ahead_ms = -8;
	sim.node[2].wall_ahead_ms = 8;
	start_nodes(NODES);
	run_until(sim.now_ms + 3600000);
	for (unsigned i = 0; i < NODES; i++)
		cr_expect_not(sim.node[i].apart);
	cr_expect(said("clock of member c is at least"));
}

Test(cluster_member, clocks_that_are_right)
{
	sim.node[0].wall_ahead_ms = 10;
	start_nodes(2);
	for (unsigned i = 0; i < 600; i++) {
		sim.node[i % 2].slow_ms = i % 7 == 0 ? DEAD_MS / 2 : 0;
		run_until(sim.now_ms + 1000);
	}
	cr_expect_not(said("clock"), "10 ms are nothing to tell, however long reading takes");
	/* One heartbeat of a clock that is set right at once. */
	sim.node[0].wall_ahead_ms = 60000;
	sim.node[0].due_ms = sim.now_ms;
	run_until(sim.now_ms + 1);
	sim.node[0].wall_ahead_ms = 0;
	run_until(sim.now_ms + 60000);
	cr_expect(!sim.node[0].apart && !sim.node[1].apart);
}

/* The member leaves, or is not let in, and joins again when its clock is right. */
Test(cluster_member, clock_at_the_start)
{
	enum cluster_refusal refusal;

	start_nodes(2);
	sim.node[2].wall_ahead_ms = -5000;
	cr_expect_eq(start(2, false, &refusal), -EPERM);
	cr_expect_eq(refusal, CLUSTER_CLOCK);
	cr_expect(said("ms ahead of this one's"));
	sim.node[2].wall_ahead_ms = 5000;
	cr_expect_eq(start(2, false, &refusal), 0, "nobody has seen it yet");
	expect_apart(2);
	sim.node[2].wall_ahead_ms = 0;
	cr_expect_eq(start(2, true, &refusal), 0);
	run_until(sim.now_ms + 600000);
	cr_expect(is_running("c") && !sim.node[2].apart);
	cr_expect_eq(object_now().reclaim_epoch, 0);
	/* Only one of two others is ahead. */
	end(2);
	stop_machine(2);
	sim.node[0].wall_ahead_ms = 60000;
	run_until(sim.now_ms + 1500);
	cr_expect_eq(start(2, true, &refusal), 0);
	expect_apart(0);
}

Test(cluster_member, digests)
{
	enum cluster_refusal refusal;
	struct cluster_digest other = { .exports = { 1 } };

	start_nodes(2);
	sim.node[2].digest = other;
	cr_expect_eq(start(2, false, &refusal), -EPERM);
	cr_expect_eq(refusal, CLUSTER_UNLIKE);
	sim.node[2].due_ms = UINT64_MAX;
	member_set_digest(sim.node[0].m, &other);
	run_until(sim.now_ms + 3000);
	cr_expect(said("differs from member a: exports"));
	member_set_digest(sim.node[1].m, &other);
	run_until(sim.now_ms + 3000);
	cr_expect(said("the same exports"));
	cr_expect_eq(start(2, false, &refusal), 0);
}

/* Everything goes wrong for a time, and ends well. */
static void random_round(unsigned seed)
{
	srandom(seed);
	begin();
	start_nodes(NODES);
	sim.faults = true;
	for (unsigned i = 0; i < 60; i++) {
		struct node *n = &sim.node[(unsigned)random() % NODES];

		n->wall_ahead_ms = random() % (CLUSTER_CLOCK_MS + 1);
		n->fails = random() % 8 == 0 ? -EIO : 0;
		n->only_beats_fail = random() % 2;
		run_until(sim.now_ms + (uint64_t)random() % 5000);
	}
	sim.faults = false;
	for (unsigned i = 0; i < NODES; i++)
		sim.node[i].fails = 0;
	run_until(sim.now_ms + 120000);
	cr_assert_eq(object_now().reclaim_epoch, 0, "seed %u: the grace does not end", seed);
	for (unsigned i = 0; i < NODES; i++)
		cr_assert(sim.node[i].m && !sim.node[i].enforcing &&
				  member_may_answer(sim.node[i].m),
			  "seed %u: %s does not serve", seed, sim.node[i].name);
	finish();
}

Test(cluster_member, random_failures, .timeout = 600)
{
	uint64_t epochs = 0, runs = 0;

	for (unsigned seed = 1; seed <= ROUNDS; seed++) {
		random_round(seed);
		epochs += object_now().epoch - 1;
		runs += object_now().last_incarnation;
	}
	printf("cluster members: %u rounds, %llu graces, %llu runs, resumed %u times\n", ROUNDS,
	       (unsigned long long)epochs, (unsigned long long)runs, resumed);
	cr_expect_gt(resumed, 0);
	begin();
}
