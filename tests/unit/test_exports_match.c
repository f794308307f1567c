/* SPDX-License-Identifier: BSD-2-Clause */
/* Choice of the line of an access list for a peer, its cost in look-ups, and when it is renewed. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/exports.h"
#include "lib/error.h"

/* The tests' name service: a table, counters, a clock, and a switch for an outage. */
struct zone {
	const char *name;
	const char *addr;
	bool reverse; /* the address's reverse entry is this name */
};

static const struct zone zone[] = {
	{ "master.example.org", "192.0.2.1", true },   { "short", "192.0.2.1", false },
	{ "two.example.org", "192.0.2.2", true },      { "two.example.org", "2001:db8::2", true },
	{ "liar.example.org", "198.51.100.1", false }, { "Build7.Example.Org.", "192.0.2.7", true },
	{ "build7.example.org", "192.0.2.7", false },  { "other.net", "203.0.113.9", true },
	{ "192.0.2.66", "192.0.2.66", true },
};

enum { N_ZONE = sizeof(zone) / sizeof(zone[0]) };

struct fake {
	unsigned reverse;
	unsigned forward;
	unsigned netgroup;
	uint64_t now;
	uint64_t cost; /* milliseconds that each look-up takes */
	bool down;
	bool reverse_down;
	bool gone;	   /* all names are unknown */
	unsigned delay_us; /* microseconds of real time, so that threads meet */
};

static void charge(struct fake *fake, unsigned *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&fake->now, fake->cost, __ATOMIC_RELAXED);
	if (fake->delay_us)
		usleep(fake->delay_us);
}

static bool is_addr(const char *text, const struct exp_addr *addr)
{
	struct exp_addr of_text;

	return exp_addr_from_text(text, &of_text) && exp_addr_equal(&of_text, addr);
}

static int fake_reverse(void *arg, const struct exp_addr *addr, char name[EXP_NAME_MAX])
{
	struct fake *fake = arg;

	charge(fake, &fake->reverse);
	if (fake->down || fake->reverse_down)
		return -RN_ELATER;
	/* The name's forward entry is another address. */
	if (is_addr("203.0.113.66", addr)) {
		strcpy(name, "liar.example.org");
		return 0;
	}
	for (unsigned i = 0; i < N_ZONE && !fake->gone; i++) {
		if (zone[i].reverse && is_addr(zone[i].addr, addr)) {
			strcpy(name, zone[i].name);
			return 0;
		}
	}
	return -ENOENT;
}

static int fake_forward(void *arg, const char *name, struct exp_addr *addrs, unsigned max)
{
	struct fake *fake = arg;
	unsigned n = 0;

	charge(fake, &fake->forward);
	if (fake->down)
		return -RN_ELATER;
	for (unsigned i = 0; i < N_ZONE && n < max && !fake->gone; i++)
		if (!strcmp(zone[i].name, name))
			n += exp_addr_from_text(zone[i].addr, &addrs[n]);
	return n ? (int)n : -ENOENT;
}

static int fake_netgroup(void *arg, const char *group, const char *const *names, unsigned n)
{
	struct fake *fake = arg;

	charge(fake, &fake->netgroup);
	if (fake->down)
		return -RN_ELATER;
	for (unsigned i = 0; i < n; i++) {
		if (!strcmp(group, "lab") && !strcmp(names[i], "two"))
			return 1;
		if (!strcmp(group, "Addrs") && !strcmp(names[i], "203.0.113.5"))
			return 1;
	}
	return 0;
}

static uint64_t fake_now(void *arg)
{
	return __atomic_load_n(&((struct fake *)arg)->now, __ATOMIC_RELAXED);
}

struct fixture {
	struct fake fake;
	struct exp_table *table;
	struct exp_matcher *matcher;
};

