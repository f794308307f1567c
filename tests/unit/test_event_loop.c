/* SPDX-License-Identifier: BSD-2-Clause */
/* The event thread: posted items run once, in order, on the loop's thread, and before the loop
 * ends. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

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

	cr_assert_eq(ev_loop_new("test", &loop), 0);
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

	cr_assert_eq(ev_loop_new("test", &n.loop), 0);
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

	cr_assert_eq(ev_loop_new("test", &a.loop), 0);
	ev_loop_post(a.loop, &a.task);
	ev_loop_free(a.loop);
	cr_expect_eq(a.left, 0);
}
