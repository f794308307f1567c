/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/payload.h"

static struct rn_budget budget;
static struct rn_payload_pool *pool;

static void make_pool(unsigned slabs)
{
	rn_budget_init(&budget, (size_t)slabs * RN_SLAB_SIZE);
	pool = rn_payload_pool_new(&budget);
	cr_assert_not_null(pool);
}

static uint64_t in_use(void)
{
	struct rn_payload_stats s;

	rn_payload_stats(pool, &s);
	return s.buffers_in_use;
}

struct waiter {
	struct rn_payload_waiter w;
	struct rn_payload *got;
	unsigned calls;
};

static void ready(struct rn_payload_waiter *w, struct rn_payload *p)
{
	struct waiter *me = (struct waiter *)w;

	me->got = p;
	me->calls++;
}

static struct waiter waiter(void)
{
	return (struct waiter){ .w.ready = ready };
}

Test(payload, a_size_gets_the_smallest_class_that_holds_it)
{
	static const struct {
		size_t ask;
		uint32_t get;
	} t[] = { { 0, 4096 },		 { 1, 4096 },	       { 4096, 4096 },
		  { 4097, 8192 },	 { 16384, 16384 },     { 16385, 65536 },
		  { 65537, 262144 },	 { 262145, 1u << 20 }, { 1048577, 2u << 20 },
		  { 2u << 20, 2u << 20 } };

	make_pool(16);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct rn_payload *p = rn_payload_get(pool, t[i].ask);

		cr_assert_not_null(p);
		cr_assert_eq(p->size, t[i].get);
		cr_assert_eq((uintptr_t)p->data % 4096, 0);
		cr_assert_eq(p->data, (uint8_t *)rn_payload_slab_base(pool, p->slab) + p->offset);
		memset(p->data, 1, p->size);
		rn_payload_put(p);
	}
	cr_assert_null(rn_payload_get(pool, RN_PAYLOAD_MAX + 1u));
	cr_assert_null(rn_payload_slab_base(pool, rn_payload_slab_count(pool)));
	cr_assert_eq((uintptr_t)rn_payload_slab_base(pool, 0) % RN_SLAB_SIZE, 0);
	rn_payload_pool_free(pool);
	cr_assert_eq(budget.used, 0);
}

Test(payload, buffers_of_a_slab_do_not_overlap_and_end_with_it)
{
	struct rn_payload *p[8];

	make_pool(1);
	for (int i = 0; i < 8; i++) {
		p[i] = rn_payload_get(pool, 262144);
		cr_assert_not_null(p[i]);
		memset(p[i]->data, i, p[i]->size);
	}
	cr_assert_null(rn_payload_get(pool, 1), "the budget is used up");
	for (int i = 0; i < 8; i++) {
		cr_assert_eq(p[i]->data[0], i);
		cr_assert_eq(p[i]->data[262143], i);
		rn_payload_put(p[i]);
	}
	rn_payload_pool_free(pool);
}

Test(payload, a_wholly_free_slab_serves_another_class_a_partly_used_one_does_not)
{
	make_pool(1);
	struct rn_payload *a = rn_payload_get(pool, 4096), *b = rn_payload_get(pool, 4096);
	rn_payload_put(b);
	cr_assert_null(rn_payload_get(pool, 1u << 20));
	rn_payload_put(a);
	struct rn_payload *big = rn_payload_get(pool, 1u << 20);
	cr_assert_not_null(big);
	cr_assert_eq(rn_payload_slab_count(pool), 1);
	rn_payload_put(big);
	cr_assert_not_null(a = rn_payload_get(pool, 2u << 20));
	rn_payload_put(a);
	cr_assert_not_null(a = rn_payload_get(pool, 8192));
	rn_payload_put(a);
	rn_payload_pool_free(pool);
}

Test(payload, a_larger_buffer_serves_when_no_slab_does)
{
	struct rn_payload_account a;

	make_pool(1);
	rn_payload_account_init(&a);
	struct rn_payload *first = rn_payload_get(pool, 1u << 20);
	cr_assert_not_null(first);
	cr_assert_null(rn_payload_get_for(pool, 4096 + (1u << 20), &a), "a smaller one served");
	struct rn_payload *small = rn_payload_get_for(pool, 4096, &a);
	cr_assert_not_null(small);
	cr_expect_eq(small->size, 1u << 20);
	cr_expect_eq(a.bytes, 1u << 20);
	memset(small->data, 1, small->size);
	rn_payload_put(first);
	rn_payload_put(small);
	cr_expect_eq(a.bytes, 0);
	rn_payload_pool_free(pool);
}