static void setup_with(struct fixture *f, const char *text, const struct exp_match_conf *conf)
{
	static const struct exp_load_opts no_checks;
	struct exp_resolver resolver = { fake_reverse, fake_forward, fake_netgroup,
					 fake_now,     &f->fake,     NULL };
	struct cfg_diags diags;

	memset(&f->fake, 0, sizeof(f->fake));
	f->fake.now = 1000;
	cfg_diags_init(&diags);
	cr_assert(exp_table_parse("f", text, strlen(text), &no_checks, &diags, &f->table) == 0);
	cr_assert(diags.errors == 0, "%s", text);
	cfg_diags_free(&diags);
	cr_assert(exp_matcher_new(f->table, &resolver, conf, &f->matcher) == 0);
}

static void setup(struct fixture *f, const char *text)
{
	const struct exp_match_conf conf = { .ttl_ms = 1000, .fail_ttl_ms = 100 };

	setup_with(f, text, &conf);
}

static void teardown(struct fixture *f)
{
	exp_matcher_free(f->matcher);
	exp_table_unref(f->table);
}

static struct sockaddr_storage peer(const char *text)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		return ss;
	}
	cr_assert(inet_pton(AF_INET6, text, &in6->sin6_addr) == 1, "%s", text);
	in6->sin6_family = AF_INET6;
	return ss;
}

/* Returns the anonuid of the line that matches; -1: no access; -2: not known yet. */
static int who(struct fixture *f, const char *addr)
{
	struct sockaddr_storage ss = peer(addr);
	const struct exp_opts *opts;
	int rc = exp_match(f->matcher, &f->table->exports[0], (struct sockaddr *)&ss, &opts);

	cr_expect((rc == 0) == (opts != NULL));
	cr_expect(rc == 0 || rc == -EACCES || rc == -RN_EUNNAMED);
	return rc == 0 ? (int)opts->anonuid : rc == -RN_EUNNAMED ? -2 : -1;
}

struct case_ {
	const char *clients;
	const char *addr;
	int want;
	unsigned lookups; /* look-ups of all kinds together */
};

