/* SPDX-License-Identifier: BSD-2-Clause */
/* The event thread: posted items run once, in order, on the loop's thread, and before the loop
 * ends. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/util.h"
#include "transport/event_loop.h"

enum { POSTERS = 4, EACH = 5000 };

struct item {
	struct ev_task task;
	unsigned poster, seq;
	unsigned *next; /* next item of each poster; used by the loop's thread only */
	unsigned *bad;
};

static void run_item(struct ev_task *t)
{
	struct item *it = rn_container_of(t, struct item, task);

	if (it->next[it->poster]++ != it->seq)
		(*it->bad)++;
}

struct poster {
	struct ev_loop *loop;
	struct item items[EACH];
};

static void *post_all(void *arg)
{
	struct poster *p = arg;

	for (unsigned i = 0; i < EACH; i++)
		ev_loop_post(p->loop, &p->items[i].task);
	return NULL;
}

/* The loop is freed with its inbox full. No item is lost or runs twice, and each poster's order is
 * kept. */
Test(event_loop, posts_from_many_threads, .timeout = 60)
{
	unsigned next[POSTERS] = { 0 }, bad = 0;
	struct poster *posters = calloc(POSTERS, sizeof(*posters));
	pthread_t threads[POSTERS];
	struct ev_loop *loop;

	cr_assert_eq(ev_loop_new("test", NULL, &loop), 0);
	for (unsigned p = 0; p < POSTERS; p++) {
		posters[p].loop = loop;
		for (unsigned i = 0; i < EACH; i++)
			posters[p].items[i] =
				(struct item){ { .run = run_item }, p, i, next, &bad };
		pthread_create(&threads[p], NULL, post_all, &posters[p]);
	}
	for (unsigned p = 0; p < POSTERS; p++)
		pthread_join(threads[p], NULL);
	ev_loop_free(loop);
	cr_expect_eq(bad, 0);
	for (unsigned p = 0; p < POSTERS; p++)
		cr_expect_eq(next[p], (unsigned)EACH);
	free(posters);
}

struct nested {
	struct ev_loop *loop;
	pthread_t inner, outer;
};

static void inner(void *arg)
{
	((struct nested *)arg)->inner = pthread_self();
}

static void outer(void *arg)
{
	struct nested *n = arg;

	n->outer = pthread_self();
	ev_loop_call(n->loop, inner, n);
}

Test(event_loop, call_runs_on_the_loop_and_nests, .timeout = 60)
{
	struct nested n = { 0 };

	cr_assert_eq(ev_loop_new("test", NULL, &n.loop), 0);
	ev_loop_call(n.loop, outer, &n);
	cr_expect(pthread_equal(n.inner, n.outer));
	cr_expect(!pthread_equal(n.outer, pthread_self()));
	ev_loop_free(n.loop);
}

struct again {
	struct ev_task task;
	struct ev_loop *loop;
	unsigned left;
};

static void run_again(struct ev_task *t)
{
	struct again *a = rn_container_of(t, struct again, task);

	if (--a->left)
		ev_loop_post(a->loop, t);
}

Test(event_loop, a_task_may_post_itself, .timeout = 60)
{
	struct again a = { .task.run = run_again, .left = 1000 };

	cr_assert_eq(ev_loop_new("test", NULL, &a.loop), 0);
	ev_loop_post(a.loop, &a.task);
	ev_loop_free(a.loop);
	cr_expect_eq(a.left, 0);
}

struct restless {
	struct ev_task task;
	struct ev_loop *loop;
	atomic_bool stop;
};

static void run_restless(struct ev_task *t)
{
	struct restless *r = rn_container_of(t, struct restless, task);

	if (!atomic_load(&r->stop))
		ev_loop_post(r->loop, t);
}

Test(event_loop, load_is_measured, .timeout = 60)
{
	struct restless r = { .task.run = run_restless };

	cr_assert_eq(ev_loop_new("test", NULL, &r.loop), 0);
	const struct ev_loop *load = r.loop;
	ev_loop_post(r.loop, &r.task);
	while (ev_load_measured(load) < EV_LOAD_FULL * 9 / 10)
		usleep(1000);
	atomic_store(&r.stop, true);
	while (ev_load_measured(load) > EV_LOAD_FULL / 2)
		usleep(1000);
	ev_loop_free(r.loop);
}

/* Calls that the loop keeps: one of them lasts until it is let go. */
enum { MANY = 20, MOST = 3 * MANY };
struct pieces {
	struct ev_loop *loop;
	struct ev_task add;
	struct rn_inbox_node call[MOST];
	unsigned more;		     /* calls that the task has the loop keep */
	_Atomic unsigned kept, made; /* calls, in the order of the array */
	_Atomic unsigned done, begun, ended;
	_Atomic unsigned lasting; /* calls that still have to last */
	_Atomic bool at_it;
	sem_t let_go;
	pthread_t lasted_on;
	_Atomic bool stray_is_current;
	struct ev_task from_stray;
	_Atomic bool stray_task_ran;
};

