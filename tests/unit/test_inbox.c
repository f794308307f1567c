/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/util.h"
#include "lib/inbox.h"

#define POSTERS 4
#define EACH 20000

struct item {
	struct rn_inbox_node node;
	int poster, seq;
};

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

Test(inbox, oldest_first_and_one_ring_for_a_batch)
{
	struct item items[3] = { 0 };
	struct rn_inbox in;
	uint64_t rings;

	cr_assert_eq(rn_inbox_init(&in), 0);
	cr_assert_null(rn_inbox_take(&in));
	cr_assert_not(readable(in.fd));
	for (int i = 0; i < 3; i++)
		rn_inbox_post(&in, &items[i].node);
	cr_assert_eq(read(in.fd, &rings, sizeof(rings)), (ssize_t)sizeof(rings));
	cr_assert_eq(rings, 1);
	struct rn_inbox_node *n = rn_inbox_take(&in);
	for (int i = 0; i < 3; i++, n = n->next)
		cr_assert_eq(n, &items[i].node);
	cr_assert_null(n);
	cr_assert_not(readable(in.fd));
	rn_inbox_post(&in, &items[0].node);
	cr_assert(readable(in.fd), "an emptied inbox rings again");
	rn_inbox_fini(&in);
}

struct poster {
	pthread_t thread;
	struct rn_inbox *in;
	struct item items[EACH];
};

static void *post_all(void *arg)
{
	struct poster *p = arg;

	for (int i = 0; i < EACH; i++)
		rn_inbox_post(p->in, &p->items[i].node);
	return NULL;
}

/* Sleeps until the eventfd is written, as a worker does: the test hangs if a wake-up is lost. */
static void wait_ring(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t rings;

	cr_assert_eq(poll(&p, 1, 10000), 1, "no ring");
	cr_assert_eq(read(fd, &rings, sizeof(rings)), (ssize_t)sizeof(rings));
}

Test(inbox, many_posters_lose_nothing_and_keep_their_order, .timeout = 30)
{
	static struct poster posters[POSTERS];
	int next[POSTERS] = { 0 };
	struct rn_inbox in;

	cr_assert_eq(rn_inbox_init(&in), 0);
	for (int i = 0; i < POSTERS; i++) {
		posters[i].in = &in;
		for (int j = 0; j < EACH; j++)
			posters[i].items[j] = (struct item){ .poster = i, .seq = j };
		pthread_create(&posters[i].thread, NULL, post_all, &posters[i]);
	}
	for (int got = 0; got < POSTERS * EACH;) {
		wait_ring(in.fd);
		for (struct rn_inbox_node *n = rn_inbox_take(&in); n != NULL; n = n->next) {
			const struct item *it = rn_container_of(n, struct item, node);

			cr_assert_eq(it->seq, next[it->poster]);
			next[it->poster]++;
			got++;
		}
	}
	for (int i = 0; i < POSTERS; i++)
		pthread_join(posters[i].thread, NULL);
	rn_inbox_fini(&in);
}