static const struct case_ cases[] = {
	/* Matches by address need no name service. */
	{ "192.0.2.1(anonuid=1)", "192.0.2.1", 1, 0 },
	{ "192.0.2.1(anonuid=1)", "192.0.2.2", -1, 0 },
	{ "192.0.2.1(anonuid=1)", "::ffff:192.0.2.1", 1, 0 },
	{ "::ffff:192.0.2.1(anonuid=1)", "192.0.2.1", 1, 0 },
	{ "2001:db8::1(anonuid=1)", "2001:db8::1", 1, 0 },
	{ "192.0.2.0/24(anonuid=1)", "192.0.2.255", 1, 0 },
	{ "192.0.2.0/24(anonuid=1)", "192.0.3.0", -1, 0 },
	{ "192.0.2.0/24(anonuid=1)", "::ffff:192.0.2.9", 1, 0 },
	{ "192.0.2.128/25(anonuid=1)", "192.0.2.127", -1, 0 },
	{ "192.0.2.128/25(anonuid=1)", "192.0.2.128", 1, 0 },
	{ "192.0.2.6/31(anonuid=1)", "192.0.2.7", 1, 0 },
	{ "192.0.2.6/31(anonuid=1)", "192.0.2.8", -1, 0 },
	{ "0.0.0.0/0(anonuid=1)", "203.0.113.1", 1, 0 },
	{ "0.0.0.0/0(anonuid=1)", "2001:db8::1", -1, 0 },
	{ "::/0(anonuid=1)", "192.0.2.1", -1, 0 },
	{ "2001:db8::/33(anonuid=1)", "2001:db8:7fff::1", 1, 0 },
	{ "2001:db8::/33(anonuid=1)", "2001:db8:8000::1", -1, 0 },
	{ "*(anonuid=1)", "2001:db8:8000::1", 1, 0 },
	/* Kinds of clients have an order of precedence, independent of the order in the line. */
	{ "*(anonuid=5) @lab(anonuid=4) *.example.org(anonuid=3) 192.0.2.0/24(anonuid=2) "
	  "192.0.2.2(anonuid=1)",
	  "192.0.2.2", 1, 0 },
	{ "*(anonuid=5) @lab(anonuid=4) *.example.org(anonuid=3) 192.0.2.0/24(anonuid=2)",
	  "192.0.2.2", 2, 0 },
	{ "*(anonuid=5) @lab(anonuid=4) *.example.org(anonuid=3)", "192.0.2.2", 3, 2 },
	{ "*(anonuid=5) @lab(anonuid=4)", "192.0.2.2", 4, 3 },
	{ "*(anonuid=5) @lab(anonuid=4)", "192.0.2.1", 5, 3 },
	/* Within one kind the first match wins. */
	{ "192.0.2.0/24(anonuid=1) 192.0.0.0/16(anonuid=2)", "192.0.2.2", 1, 0 },
	{ "192.0.0.0/16(anonuid=2) 192.0.2.0/24(anonuid=1)", "192.0.2.2", 2, 0 },
	{ "192.0.2.1(anonuid=1) master.example.org(anonuid=2)", "192.0.2.1", 1, 0 },
	{ "master.example.org(anonuid=2) 192.0.2.1(anonuid=1)", "192.0.2.1", 2, 1 },
	{ "*.org(anonuid=1) *.example.org(anonuid=2)", "192.0.2.1", 1, 2 },
	/* Host names are looked up forward: aliases and several addresses work. */
	{ "short(anonuid=1)", "192.0.2.1", 1, 1 },
	{ "TWO.example.org(anonuid=1)", "192.0.2.2", 1, 1 },
	{ "two.example.org(anonuid=1)", "2001:db8::2", 1, 1 },
	{ "two.example.org(anonuid=1)", "192.0.2.1", -1, 1 },
	{ "nowhere(anonuid=1)", "192.0.2.1", -1, 1 },
	/* Wildcards match the confirmed name, dots included, in any case. */
	{ "*.example.org(anonuid=1)", "192.0.2.7", 1, 2 },
	{ "*.EXAMPLE.org(anonuid=1)", "192.0.2.7", 1, 2 },
	{ "build[0-9].*(anonuid=1)", "192.0.2.7", 1, 2 },
	{ "build[!0-9].*(anonuid=1)", "192.0.2.7", -1, 2 },
	{ "*.org(anonuid=1)", "192.0.2.7", 1, 2 },
	{ "?uild7.example.org(anonuid=1)", "192.0.2.7", 1, 2 },
	{ "*.example.com(anonuid=1)", "192.0.2.7", -1, 2 },
	{ "*.example.org(anonuid=1)", "203.0.113.66", -1, 2 },
	{ "*.example.org(anonuid=1)", "203.0.113.1", -1, 1 },
	{ "192.*(anonuid=1)", "192.0.2.66", -1, 1 },
	/*
	 * Netgroups match by full name, short name and address; the case of a group's name counts.
	 */
	{ "@lab(anonuid=1)", "192.0.2.2", 1, 3 },
	{ "@Addrs(anonuid=1)", "203.0.113.5", 1, 2 },
	{ "@addrs(anonuid=1)", "203.0.113.5", -1, 2 },
};

Test(exports_match, precedence)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		char text[512];
		unsigned lookups;
		int got;

		snprintf(text, sizeof(text), "/a %s", cases[i].clients);
		setup(&f, text);
		got = who(&f, cases[i].addr);
		lookups = f.fake.reverse + f.fake.forward + f.fake.netgroup;
		cr_expect(got == cases[i].want, "<%s> for %s: %d", text, cases[i].addr, got);
		cr_expect(lookups == cases[i].lookups, "<%s> for %s: %u look-ups", text,
			  cases[i].addr, lookups);
		got = who(&f, cases[i].addr);
		cr_expect(got == cases[i].want, "<%s> for %s again: %d", text, cases[i].addr, got);
		cr_expect(f.fake.reverse + f.fake.forward + f.fake.netgroup == lookups,
			  "<%s> for %s: the second answer was kept", text, cases[i].addr);
		teardown(&f);
	}
}