static void *begin_pieces(void *ctx, struct ev_loop *loop)
{
	(void)loop;
	atomic_fetch_add(&((struct pieces *)ctx)->begun, 1);
	return ctx;
}

static void end_pieces(void *state)
{
	atomic_fetch_add(&((struct pieces *)state)->ended, 1);
}

static void run_stray_task(struct ev_task *t)
{
	atomic_store(&rn_container_of(t, struct pieces, from_stray)->stray_task_ran, true);
}

static void run_piece(void *ctx, void *state, struct rn_inbox_node *call)
{
	struct pieces *p = ctx;

	cr_assert(state == ctx);
	cr_assert_eq(call, &p->call[atomic_fetch_add(&p->made, 1)]);
	if (p->lasting > 0) {
		p->lasting--;
		p->lasted_on = pthread_self();
		atomic_store(&p->at_it, true);
		while (sem_wait(&p->let_go) != 0)
			;
		atomic_store(&p->stray_is_current, ev_loop_is_current(p->loop));
		if (p->from_stray.run)
			ev_loop_post(p->loop, &p->from_stray);
	}
	atomic_fetch_add(&p->done, 1);
}

static void add_pieces(struct ev_task *t)
{
	struct pieces *p = rn_container_of(t, struct pieces, add);

	for (unsigned i = 0; i < p->more; i++)
		ev_loop_keep(p->loop, &p->call[p->kept++]);
}

static void until(_Atomic unsigned *n, unsigned want)
{
	while (atomic_load(n) < want)
		usleep(1000);
}

static void start_pieces(struct pieces *p)
{
	const struct ev_calls calls = {
		.begin = begin_pieces, .run = run_piece, .end = end_pieces, .ctx = p
	};

	sem_init(&p->let_go, 0, 0);
	p->add.run = add_pieces;
	cr_assert_eq(ev_loop_new("test", &calls, &p->loop), 0);
}

Test(event_loop, calls_are_made_after_tasks, .timeout = 60)
{
	struct pieces p = { .more = 3 };

	start_pieces(&p);
	cr_expect_eq(ev_loop_replace(p.loop), -EALREADY);
	ev_loop_post(p.loop, &p.add);
	until(&p.done, 3);
	ev_loop_free(p.loop);
	cr_expect_eq(p.begun, 1);
	cr_expect_eq(p.ended, 1);
}

/* Another thread takes the loop from one whose call lasts, and makes those that wait behind it. */
Test(event_loop, a_thread_in_a_call_is_replaced, .timeout = 60)
{
	struct pieces p = { .lasting = 1, .more = 3, .from_stray.run = run_stray_task };

	start_pieces(&p);
	ev_loop_post(p.loop, &p.add);
	while (!atomic_load(&p.at_it))
		usleep(1000);
	cr_expect_eq(ev_loop_replace(p.loop), 0);
	until(&p.done, 2);
	ev_loop_post(p.loop, &p.add); /* the loop goes on */
	until(&p.done, 5);
	cr_expect_eq(p.begun, 2);
	cr_expect_eq(p.ended, 0);
	sem_post(&p.let_go);
	until(&p.ended, 1);
	while (!atomic_load(&p.stray_task_ran)) /* what it posted is not lost */
		usleep(1000);
	cr_expect_eq(p.done, 6);
	cr_expect_not(p.stray_is_current);
	ev_loop_free(p.loop);
	cr_expect_eq(p.ended, 2);
}

/* Threads are replaced again and again, all are let go at the same time, and the loop is freed only
 * when the last of them has ended. */
Test(event_loop, many_replacements, .timeout = 60)
{
	struct pieces p = { .lasting = MANY, .more = 3 * MANY };

	start_pieces(&p);
	ev_loop_post(p.loop, &p.add);
	for (unsigned i = 0; i < MANY; i++) {
		until(&p.begun, i + 1);
		while (!atomic_exchange(&p.at_it, false))
			usleep(100);
		cr_assert_eq(ev_loop_replace(p.loop), 0);
	}
	until(&p.begun, MANY + 1);
	for (unsigned i = 0; i < MANY; i++)
		sem_post(&p.let_go);
	until(&p.done, 3 * MANY);
	ev_loop_free(p.loop);
	cr_expect_eq(p.begun, MANY + 1);
	cr_expect_eq(p.ended, MANY + 1);
	cr_expect_eq(p.done, 3 * MANY);
}