/* A larger buffer counts with its whole size. */
Test(payload, a_share_bounds_larger_buffers_too)
{
	struct rn_payload_account a;

	make_pool(2);
	rn_payload_account_init(&a);
	struct rn_payload *big = rn_payload_get(pool, 1u << 20);
	struct rn_payload *held = rn_payload_get_for(pool, 2u << 20, &a);
	cr_assert_not_null(big);
	cr_assert_not_null(held);
	cr_assert_null(rn_payload_get_for(pool, 4096, &a), "a share was exceeded");
	struct rn_payload *other = rn_payload_get(pool, 4096);
	cr_assert_not_null(other);
	cr_expect_eq(other->size, 1u << 20);
	rn_payload_put(other);
	rn_payload_put(held);
	rn_payload_put(big);
	rn_payload_pool_free(pool);
}

Test(payload, the_last_reference_returns_it)
{
	make_pool(1);
	struct rn_payload *p = rn_payload_get(pool, 2u << 20);
	rn_payload_ref(p);
	rn_payload_put(p);
	cr_assert_eq(in_use(), 1);
	cr_assert_null(rn_payload_get(pool, 1));
	rn_payload_put(p);
	cr_assert_eq(in_use(), 0);
	rn_payload_put(NULL);
	rn_payload_pool_free(pool);
}

Test(payload, waiters_are_served_in_order_and_nobody_passes_them)
{
	struct waiter big = waiter(), small = waiter(), last = waiter();

	make_pool(1);
	struct rn_payload *a = rn_payload_get(pool, 1u << 20), *b = rn_payload_get(pool, 1u << 20);
	cr_assert_null(rn_payload_get_or_wait(pool, 2u << 20, &big.w));
	cr_assert_null(rn_payload_get_or_wait(pool, 4096, &small.w));
	rn_payload_put(a);
	cr_assert_eq(big.calls + small.calls, 0, "the first needs a whole slab");
	cr_assert_null(rn_payload_get(pool, 1u << 20), "others wait");
	rn_payload_put(b);
	cr_assert_eq(big.calls, 1);
	cr_assert_eq(big.got->size, 2u << 20);
	cr_assert_eq(small.calls, 0);
	cr_assert_null(rn_payload_get_or_wait(pool, 4096, &last.w));
	rn_payload_put(big.got);
	cr_assert_eq(small.calls, 1);
	cr_assert_eq(last.calls, 1);
	memset(last.got->data, 1, 4096);
	rn_payload_put(small.got);
	rn_payload_put(last.got);
	rn_payload_pool_free(pool);
}

Test(payload, a_cancelled_waiter_is_gone_and_those_behind_it_go_on)
{
	struct waiter big = waiter(), small = waiter();

	make_pool(1);
	struct rn_payload *a = rn_payload_get(pool, 4096), *b = rn_payload_get(pool, 4096);
	cr_assert_null(rn_payload_get_or_wait(pool, 2u << 20, &big.w));
	cr_assert_null(rn_payload_get_or_wait(pool, 4096, &small.w));
	rn_payload_put(a);
	cr_assert_eq(small.calls, 0);
	cr_assert_eq(rn_payload_wait_cancel(pool, &big.w), 0);
	cr_assert_eq(small.calls, 1);
	cr_assert_eq(rn_payload_wait_cancel(pool, &big.w), -ENOENT);
	cr_assert_eq(rn_payload_wait_cancel(pool, &small.w), -ENOENT);
	rn_payload_put(small.got);
	rn_payload_put(b);
	rn_payload_pool_free(pool);
}

Test(payload, an_account_may_hold_as_much_as_is_left)
{
	struct rn_payload_account hog, other;
	struct rn_payload *p[16];
	unsigned n = 0;

	make_pool(8);
	rn_payload_account_init(&hog);
	rn_payload_account_init(&other);
	while (n < 16 && (p[n] = rn_payload_get_for(pool, 1u << 20, &hog)))
		n++;
	cr_assert_eq(n, 8, "half of sixteen, not %u", n);
	cr_assert_eq(hog.bytes, 8u << 20);
	cr_assert_not(rn_payload_short(pool));
	for (unsigned i = 0; i < 4; i++)
		cr_assert_not_null(p[n++] = rn_payload_get_for(pool, 1u << 20, &other));
	cr_assert_null(rn_payload_get_for(pool, 1u << 20, &other));
	cr_assert_not_null(p[n++] = rn_payload_get(pool, 1u << 20), "nobody's has no share");
	while (n > 0)
		rn_payload_put(p[--n]);
	cr_assert_eq(hog.bytes + other.bytes, 0);
	rn_payload_pool_free(pool);
}

