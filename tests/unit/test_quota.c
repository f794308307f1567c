/* SPDX-License-Identifier: BSD-2-Clause */
/* A bounded table that hosts share: whoever fills it, a host with little keeps its place. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/quota.h"
#include "lib/util.h"

#define PLACES 64u

struct thing {
	struct rn_quota_item item;
	bool ended;
};

static struct rn_quota quota;
static struct thing things[8192];
static unsigned nthings;

static void start(void)
{
	rn_quota_init(&quota, PLACES, 0);
}

static void empty(void)
{
	for (unsigned i = 0; i < nthings; i++) {
		if (things[i].item.of)
			rn_quota_remove(&quota, &things[i].item);
	}
	cr_expect_eq(quota.used, 0);
	memset(things, 0, sizeof(things));
	nthings = 0;
}

static void stop(void)
{
	empty();
	rn_quota_fini(&quota);
}

TestSuite(quota, .init = start, .fini = stop);

static struct rn_host host(uint32_t n)
{
	struct rn_host h = { .bytes = { [10] = 0xff, 0xff } };

	memcpy(h.bytes + 12, &n, sizeof(n));
	return h;
}

/* The item that was taken in, or NULL. */
static struct thing *enter(uint32_t from, bool admitted, size_t cost)
{
	const struct rn_host h = host(from);
	struct thing *t = &things[nthings++];
	struct rn_quota_item *old;

	cr_assert_lt(nthings, rn_array_size(things));
	while ((old = rn_quota_in_the_way(&quota, &h, admitted, cost)) != NULL) {
		rn_quota_remove(&quota, old);
		rn_container_of(old, struct thing, item)->ended = true;
	}
	return rn_quota_add(&quota, &h, admitted, &t->item, cost) ? t : NULL;
}

static size_t of(uint32_t n)
{
	const struct rn_host h = host(n);

	return rn_quota_of(&quota, &h);
}

/* Rows: so many hosts fill the table, each as long as it can; then a polite one comes with two items. */
static const struct {
	const char *what;
	unsigned hosts;
	bool admitted;
} fillers[] = {
	{ "one host", 1, true },	   { "sixteen hosts", 16, true },
	{ "as many as places", 64, true }, { "more than places", 500, true },
	{ "a stranger", 1, false },	   { "many strangers", 500, false },
};

Test(quota, whoever_fills_it_a_polite_host_is_served_and_stays)
{
	const uint32_t polite = 100000;

	for (unsigned f = 0; f < rn_array_size(fillers); f++) {
		struct thing *a, *b;

		empty();
		for (unsigned i = 0; i < 1000; i++)
			enter(1000 * (f + 1) + i % fillers[f].hosts, fillers[f].admitted, 1);
		cr_expect_eq(quota.used, PLACES, "%s", fillers[f].what);
		a = enter(polite, true, 1);
		b = enter(polite, true, 1);
		cr_assert(a && b, "%s", fillers[f].what);
		if (fillers[f].hosts > PLACES / 2 && fillers[f].admitted)
			continue; /* all have as little */
		for (unsigned i = 0; i < 100; i++)
			enter(1000 * (f + 1) + i % fillers[f].hosts, fillers[f].admitted, 1);
		cr_expect(!a->ended && !b->ended, "%s", fillers[f].what);
	}
}

Test(quota, strangers_make_room_and_get_none)
{
	struct thing *s = enter(1, false, 1);

	for (unsigned i = 1; i < PLACES; i++)
		cr_assert(enter(2, true, 1));
	cr_expect_not(s->ended);
	cr_assert(enter(3, true, 1));
	cr_expect(s->ended, "though the other has more");
	cr_expect_null(enter(4, false, 1));
	cr_expect_eq(quota.refused, 1);
	cr_expect_eq(of(2), PLACES - 1);
	cr_assert(enter(3, true, 1));
	cr_expect_eq(of(2), PLACES - 2);
}

Test(quota, the_greediest_loses_its_oldest)
{
	struct thing *first = enter(1, true, 1), *other = enter(2, true, 1);

	for (unsigned i = 2; i < PLACES; i++)
		cr_assert(enter(1, true, 1));
	cr_assert(enter(1, true, 1));
	cr_expect(first->ended, "a host with most makes room for itself");
	cr_expect_not(other->ended);
	cr_expect_eq(quota.pushed_out, 1);
	/* Two that both want all have half. */
	for (unsigned i = 0; i < 2 * PLACES; i++) {
		enter(1, true, 1);
		enter(2, true, 1);
	}
	cr_expect_eq(of(1), PLACES / 2);
	cr_expect_eq(of(2), PLACES / 2);
}

