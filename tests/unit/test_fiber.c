/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/budget.h"
#include "lib/clock.h"
#include "lib/fiber.h"
#include "lib/util.h"

struct steps {
	int at;
	struct rn_fiber *f;
	void *on[3]; /* the worker at each step */
};

static void nothing(void *arg)
{
	(void)arg;
}

static void take_steps(struct rn_fiber *f, void *arg)
{
	struct steps *s = arg;

	s->f = f;
	for (s->at = 0; s->at < 3; s->at++) {
		s->on[s->at] = f->worker;
		if (s->at < 2)
			rn_fiber_wait(f, RN_WAIT_RING, nothing, NULL);
	}
}

Test(fiber, goes_on_where_it_waited)
{
	struct rn_budget budget;
	struct steps s = { .at = -1 };
	int a, b;

	rn_budget_init(&budget, 1 << 20);
	struct rn_stacks *stacks = rn_stacks_new(&budget, 0);
	struct rn_fiber *f = rn_fiber_get(stacks);

	cr_assert_not_null(f);
	cr_assert_gt(atomic_load(&budget.used), 0, "a stack is taken out of the budget");
	f->worker = &a;
	cr_assert_not(rn_fiber_begin(f, take_steps, &s));
	cr_assert_eq(s.at, 0);
	f->worker = &b;
	rn_fiber_resume(f);
	cr_assert_eq(s.at, 1);
	cr_assert_eq(rn_stacks_used(stacks), 1);
	rn_fiber_resume(f);
	cr_assert_eq(s.at, 3);
	cr_assert_eq(s.on[0], &a);
	cr_assert_eq(s.on[1], &b);
	cr_assert_eq(rn_stacks_used(stacks), 0, "it has put itself");
	rn_stacks_free(stacks);
	cr_assert_eq(atomic_load(&budget.used), 0);
}

static void end_at_once(struct rn_fiber *f, void *arg)
{
	(void)f;
	(*(int *)arg)++;
}

Test(fiber, begins_again)
{
	struct rn_budget budget;
	int n = 0;

	rn_budget_init(&budget, 1 << 20);
	struct rn_stacks *stacks = rn_stacks_new(&budget, 1);
	struct rn_fiber *f = rn_fiber_get(stacks);

	for (int i = 0; i < 1000; i++)
		cr_assert(rn_fiber_begin(f, end_at_once, &n));
	cr_assert_eq(n, 1000);
	rn_fiber_put(f);
	rn_stacks_free(stacks);
}

Test(fiber, the_least_are_there_without_memory)
{
	struct rn_budget budget;
	struct rn_fiber *f[3];

	rn_budget_init(&budget, 1);
	struct rn_stacks *stacks = rn_stacks_new(&budget, 2);

	f[0] = rn_fiber_get(stacks);
	f[1] = rn_fiber_get(stacks);
	cr_assert_not_null(f[0]);
	cr_assert_not_null(f[1]);
	f[2] = rn_fiber_get(stacks);
	cr_assert_null(f[2]);
	rn_fiber_put(f[0]);
	f[2] = rn_fiber_get(stacks);
	cr_assert_not_null(f[2]);
	rn_fiber_put(f[1]);
	rn_fiber_put(f[2]);
	rn_stacks_free(stacks);
}

/* Calls that wait: what they take, and how long it takes to end them. */
#define MANY 10000