Test(payload, an_account_that_holds_nothing_may_always_have_one)
{
	struct rn_payload_account hog, other;

	make_pool(2);
	rn_payload_account_init(&hog);
	rn_payload_account_init(&other);
	struct rn_payload *a = rn_payload_get_for(pool, 2u << 20, &hog);
	cr_assert_null(rn_payload_get_for(pool, 2u << 20, &hog));
	struct rn_payload *b = rn_payload_get_for(pool, 2u << 20, &other);
	cr_assert_not_null(b);
	rn_payload_put(a);
	rn_payload_put(b);
	rn_payload_pool_free(pool);
}

Test(payload, who_waits_for_a_share_does_not_hold_up_others)
{
	struct rn_payload_account hog, other;
	struct waiter first = waiter(), second = waiter();
	struct rn_payload *p[4];

	make_pool(4);
	rn_payload_account_init(&hog);
	rn_payload_account_init(&other);
	p[0] = rn_payload_get_for(pool, 2u << 20, &hog);
	p[1] = rn_payload_get_for(pool, 2u << 20, &hog);
	first.w.account = second.w.account = &hog;
	cr_assert_null(rn_payload_get_or_wait(pool, 1u << 20, &first.w));
	cr_assert_null(rn_payload_get_or_wait(pool, 1u << 20, &second.w));
	cr_assert_eq(hog.waiting, 2);
	cr_assert_not(rn_payload_short(pool));
	p[2] = rn_payload_get_for(pool, 1u << 20, &other);
	cr_assert_not_null(p[2]);
	cr_assert_null(rn_payload_get_for(pool, 4096, &hog), "it would pass its own");
	rn_payload_put(p[2]);
	cr_assert_eq(first.calls, 0, "the share is still used up");
	rn_payload_put(p[0]);
	cr_assert_eq(first.calls, 1);
	cr_assert_eq(second.calls, 1);
	cr_assert_eq(hog.waiting, 0);
	rn_payload_put(p[1]);
	rn_payload_put(first.got);
	rn_payload_put(second.got);
	rn_payload_pool_free(pool);
}

Test(payload, accounts_that_wait_take_turns)
{
	struct rn_payload_account many, one;
	struct waiter m[4], o = waiter();

	make_pool(1);
	rn_payload_account_init(&many);
	rn_payload_account_init(&one);
	struct rn_payload *p = rn_payload_get(pool, 2u << 20);
	for (unsigned i = 0; i < 4; i++) {
		m[i] = waiter();
		m[i].w.account = &many;
		cr_assert_null(rn_payload_get_or_wait(pool, 2u << 20, &m[i].w));
	}
	o.w.account = &one;
	cr_assert_null(rn_payload_get_or_wait(pool, 2u << 20, &o.w));
	cr_assert(rn_payload_short(pool));
	rn_payload_put(p);
	cr_assert_eq(m[0].calls, 1);
	rn_payload_put(m[0].got);
	rn_payload_put(m[1].calls ? m[1].got : o.got);
	cr_assert_eq(o.calls, 1, "it waits for one turn of the other");
	for (unsigned i = 1; i < 4; i++)
		cr_assert_eq(rn_payload_wait_cancel(pool, &m[i].w), m[i].calls ? -ENOENT : 0);
	cr_assert_eq(many.waiting + one.waiting, 0);
	rn_payload_put(m[1].calls ? o.got : NULL);
	rn_payload_pool_free(pool);
}

struct blocking {
	struct rn_payload_waiter w;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct rn_payload *got;
};

static void wake(struct rn_payload_waiter *w, struct rn_payload *p)
{
	struct blocking *b = (struct blocking *)w;

	pthread_mutex_lock(&b->lock);
	b->got = p;
	pthread_cond_signal(&b->cond);
	pthread_mutex_unlock(&b->lock);
}

static void *churn(void *arg)
{
	struct blocking b = { .w.ready = wake };
	unsigned seed = (unsigned)(uintptr_t)arg;

	pthread_mutex_init(&b.lock, NULL);
	pthread_cond_init(&b.cond, NULL);
	for (int i = 0; i < 3000; i++) {
		const size_t size = 1 + (size_t)rand_r(&seed) % RN_PAYLOAD_MAX;

		b.got = NULL;
		struct rn_payload *p = rn_payload_get_or_wait(pool, size, &b.w);
		pthread_mutex_lock(&b.lock);
		while (p == NULL && b.got == NULL)
			pthread_cond_wait(&b.cond, &b.lock);
		pthread_mutex_unlock(&b.lock);
		p = p != NULL ? p : b.got;
		p->data[0] = 1;
		p->data[size - 1] = 1;
		rn_payload_put(p);
	}
	return NULL;
}

