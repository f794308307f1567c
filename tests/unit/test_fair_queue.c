/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fair_queue.h"

#define Q 10u

struct thing {
	struct rn_fq_item it;
	char name;
};

static struct rn_fq q;
static struct rn_fq_flow flow[26]; /* flows a..z */
static struct thing pile[4096];
static unsigned npile;

static void start(void)
{
	npile = 0;
	rn_fq_init(&q, Q);
	for (unsigned i = 0; i < 26; i++)
		rn_fq_flow_init(&flow[i]);
}

TestSuite(fair_queue, .init = start);

static struct thing *push(char name, uint32_t cost)
{
	struct thing *t = &pile[npile++];

	t->name = name;
	rn_fq_push(&q, &flow[name - 'a'], &t->it, cost);
	return t;
}

static char name_of(const struct rn_fq_item *it)
{
	return it ? ((const struct thing *)it)->name : '.';
}

/* Names of the items in the order in which they leave the queue, with a dot at the end. */
static const char *drain(void)
{
	static char out[sizeof(pile) / sizeof(pile[0]) + 1];
	unsigned n = 0;

	do
		out[n] = name_of(rn_fq_pop(&q));
	while (out[n++] != '.');
	out[n] = 0;
	return out;
}

Test(fair_queue, one_flow_is_first_in_first_out)
{
	struct thing *t[5];

	for (unsigned i = 0; i < 5; i++)
		t[i] = push('a', 1000 * i);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(rn_fq_pop(&q), &t[i]->it);
	cr_assert_null(rn_fq_pop(&q));
	cr_assert_eq(q.nflows, 0);
	cr_assert_eq(q.nitems, 0);
}

Test(fair_queue, flows_take_turns_however_much_each_has)
{
	for (unsigned i = 0; i < 6; i++)
		push('a', Q);
	push('b', Q);
	push('b', Q);
	push('c', Q);
	cr_assert_str_eq(drain(), "abcabaaaa.");
}

Test(fair_queue, one_call_of_another_waits_for_one_turn_of_a_flood)
{
	for (unsigned i = 0; i < 1000; i++)
		push('a', Q);
	for (unsigned i = 0; i < 50; i++) {
		rn_fq_pop(&q);
		push('b', Q);
		char first = name_of(rn_fq_pop(&q)), second = name_of(rn_fq_pop(&q));
		cr_assert((first == 'a') + (second == 'a') <= 1, "b waits behind %c%c", first,
			  second);
	}
}

Test(fair_queue, shares_are_by_cost_not_by_number)
{
	unsigned served[2] = { 0 };

	for (unsigned i = 0; i < 40; i++)
		push('a', 3 * Q);
	for (unsigned i = 0; i < 400; i++)
		push('b', Q);
	for (unsigned i = 0; i < 100; i++)
		served[name_of(rn_fq_pop(&q)) - 'a']++;
	cr_assert_geq(served[0], 24);
	cr_assert_leq(served[0], 26);
	cr_assert_eq(served[1], 100 - served[0]);
}

Test(fair_queue, small_ones_share_a_turn)
{
	for (unsigned i = 0; i < 4; i++) {
		push('a', Q);
		push('b', Q / 2);
	}
	cr_assert_str_eq(drain(), "abbabbaa.");
}

Test(fair_queue, what_turns_out_dear_is_paid_later)
{
	for (unsigned i = 0; i < 8; i++) {
		push('a', Q);
		push('b', Q);
	}
	cr_assert_eq(name_of(rn_fq_pop(&q)), 'a');
	rn_fq_charge(&q, &flow[0], 3 * Q);
	cr_assert_str_eq(drain(), "bbbbababababaaa.");
}

Test(fair_queue, alone_nobody_runs_up_debt)
{
	for (unsigned i = 0; i < 100; i++)
		push('a', 100 * Q);
	for (unsigned i = 0; i < 50; i++) {
		rn_fq_pop(&q);
		rn_fq_charge(&q, &flow[0], UINT64_MAX);
	}
	push('b', Q);
	push('b', Q);
	push('b', Q);
	/* A flow is skipped for at most the excess cost of one item. */
	const char *out = drain();
	cr_assert(out[0] == 'a' || out[1] == 'a' || out[2] == 'a' || out[3] == 'a', "%.5s", out);
}

Test(fair_queue, debt_is_bounded)
{
	push('a', Q);
	push('a', Q);
	push('a', Q);
	for (unsigned i = 0; i < 1000; i++)
		push('b', Q);
	cr_assert_eq(name_of(rn_fq_pop(&q)), 'a');
	rn_fq_charge(&q, &flow[0], UINT64_MAX);
	rn_fq_charge(&q, &flow[0], INT64_MAX);
	unsigned n = 0;
	while (name_of(rn_fq_pop(&q)) == 'b')
		n++;
	cr_assert_geq(n, RN_FQ_DEBT_QUANTA);
	cr_assert_leq(n, RN_FQ_DEBT_QUANTA + 2);
}