Test(quota, of_hosts_that_have_as_much_the_oldest_item_goes)
{
	struct thing *first = enter(0, true, 1), *second = enter(1, true, 1);

	for (uint32_t i = 2; i < PLACES; i++)
		cr_assert(enter(i, true, 1));
	cr_assert(enter(PLACES, true, 1));
	cr_expect(first->ended);
	cr_expect_not(second->ended);
}

Test(quota, an_item_that_was_used_is_the_newest)
{
	const struct rn_host h = host(2);
	struct thing *used = enter(1, true, 1), *old = enter(1, true, 1);

	for (unsigned i = 2; i < PLACES; i++)
		cr_assert_not_null(enter(1, true, 1));
	rn_quota_renew(&quota, &used->item);
	cr_expect_eq(rn_quota_in_the_way(&quota, &h, true, 1), &old->item);
}

Test(quota, costs)
{
	const struct rn_host h = host(2);

	cr_assert(enter(1, true, PLACES));
	cr_expect_null(enter(2, true, PLACES + 1));
	cr_expect_null(enter(2, true, SIZE_MAX));
	cr_expect_eq(of(1), PLACES, "what can never fit makes no room");
	cr_assert(enter(2, true, PLACES / 2));
	cr_expect_eq(of(1), 0);
	cr_expect_null(rn_quota_in_the_way(&quota, &h, true, PLACES / 2));
}

Test(quota, a_bound_for_each_host)
{
	struct thing *first;

	quota.of_host = 4;
	first = enter(1, true, 1);
	for (unsigned i = 0; i < 4; i++)
		cr_assert(enter(1, true, 1));
	cr_expect(first->ended);
	cr_expect_eq(of(1), 4);
}

/* The most that a host of that kind has. */
static size_t most_of(bool strangers)
{
	size_t most = 0;

	for (uint32_t h = 0; h < 23; h++) {
		if ((h % 3 == 0) == strangers)
			most = rn_max(most, of(h));
	}
	return most;
}

static size_t sum_of(bool strangers)
{
	size_t sum = 0;

	for (uint32_t h = 0; h < 23; h++)
		sum += (h % 3 == 0) == strangers ? of(h) : 0;
	return sum;
}

/* Hosts of that kind that have so much. */
static unsigned hosts_with(bool strangers, size_t n)
{
	unsigned hosts = 0;

	for (uint32_t h = 0; h < 23; h++)
		hosts += (h % 3 == 0) == strangers && of(h) == n;
	return hosts;
}

/* The heap against a plain search, over a drawn history. */
Test(quota, the_right_one_makes_room_whatever_has_happened)
{
	const struct rn_host newcomer = host(1000);
	struct rn_quota_item *way;
	unsigned seed = 7, full = 0;

	for (unsigned step = 0; step < 6000; step++) {
		const uint32_t from = (uint32_t)rand_r(&seed) % 23;
		struct thing *gone = &things[(unsigned)rand_r(&seed) % (nthings + 1)];

		enter(from, from % 3 != 0, 1);
		if (gone->item.of && step % 5 == 0)
			rn_quota_remove(&quota, &gone->item);
		way = rn_quota_in_the_way(&quota, &newcomer, true, 1);
		cr_assert_eq(way != NULL, quota.used == PLACES);
		if (!way)
			continue;
		const bool strangers = most_of(true) > 0;
		const size_t before = most_of(strangers), all = sum_of(strangers);
		const unsigned twins = hosts_with(strangers, before);

		full++;
		rn_quota_remove(&quota, way);
		cr_assert_eq(sum_of(strangers), all - 1, "one of that kind");
		cr_assert_eq(hosts_with(strangers, before), twins - 1, "of one with most");
	}
	cr_expect_gt(full, 1000);
}

Test(quota, one_line_in_a_minute)
{
	struct rn_quota_line line;
	uint64_t now = 5 * RN_NS_PER_SECOND;

	for (unsigned i = 0; i < PLACES; i++)
		cr_assert(enter(1, true, 1));
	cr_expect_not(rn_quota_line_due(&quota, now, &line), "nobody was in the way");
	for (unsigned i = 0; i < 10; i++)
		cr_assert(enter(2, true, 1));
	cr_assert(rn_quota_line_due(&quota, now, &line));
	cr_expect_eq(line.pushed_out, 10);
	cr_expect_eq(line.has, PLACES - 10);
	cr_expect_eq(memcmp(&line.most, &(struct rn_host){ .bytes = { [10] = 0xff, 0xff, 1 } },
			    sizeof(line.most)),
		     0);
	enter(3, true, 1);
	cr_expect_not(rn_quota_line_due(&quota, now + RN_NS_PER_SECOND, &line));
	now += RN_QUOTA_TELL_SECONDS * RN_NS_PER_SECOND;
	cr_expect(rn_quota_line_due(&quota, now, &line) && line.pushed_out == 1);
}