Test(exports_match, other_families_have_no_access)
{
	struct sockaddr sa = { .sa_family = AF_UNIX };
	const struct exp_opts *opts;
	struct fixture f, other;

	setup(&f, "/a *");
	setup(&other, "/a *");
	cr_expect(exp_match(f.matcher, &f.table->exports[0], &sa, &opts) == -EACCES && !opts);
	struct sockaddr_storage ss = peer("192.0.2.1");
	cr_expect(exp_match(f.matcher, &other.table->exports[0], (struct sockaddr *)&ss, &opts) ==
			  -EACCES,
		  "an export of another table");
	teardown(&f);
	teardown(&other);
}

Test(exports_match, answers_expire)
{
	struct fixture f;

	setup(&f, "/a *.example.org(anonuid=1) short(anonuid=2)");
	cr_expect(who(&f, "192.0.2.7") == 1);
	cr_expect(f.fake.forward == 2 && f.fake.reverse == 1);
	f.fake.now += 999;
	cr_expect(who(&f, "192.0.2.7") == 1);
	cr_expect(f.fake.forward == 2 && f.fake.reverse == 1);
	f.fake.gone = true;
	f.fake.now += 1;
	cr_expect(who(&f, "192.0.2.7") == -1, "the name is gone");
	cr_expect(f.fake.forward == 3 && f.fake.reverse == 2);
	/* "No such name" is an answer and is cached like any other. */
	f.fake.gone = false;
	f.fake.now += 999;
	cr_expect(who(&f, "192.0.2.7") == -1);
	f.fake.now += 1;
	cr_expect(who(&f, "192.0.2.7") == 1);
	teardown(&f);
}

Test(exports_match, names_are_shared_between_peers_and_exports)
{
	struct fixture f;
	struct sockaddr_storage ss = peer("192.0.2.7");
	const struct exp_opts *opts;

	setup(&f, "/a short(anonuid=1) *.net(anonuid=2)\n/b short(anonuid=1) *.org(anonuid=3)");
	who(&f, "192.0.2.1");
	who(&f, "192.0.2.2");
	who(&f, "192.0.2.7");
	cr_expect(f.fake.reverse == 2, "one for each peer that is not `short`: %u", f.fake.reverse);
	cr_expect(f.fake.forward == 3, "`short` once, and two confirmations: %u", f.fake.forward);
	cr_assert(exp_match(f.matcher, &f.table->exports[1], (struct sockaddr *)&ss, &opts) == 0);
	cr_expect(opts->anonuid == 3);
	cr_expect(f.fake.reverse == 2 && f.fake.forward == 3, "the other export asks nothing new");
	teardown(&f);
}

Test(exports_match, silent_server_keeps_the_older_answer)
{
	struct fixture f;

	setup(&f, "/a short(anonuid=1) *.example.org(anonuid=2) @lab(anonuid=3) *(anonuid=9)");
	cr_expect(who(&f, "192.0.2.1") == 1);
	cr_expect(who(&f, "192.0.2.7") == 2);
	f.fake.down = true;
	f.fake.now += 1000;
	cr_expect(who(&f, "192.0.2.1") == 1);
	cr_expect(who(&f, "192.0.2.7") == 2);
	/*
	 * A peer without an older answer may belong to a narrower line, so its access is unknown.
	 */
	cr_expect(who(&f, "192.0.2.2") == -2);
	f.fake.down = false;
	f.fake.now += 99;
	cr_expect(who(&f, "192.0.2.2") == -2);
	f.fake.now += 1;
	cr_expect(who(&f, "192.0.2.2") == 2);
	teardown(&f);
}

