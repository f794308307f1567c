/* SPDX-License-Identifier: BSD-2-Clause */
/* The load of an event thread, and the choice of a thread for a connection. */
#include <criterion/criterion.h>

#include "lib/clock.h"
#include "transport/event_loop.h"

#define MS RN_NS_PER_MS
#define START (1000 * MS)
#define LOOPS 3

Test(load, is_the_share_of_time_without_waits)
{
	struct ev_loop l = { 0 };

	ev_load_init(&l, START);
	ev_load_wait(&l, START + 100 * MS); /* has worked for 100 ms */
	ev_load_work(&l, START + 800 * MS);
	ev_load_work(&l, START + 900 * MS); /* says so again */
	ev_load_wait(&l, START + 950 * MS); /* 150 ms more */
	ev_load_measure(&l, START + 1000 * MS);
	cr_expect_eq(ev_load_measured(&l), 250);
	ev_load_measure(&l, START + 2000 * MS);
	cr_expect_eq(ev_load_measured(&l), 0);
}

Test(load, work_under_way_counts_where_it_is_done)
{
	struct ev_loop l = { 0 };

	ev_load_init(&l, START);
	ev_load_measure(&l, START + 1000 * MS);
	cr_expect_eq(ev_load_measured(&l), 1000);
	ev_load_wait(&l, START + 1200 * MS);
	ev_load_measure(&l, START + 2000 * MS);
	cr_expect_eq(ev_load_measured(&l), 200);
}

/* A wait that finds something ready is a system call like others. */
Test(load, waits_that_end_at_once_are_work)
{
	struct ev_loop l = { 0 };
	uint64_t now = START;

	ev_load_init(&l, now);
	while (now < START + 1000 * MS) {
		ev_load_wait(&l, now += EV_LOAD_SLEEP_NS);
		ev_load_work(&l, now += EV_LOAD_SLEEP_NS - 1);
	}
	ev_load_measure(&l, now);
	cr_expect_eq(ev_load_measured(&l), 1000);
	while (now < START + 2000 * MS) {
		ev_load_wait(&l, now += EV_LOAD_SLEEP_NS);
		ev_load_work(&l, now += EV_LOAD_SLEEP_NS);
	}
	ev_load_measure(&l, now);
	cr_expect(ev_load_measured(&l) >= 499 && ev_load_measured(&l) <= 501, "%u",
		  ev_load_measured(&l));
}

static struct ev_loop loads[LOOPS];

static struct ev_loop *const loops[LOOPS] = { &loads[0], &loads[1], &loads[2] };

static void set(unsigned i, unsigned load, unsigned conns)
{
	loads[i] = (struct ev_loop){ .measured = load, .conns = conns };
}

static void expect_places(const unsigned *want, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const unsigned got = ev_place(loops, LOOPS);

		cr_expect_eq(got, want[i], "connection %u: %u, not %u", i, got, want[i]);
	}
}

Test(placement, goes_round_when_all_are_idle)
{
	set(0, 300, 0);
	set(1, 0, 0);
	set(2, 499, 0);
	for (unsigned i = 0; i < 100; i++)
		expect_places((const unsigned[]){ 0, 1, 2 }, 3);
	cr_expect_eq(loads[0].conns, 100);
	ev_load_leave(&loads[2]);
	ev_load_leave(&loads[2]);
	expect_places((const unsigned[]){ 2, 2, 0, 1, 2 }, 5);
}

Test(placement, prefers_idle_loops)
{
	set(0, 900, 0);
	set(1, 100, 7);
	set(2, 600, 0);
	expect_places((const unsigned[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 10);
	set(1, 200, 3);
	set(2, 0, 5);
	expect_places((const unsigned[]){ 1, 1, 1, 2, 1, 2 }, 6);
}

/* The first of them makes its loop no less busy before the next measurement. */
Test(placement, spreads_over_busy_loops)
{
	set(0, 800, 0);
	set(1, 700, 100);
	set(2, 1000, 0);
	expect_places((const unsigned[]){ 1, 1, 0, 1, 0, 1, 0, 1, 0, 2 }, 10);
	ev_load_measure(&loads[1], MS);
	cr_expect_eq(ev_load_expected(&loads[1]), ev_load_measured(&loads[1]));
}

Test(placement, the_least_loaded)
{
	set(0, 800, 0);
	set(1, 700, 0);
	set(2, 710, 0);
	cr_expect_eq(ev_place_least(loops, LOOPS), 1);
	ev_load_expect(&loads[1], 20);
	cr_expect_eq(ev_place_least(loops, LOOPS), 2);
}