Test(payload, threads_that_wait_all_come_through, .timeout = 60)
{
	pthread_t t[6];

	make_pool(3);
	for (uintptr_t i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, churn, (void *)(i + 1));
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	cr_assert_eq(in_use(), 0);
	cr_assert_leq(rn_payload_slab_count(pool), 3);
	rn_payload_pool_free(pool);
	cr_assert_eq(budget.used, 0);
}

/* Uses the budget up in pieces that are kept; returns their number. */
static unsigned keep_all(struct rn_payload *kept[4096])
{
	unsigned n = 0;

	while (n < 4096 && (kept[n] = rn_payload_get_to_keep(pool, 8192)))
		n++;
	return n;
}

Test(payload, kept_buffers_leave_a_slab_for_short_and_one_for_long_ones)
{
	static struct rn_payload *kept[4096];
	struct rn_payload *shorts[32], *longs[2];

	make_pool(5);
	cr_assert_eq(rn_payload_set_aside(pool), 0);
	cr_assert_eq(budget.used, RN_PAYLOAD_ASIDE);
	const unsigned n = keep_all(kept);
	cr_assert_eq(n, 3 * RN_SLAB_SIZE / 8192);
	/* Short requests use up their own slab only, and long ones theirs. */
	for (int i = 0; i < 32; i++)
		cr_assert_not_null(shorts[i] = rn_payload_get(pool, i % 2 ? 100 : 65536));
	cr_assert_null(rn_payload_get(pool, 100));
	for (int i = 0; i < 2; i++)
		cr_assert_not_null(longs[i] = rn_payload_get(pool, i ? 65537 : 1u << 20));
	cr_assert_null(rn_payload_get(pool, 1u << 20));
	for (int i = 0; i < 2; i++)
		rn_payload_put(longs[i]);
	cr_assert_not_null(longs[0] = rn_payload_get(pool, RN_PAYLOAD_MAX));
	rn_payload_put(longs[0]);
	for (int i = 0; i < 32; i++)
		rn_payload_put(shorts[i]);
	cr_assert_null(rn_payload_get_to_keep(pool, 8192));
	for (unsigned i = 0; i < n; i++)
		rn_payload_put(kept[i]);
	rn_payload_pool_free(pool);
	cr_assert_eq(budget.used, 0);
}

Test(payload, what_is_kept_takes_no_larger_buffer)
{
	struct rn_payload *one, *small;

	make_pool(1);
	cr_assert_not_null(one = rn_payload_get(pool, 1u << 20));
	cr_assert_null(rn_payload_get_to_keep(pool, 8192));
	cr_assert_not_null(small = rn_payload_get(pool, 8192), "as others may");
	cr_assert_eq(small->size, 1u << 20);
	rn_payload_put(small);
	rn_payload_put(one);
	cr_assert_not_null(one = rn_payload_get_to_keep(pool, 8192));
	cr_assert_eq(one->size, 8192);
	rn_payload_put(one);
	rn_payload_pool_free(pool);
}

Test(payload, who_waits_for_a_long_buffer_gets_that_of_the_slab_set_aside)
{
	static struct rn_payload *kept[4096];
	struct waiter w = waiter();

	make_pool(3);
	cr_assert_eq(rn_payload_set_aside(pool), 0);
	const unsigned n = keep_all(kept);
	struct rn_payload *a = rn_payload_get(pool, 1u << 20), *b = rn_payload_get(pool, 1u << 20);
	cr_assert(a && b);
	cr_assert_null(rn_payload_get_or_wait(pool, RN_PAYLOAD_MAX, &w.w));
	rn_payload_put(a);
	cr_assert_eq(w.calls, 0);
	rn_payload_put(b);
	cr_assert_eq(w.calls, 1);
	cr_assert_eq(w.got->size, RN_PAYLOAD_MAX);
	rn_payload_put(w.got);
	for (unsigned i = 0; i < n; i++)
		rn_payload_put(kept[i]);
	rn_payload_pool_free(pool);
}

Test(payload, a_budget_without_room_for_the_slabs_set_aside_is_told)
{
	make_pool(1);
	cr_assert_eq(rn_payload_set_aside(pool), -ENOMEM);
	rn_payload_pool_free(pool);
	cr_assert_eq(budget.used, 0);
}