/* A line that cannot be decided blocks the wider ones behind it, and only these. */
Test(exports_match, silent_server_widens_nothing)
{
	static const struct {
		const char *clients, *addr;
		int want;
	} silent[] = {
		{ "short(anonuid=1) *(anonuid=9)", "192.0.2.1", -2 },
		{ "short(anonuid=1) 192.0.2.0/24(anonuid=8)", "192.0.2.1", -2 },
		{ "*.example.org(anonuid=2) *(anonuid=9)", "192.0.2.2", -2 },
		{ "@lab(anonuid=3) *(anonuid=9)", "192.0.2.2", -2 },
		{ "*.example.org(anonuid=2)", "192.0.2.2", -2 },
		{ "192.0.2.0/24(anonuid=8) *.example.org(anonuid=2)", "192.0.2.2", 8 },
		{ "192.0.2.1(anonuid=1) short(anonuid=2)", "192.0.2.1", 1 },
		{ "*(anonuid=9)", "192.0.2.2", 9 },
		{ "192.0.2.1(anonuid=1)", "192.0.2.2", -1 },
	};

	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		struct fixture f;
		char text[512];
		int got;

		snprintf(text, sizeof(text), "/a %s", silent[i].clients);
		setup(&f, text);
		f.fake.down = true;
		got = who(&f, silent[i].addr);
		cr_expect(got == silent[i].want, "<%s> for %s: %d", text, silent[i].addr, got);
		teardown(&f);
	}
}

/* One name server is silent and another is not: that of the reverse zone, for example. */
Test(exports_match, half_silent)
{
	struct fixture f;

	setup(&f, "/a short(anonuid=1) *.example.org(anonuid=2) *(anonuid=9)");
	f.fake.reverse_down = true;
	cr_expect(who(&f, "192.0.2.1") == 1, "found by its name's address");
	cr_expect(who(&f, "192.0.2.2") == -2);
	teardown(&f);
}

Test(exports_match, older_answers_end)
{
	struct fixture f;
	const struct exp_match_conf conf = { .ttl_ms = 1000, .fail_ttl_ms = 100, .old_ms = 5000 };

	setup_with(&f, "/a *.example.org(anonuid=2) *(anonuid=9)", &conf);
	cr_expect(who(&f, "192.0.2.2") == 2);
	f.fake.down = true;
	for (unsigned i = 0; i < 59; i++) {
		f.fake.now += 100;
		cr_expect(who(&f, "192.0.2.2") == 2, "after %u ms", (i + 1) * 100);
	}
	f.fake.now += 100;
	cr_expect(who(&f, "192.0.2.2") == -2);
	f.fake.down = false;
	f.fake.now += 100;
	cr_expect(who(&f, "192.0.2.2") == 2);
	teardown(&f);
}

/* Look-ups that wait until the test runs them. */
struct queue {
	struct fixture f;
	void (*run[16])(void *job, bool cancelled);
	void *job[16];
	unsigned n;
	bool full;
};

static bool queue_later(void *arg, const struct exp_addr *peer,
			void (*run)(void *job, bool cancelled), void *job)
{
	struct queue *q = arg;

	(void)peer;
	if (q->full)
		return false;
	q->run[q->n] = run;
	q->job[q->n++] = job;
	return true;
}

static void queue_run(struct queue *q, bool cancelled)
{
	const unsigned n = q->n;

	q->n = 0;
	for (unsigned i = 0; i < n; i++)
		q->run[i](q->job[i], cancelled);
}

static void queue_setup(struct queue *q, const char *text)
{
	const struct exp_match_conf conf = {
		.ttl_ms = 1000, .fail_ttl_ms = 100, .later = queue_later, .later_arg = q
	};

	memset(q, 0, sizeof(*q));
	setup_with(&q->f, text, &conf);
}

Test(exports_match, with_threads_to_ask_nobody_waits)
{
	struct queue q;

	queue_setup(&q, "/a *.example.org(anonuid=2) *(anonuid=9)");
	cr_expect(who(&q.f, "192.0.2.2") == -2 && q.n == 1);
	cr_expect(who(&q.f, "192.0.2.2") == -2 && q.n == 1, "asked once");
	cr_expect(who(&q.f, "203.0.113.1") == -2 && q.n == 2);
	cr_expect(q.f.fake.reverse + q.f.fake.forward == 0, "nothing was asked by the caller");
	queue_run(&q, false);
	cr_expect(who(&q.f, "192.0.2.2") == 2 && who(&q.f, "203.0.113.1") == 9 && q.n == 0);
	/* An expired answer holds while it is renewed. */
	q.f.fake.now += 1000;
	cr_expect(who(&q.f, "192.0.2.2") == 2 && q.n == 1);
	cr_expect(who(&q.f, "192.0.2.2") == 2 && q.n == 1);
	q.f.fake.gone = true;
	queue_run(&q, false);
	cr_expect(who(&q.f, "192.0.2.2") == 9, "it has no name any more");
	teardown(&q.f);
}