Test(fair_queue, debt_is_forgotten_with_the_queue)
{
	push('a', Q);
	push('b', Q);
	push('b', Q);
	rn_fq_pop(&q);
	rn_fq_charge(&q, &flow[0], 50 * Q);
	drain();
	push('a', Q);
	push('a', Q);
	push('b', Q);
	push('b', Q);
	cr_assert_str_eq(drain(), "abab.");
}

Test(fair_queue, a_flow_that_comes_and_goes_keeps_its_debt_while_others_wait)
{
	for (unsigned i = 0; i < 20; i++)
		push('b', Q);
	push('a', 5 * Q);
	cr_assert_eq(name_of(rn_fq_pop(&q)), 'b');
	cr_assert_eq(name_of(rn_fq_pop(&q)), 'a');
	push('a', Q);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(name_of(rn_fq_pop(&q)), 'b', "turn %u", i);
}

Test(fair_queue, removing_keeps_the_rest_in_order)
{
	struct thing *t[6];

	for (unsigned i = 0; i < 6; i++)
		t[i] = push(i % 2 ? 'b' : 'a', Q);
	rn_fq_remove(&q, &t[0]->it);
	rn_fq_remove(&q, &t[1]->it);
	rn_fq_remove(&q, &t[3]->it);
	rn_fq_remove(&q, &t[5]->it);
	cr_assert_null(t[5]->it.flow);
	cr_assert_eq(q.nflows, 1);
	cr_assert_eq(rn_fq_pop(&q), &t[2]->it);
	cr_assert_eq(rn_fq_pop(&q), &t[4]->it);
	cr_assert_null(rn_fq_pop(&q));
}

static bool may(void *ctx, const struct rn_fq_item *it)
{
	return strchr(ctx, name_of(it)) != NULL;
}

static struct rn_fq_item *pop_of(unsigned tries, const char *names)
{
	return rn_fq_pop_if(&q, tries, may, (void *)(uintptr_t)names);
}

Test(fair_queue, who_may_not_loses_nothing_but_the_turn)
{
	for (unsigned i = 0; i < 3; i++) {
		push('a', Q);
		push('b', Q);
		push('c', Q);
	}
	cr_assert_eq(name_of(pop_of(UINT_MAX, "c")), 'c');
	cr_assert_null(pop_of(UINT_MAX, ""));
	cr_assert_eq(q.nitems, 8);
	cr_assert_eq(name_of(pop_of(UINT_MAX, "c")), 'c');
	cr_assert_eq(name_of(pop_of(UINT_MAX, "ab")), 'a');
	cr_assert_eq(name_of(pop_of(UINT_MAX, "ab")), 'b');
}

Test(fair_queue, one_that_may_is_found_though_it_is_in_debt)
{
	for (unsigned i = 0; i < 3; i++) {
		push('a', Q);
		push('b', Q);
		push('c', Q);
	}
	rn_fq_pop(&q);
	rn_fq_pop(&q);
	rn_fq_charge(&q, &flow[1], 20 * Q);
	cr_assert_eq(name_of(pop_of(UINT_MAX, "b")), 'b');
}

Test(fair_queue, a_bounded_search_goes_on_where_it_stopped)
{
	for (char c = 'a'; c <= 'z'; c++)
		push(c, Q);
	unsigned searches = 0;
	struct rn_fq_item *it;
	while (!(it = pop_of(5, "z")))
		cr_assert_lt(++searches, 10);
	cr_assert_eq(name_of(it), 'z');
	cr_assert_eq(searches, 5);
}

/* Against a model: every item leaves once, in its flow's order. No flow with items waits while
 * another gets more than a round's share more. */
Test(fair_queue, random_use_loses_nothing)
{
	unsigned in[26] = { 0 }, out[26] = { 0 }, seed = 7;
	struct thing *t;

	for (unsigned i = 0; i < 4000; i++) {
		if (rand_r(&seed) % 3) {
			unsigned f = (unsigned)rand_r(&seed) % 26;
			t = push((char)('a' + f), (uint32_t)rand_r(&seed) % (5 * Q));
			in[f]++;
		} else if ((t = (struct thing *)rn_fq_pop(&q))) {
			out[t->name - 'a']++;
			rn_fq_charge(&q, &flow[t->name - 'a'], (uint32_t)rand_r(&seed) % (9 * Q));
		}
	}
	for (const char *p = drain(); *p != '.'; p++)
		out[*p - 'a']++;
	for (unsigned f = 0; f < 26; f++)
		cr_assert_eq(in[f], out[f]);
	cr_assert_eq(q.nflows, 0);
}