static uint64_t resident(void)
{
	unsigned long long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%llu %llu", &size, &pages), 2);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void wait_once(struct rn_fiber *f, void *arg)
{
	unsigned char used[4096]; /* of a stack, as a call does */

	memset(used, 1, sizeof(used));
	__asm__ volatile("" : : "r"(used) : "memory");
	rn_fiber_wait(f, RN_WAIT_MEMORY, nothing, NULL);
	(*(int *)arg)++;
}

Test(fiber, many_wait)
{
	static struct rn_fiber *f[MANY];
	struct rn_budget budget;
	int ended = 0;

	rn_budget_init(&budget, (uint64_t)1 << 30);
	struct rn_stacks *stacks = rn_stacks_new(&budget, 0);
	const uint64_t before = resident(), began_ns = rn_now_ns();

	for (int i = 0; i < MANY; i++) {
		f[i] = rn_fiber_get(stacks);
		cr_assert_not_null(f[i]);
		cr_assert_not(rn_fiber_begin(f[i], wait_once, &ended));
	}
	const uint64_t waiting_ns = rn_now_ns(), memory = resident() - before;
	const uint64_t counted = atomic_load(&budget.used);

	for (int i = 0; i < MANY; i++)
		rn_fiber_resume(f[i]);
	cr_assert_eq(ended, MANY);
	fprintf(stderr,
		"# %u fibers wait after %.1f ms, in %.1f KiB each of which %.1f are counted, and "
		"have ended after %.1f ms\n",
		MANY, (double)(waiting_ns - began_ns) / 1e6, (double)memory / MANY / 1024,
		(double)counted / MANY / 1024, (double)(rn_now_ns() - waiting_ns) / 1e6);
	rn_stacks_free(stacks);
	cr_assert_eq(atomic_load(&budget.used), 0);
}

/* Fibers that two threads hand to each other. */
#define HOPS 2000
#define FIBERS 20

struct hopper {
	_Atomic(struct rn_fiber *) at[2][FIBERS]; /* those that wait for thread 0, and 1 */
	_Atomic int left;
	_Atomic int wrong;
};

struct traveller {
	struct hopper *h;
	unsigned i;
	int to;
	struct rn_fiber *f;
};

static void hand_over(void *arg)
{
	const struct traveller *t = arg;

	atomic_store(&t->h->at[t->to][t->i], t->f);
}

static void hop(struct rn_fiber *f, void *arg)
{
	struct traveller t = *(struct traveller *)arg;
	char mark[4096];

	t.f = f;
	for (unsigned i = 0; i < HOPS; i++) {
		memset(mark, (int)(t.i + i), sizeof(mark));
		t.to = !t.to;
		rn_fiber_wait(f, RN_WAIT_RING, hand_over, &t);
		for (size_t k = 0; k < sizeof(mark); k += 97)
			if (mark[k] != (char)(t.i + i))
				atomic_fetch_add(&t.h->wrong, 1);
	}
	atomic_fetch_sub(&t.h->left, 1);
}

struct thread {
	struct hopper *h;
	int me;
};

static void *run_hoppers(void *arg)
{
	const struct thread *t = arg;

	while (atomic_load(&t->h->left) > 0) {
		for (unsigned i = 0; i < FIBERS; i++) {
			struct rn_fiber *f = atomic_exchange(&t->h->at[t->me][i], NULL);

			if (f)
				rn_fiber_resume(f);
		}
		sched_yield();
	}
	return NULL;
}

Test(fiber, goes_on_on_another_thread)
{
	struct hopper h = { .left = FIBERS };
	struct thread t[2] = { { &h, 0 }, { &h, 1 } };
	struct traveller start[FIBERS];
	struct rn_budget budget;
	pthread_t other;

	rn_budget_init(&budget, 8 << 20);
	struct rn_stacks *stacks = rn_stacks_new(&budget, FIBERS);

	for (unsigned i = 0; i < FIBERS; i++) {
		start[i] = (struct traveller){ .h = &h, .i = i };
		rn_fiber_begin(rn_fiber_get(stacks), hop, &start[i]);
	}
	cr_assert_eq(pthread_create(&other, NULL, run_hoppers, &t[1]), 0);
	run_hoppers(&t[0]);
	pthread_join(other, NULL);
	cr_assert_eq(h.wrong, 0);
	cr_assert_eq(rn_stacks_used(stacks), 0);
	rn_stacks_free(stacks);
}

/* A thread that must not block hands its fiber to one that may. */
static struct rn_fiber *moved;

static void move(struct rn_fiber *f)
{
	f->move = NULL;
	moved = f;
}

static void move_twice(struct rn_fiber *f, void *arg)
{
	rn_fiber_move(f);
	rn_fiber_move(f);
	*(void **)arg = f->worker;
}

Test(fiber, moves_once)
{
	struct rn_budget budget;
	void *on = NULL;
	int pool;

	rn_budget_init(&budget, 1 << 20);
	struct rn_stacks *stacks = rn_stacks_new(&budget, 0);
	struct rn_fiber *f = rn_fiber_get(stacks);

	f->move = move;
	cr_assert_not(rn_fiber_begin(f, move_twice, &on));
	cr_assert_eq(moved, f);
	f->worker = &pool;
	rn_fiber_resume(f);
	cr_assert_eq(on, &pool);
	rn_stacks_free(stacks);
}

/* A lock that is held over waits, by fibers that go on on any of two threads, and by the threads themselves. */
struct locked {
	struct rn_lock lock;
	struct hopper *h;
	unsigned inside, most, turns;
};

struct taker {
	struct locked *l;
	struct traveller t;
};

static void wake_anywhere(struct rn_fiber *f)
{
	struct traveller *t = f->owner;

	t->to = !t->to;
	hand_over(t);
}

static void enter_and_leave(struct locked *l, struct traveller *t)
{
	rn_lock_take(&l->lock);
	l->inside++;
	l->most = rn_max(l->most, l->inside);
	if (t) {
		t->to = !t->to;
		rn_fiber_wait(t->f, RN_WAIT_RING, hand_over, t);
	}
	l->turns++;
	l->inside--;
	rn_lock_give(&l->lock);
}

static void take_often(struct rn_fiber *f, void *arg)
{
	struct taker k = *(struct taker *)arg;

	k.t.f = f;
	f->owner = &k.t;
	f->wake = wake_anywhere;
	for (unsigned i = 0; i < HOPS / 10; i++)
		enter_and_leave(k.l, &k.t);
	atomic_fetch_sub(&k.l->h->left, 1);
}

static void *take_as_a_thread(void *arg)
{
	for (unsigned i = 0; i < HOPS; i++)
		enter_and_leave(arg, NULL);
	return NULL;
}

Test(fiber, a_lock_over_waits)
{
	struct hopper h = { .left = FIBERS };
	struct locked l = { .h = &h };
	struct thread t[2] = { { &h, 0 }, { &h, 1 } };
	struct taker start[FIBERS];
	struct rn_budget budget;
	pthread_t other, plain;

	rn_lock_init(&l.lock);
	rn_budget_init(&budget, 8 << 20);
	struct rn_stacks *stacks = rn_stacks_new(&budget, FIBERS);

	for (unsigned i = 0; i < FIBERS; i++) {
		struct rn_fiber *f = rn_fiber_get(stacks);

		start[i] = (struct taker){ .l = &l, .t = { .h = &h, .i = i } };
		if (rn_fiber_begin(f, take_often, &start[i]))
			rn_fiber_put(f);
	}
	cr_assert_eq(pthread_create(&other, NULL, run_hoppers, &t[1]), 0);
	cr_assert_eq(pthread_create(&plain, NULL, take_as_a_thread, &l), 0);
	run_hoppers(&t[0]);
	pthread_join(other, NULL);
	pthread_join(plain, NULL);
	cr_assert_eq(l.most, 1);
	cr_assert_eq(l.turns, FIBERS * (HOPS / 10) + HOPS);
	cr_assert_not(l.lock.held);
	cr_assert_eq(rn_stacks_used(stacks), 0);
	rn_lock_fini(&l.lock);
	rn_stacks_free(stacks);
}