Test(exports_match, questions_that_cannot_be_asked_are_asked_again)
{
	struct queue q;

	queue_setup(&q, "/a *.example.org(anonuid=2) *(anonuid=9)");
	q.full = true;
	cr_expect(who(&q.f, "192.0.2.2") == -2 && q.n == 0);
	q.full = false;
	cr_expect(who(&q.f, "192.0.2.2") == -2 && q.n == 1);
	queue_run(&q, true);
	cr_expect(who(&q.f, "192.0.2.2") == -2 && q.n == 1);
	queue_run(&q, false);
	cr_expect(who(&q.f, "192.0.2.2") == 2 && q.n == 0);
	/* After a time-out the look-up is not repeated at once. */
	q.f.fake.down = true;
	cr_expect(who(&q.f, "192.0.2.7") == -2 && q.n == 1);
	queue_run(&q, false);
	cr_expect(who(&q.f, "192.0.2.7") == -2 && q.n == 0);
	q.f.fake.now += 100;
	cr_expect(who(&q.f, "192.0.2.7") == -2 && q.n == 1);
	/* A queued look-up outlives the matcher. */
	teardown(&q.f);
	queue_run(&q, false);
}

Test(exports_match, round_has_a_budget)
{
	char *text = malloc(100 * 16 + 16);
	struct fixture f;
	size_t len = (size_t)sprintf(text, "/a");

	for (unsigned i = 0; i < 100; i++)
		len += (size_t)sprintf(text + len, " host%u", i);
	setup(&f, text);
	f.fake.down = true;
	f.fake.cost = 2000;
	cr_expect(who(&f, "192.0.2.1") == -2);
	cr_expect(f.fake.forward == 1, "%u look-ups", f.fake.forward);
	teardown(&f);
	setup(&f, text);
	f.fake.gone = true;
	f.fake.cost = 2000;
	cr_expect(who(&f, "192.0.2.1") == -2);
	cr_expect(f.fake.forward == 3, "%u look-ups", f.fake.forward);
	teardown(&f);
	free(text);
}

Test(exports_match, cache_is_bounded)
{
	const struct exp_match_conf conf = { .ttl_ms = 1000000,
					     .fail_ttl_ms = 100,
					     .max_peers = 16 };
	struct fixture f;
	char addr[32];

	setup_with(&f, "/a *.example.org(anonuid=1)", &conf);
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(addr, sizeof(addr), "10.0.%u.%u", i / 256, i % 256);
		f.fake.now++;
		cr_expect(who(&f, addr) == -1);
	}
	cr_expect(f.fake.reverse == 5000);
	who(&f, addr);
	cr_expect(f.fake.reverse == 5000, "the last one is kept");
	who(&f, "10.0.0.0");
	cr_expect(f.fake.reverse == 5001, "the first one is not");
	teardown(&f);
}

Test(exports_match, long_lists_are_kept_too)
{
	char *text = malloc(1000 * 48);
	struct fixture f;
	size_t len = (size_t)sprintf(text, "/a");

	for (unsigned i = 0; i < 1000; i++)
		len += (size_t)sprintf(text + len, " 10.0.%u.%u(anonuid=%u)", i / 250, i % 250, i);
	setup(&f, text);
	for (unsigned round = 0; round < 2; round++) {
		cr_expect(who(&f, "10.0.3.249") == 999);
		cr_expect(who(&f, "10.0.0.0") == 0);
		cr_expect(who(&f, "10.0.9.9") == -1);
	}
	cr_expect(f.fake.reverse + f.fake.forward + f.fake.netgroup == 0);
	teardown(&f);
	free(text);
}

static void *match_many(void *arg)
{
	struct fixture *f = arg;
	static const char *const addrs[] = { "192.0.2.1", "192.0.2.2", "192.0.2.7", "203.0.113.9" };
	static const int want[] = { 1, 2, 2, 9 };
	uintptr_t wrong = 0;

	for (unsigned i = 0; i < 400; i++)
		wrong += who(f, addrs[i % 4]) != want[i % 4];
	return (void *)wrong;
}

Test(exports_match, threads)
{
	struct fixture f;
	pthread_t threads[8];

	setup(&f, "/a short(anonuid=1) *.example.org(anonuid=2) *(anonuid=9)");
	f.fake.delay_us = 2000;
	for (unsigned i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, match_many, &f);
	for (unsigned i = 0; i < 8; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		cr_expect(!wrong);
	}
	cr_expect(f.fake.reverse == 3, "nobody asks what another is asking: %u", f.fake.reverse);
	cr_expect(f.fake.forward == 4, "%u", f.fake.forward);
	teardown(&f);
}

/* "SPEC=VERDICT(NAME) " for each line. */
static void explain_one(void *ctx, const struct exp_client *client, enum exp_verdict verdict,
			const char *name)
{
	fprintf(ctx, "%s=%d(%s) ", client->spec, (int)verdict, name ? name : "");
}

static void expect_explained(struct fixture *f, const char *addr, const char *want)
{
	struct sockaddr_storage ss = peer(addr);
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_expect(exp_match_explain(f->matcher, &f->table->exports[0], (struct sockaddr *)&ss,
				    explain_one, out));
	fclose(out);
	cr_expect_str_eq(text, want, "%s: %s", addr, text);
	free(text);
}

Test(exports_match, explained)
{
	struct fixture f;
	struct sockaddr_storage none = { .ss_family = AF_UNIX };

	setup(&f, "/a * @lab *.example.org 192.0.2.0/30 192.0.2.7\n");
	expect_explained(&f, "192.0.2.7",
			 "192.0.2.7=1() 192.0.2.0/30=3() *.example.org=3() @lab=3() *=3() ");
	expect_explained(&f, "192.0.2.2",
			 "192.0.2.7=0() 192.0.2.0/30=1() *.example.org=3() @lab=3() *=3() ");
	cr_expect_eq(f.fake.reverse, 0u, "no name was needed");
	expect_explained(&f, "203.0.113.9",
			 "192.0.2.7=0() 192.0.2.0/30=0() *.example.org=0(other.net) "
			 "@lab=0(other.net) *=1(other.net) ");
	expect_explained(&f, "203.0.113.66",
			 "192.0.2.7=0() 192.0.2.0/30=0() *.example.org=0() @lab=0() *=1() ");
	f.fake.down = true;
	expect_explained(&f, "203.0.113.9",
			 "192.0.2.7=0() 192.0.2.0/30=0() *.example.org=2() @lab=3() *=3() ");
	cr_expect_not(exp_match_explain(f.matcher, &f.table->exports[0], (struct sockaddr *)&none,
					explain_one, stdout));
	teardown(&f);
}

Test(exports_match, system_resolver)
{
	struct exp_resolver resolver;
	struct exp_addr addrs[4];
	const char *names[] = { "no-such-host.invalid" };
	uint64_t before;

	exp_resolver_system(&resolver);
	/* A literal needs no name service, so it can be tested anywhere. */
	cr_expect(resolver.forward(resolver.arg, "192.0.2.1", addrs, 4) == 1);
	cr_expect(is_addr("192.0.2.1", &addrs[0]));
	cr_expect(resolver.in_netgroup(resolver.arg, "no-such-group", names, 1) == 0);
	before = resolver.now(resolver.arg);
	cr_expect(resolver.now(resolver.arg) >= before);
}
