/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that move between event threads, because one has too much to do or because the test
 * wants it. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/tcp_fixture.h"
#include "transport/event_loop.h"
#include "transport/tcp/tcp_types.h"

#define BUDGET (64u << 20)
#define DEFAULTS ((struct tcp_config){ 0 })

static struct tcp_stats stats_after(struct fixture *f, uint64_t replies)
{
	struct tcp_stats st;

	for (unsigned i = 0; i < 10000; i++) {
		tcp_server_stats(f->srv, &st);
		if (st.replies >= replies)
			break;
		usleep(1000);
	}
	return st;
}

enum { CLIENTS = 6, ROUNDS = 250, EACH = 12 }; /* calls of one round are sent without a pause */

struct client {
	pthread_t thread;
	int fd;
	unsigned number;
	uint32_t expected; /* calls answered, each at its place */
};

static size_t length_of(uint32_t i)
{
	static const size_t lengths[] = { 12, 100, 1023, 1024, 1025, 4096, 20000, 70000 };

	return lengths[i % rn_array_size(lengths)];
}

static void *client_main(void *arg)
{
	struct client *c = arg;
	struct answer a;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < EACH; i++) {
			const uint32_t xid = round * EACH + i;
			const uint32_t bulk = i == c->number ? 30000 : 0;

			client_call(c->fd, xid, bulk, length_of(xid + c->number), i % 2 ? 0 : 7000);
		}
		for (uint32_t i = 0; i < EACH; i++) {
			const uint32_t xid = round * EACH + i;
			const uint32_t bulk = i == c->number ? 30000 : 0;
			const size_t len = length_of(xid + c->number);

			if (client_answer(c->fd, &a) != 1 || a.xid != xid || a.bulk_len != bulk ||
			    a.len != len || a.sum != call_sum(xid, bulk, len))
				return NULL;
			c->expected++;
		}
	}
	return NULL;
}

/* Every call has one answer, in the order of the calls: the executor keeps it. */
static void many_calls(enum sink_mode mode)
{
	struct client clients[CLIENTS];
	struct shaker s;
	struct fixture f;
	struct tcp_stats st;
	uint8_t more;

	fixture_start(&f, (struct tcp_config){ .max_requests = 32 }, BUDGET, AF_INET);
	fixture_mode(&f, mode);
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i] = (struct client){ .fd = client_connect(&f), .number = i };
	shaker_start(&s, &f);
	for (unsigned i = 0; i < CLIENTS; i++)
		cr_assert_eq(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
	shaker_stop(&s);
	st = stats_after(&f, (uint64_t)CLIENTS * ROUNDS * EACH);
	for (unsigned i = 0; i < CLIENTS; i++) {
		cr_expect_eq(clients[i].expected, ROUNDS * EACH, "client %u: %u answers", i,
			     clients[i].expected);
		cr_expect_lt(recv(clients[i].fd, &more, 1, MSG_DONTWAIT), 0);
		close(clients[i].fd);
	}
	cr_expect_eq(st.calls, (uint64_t)CLIENTS * ROUNDS * EACH);
	cr_expect_eq(st.replies, st.calls);
	cr_expect_gt(st.moved, 20, "%llu moves only", (unsigned long long)st.moved);
	fixture_stop(&f);
}

Test(tcp_move, calls_answered_by_workers, .timeout = 120)
{
	many_calls(EXECUTOR_ANSWERS);
}

Test(tcp_move, calls_answered_at_once, .timeout = 120)
{
	many_calls(EXECUTOR_IN_PLACE);
}

Test(tcp_move, calls_that_wait_for_their_thread, .timeout = 120)
{
	many_calls(EXECUTOR_LATER);
}

/* A record that comes in pieces, with a move after each: within the mark, the head, and buffers of
 * all sizes. */
Test(tcp_move, a_record_moves_in_any_part, .timeout = 120)
{
	enum { LEN = 300000 };
	static const size_t cuts[] = { 1, 4, 5, 12, 500, 1027, 1028, 1029, 5000, 66000, 270000 };
	struct fixture f;
	struct answer a;
	uint32_t words[4] = { htonl(0x80000000u | LEN), htonl(77) };
	uint8_t *record = calloc(1, LEN + 4);
	size_t at = 0;

	memcpy(record, words, sizeof(words));
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	int fd = client_connect(&f);
	client_ping(fd, 1);
	for (unsigned i = 0; i < rn_array_size(cuts); i++) {
		client_send(fd, record + at, cuts[i] - at);
		at = cuts[i];
		usleep(2000); /* it is read before the move, or after it */
		fixture_move(&f, 0);
		fixture_move(&f, 0);
	}
	client_send(fd, record + at, LEN + 4 - at);
	cr_assert_eq(client_answer(fd, &a), 1);
	cr_expect_eq(a.xid, 77);
	cr_expect_eq(a.len, LEN);
	client_ping(fd, 2);
	cr_expect_geq(fixture_moved(&f), 2 * rn_array_size(cuts));
	close(fd);
	free(record);
	fixture_stop(&f);
}

/* A connection comes to rest by itself, when it does not read and its calls are answered. */
Test(tcp_move, it_leaves_when_its_calls_are_answered, .timeout = 120)
{
	struct fixture f;
	struct answer a;

	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	int fd = client_connect(&f);
	for (unsigned i = 0; fixture_moved(&f) == 0; i++) { /* on a slow machine patience ends */
		cr_assert_lt(i, 1000);
		fixture_mode(&f, EXECUTOR_HOLDS);
		client_call(fd, 2 * i, 0, 100, 0);
		cr_assert(fixture_wait(&f, 1));
		cr_assert(fixture_wish(&f, 0, 0));
		client_call(fd, 2 * i + 1, 0, 100, 0);
		fixture_mode(&f, EXECUTOR_ANSWERS);
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_expect_eq(a.xid, 2 * i);
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_expect_eq(a.xid, 2 * i + 1);
	}
	close(fd);
	fixture_stop(&f);
}

/* A call that lasts: the connection stays, and reads on. */
Test(tcp_move, it_stays_if_a_call_lasts, .timeout = 120)
{
	struct fixture f;
	struct answer a;

	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_HOLDS);
	int fd = client_connect(&f);
	client_call(fd, 1, 0, 100, 0);
	cr_assert(fixture_wait(&f, 1));
	cr_assert(fixture_wish(&f, 0, 0));
	client_call(fd, 2, 0, 100, 0);
	cr_expect(fixture_wait(&f, 2));
	cr_expect_eq(fixture_moved(&f), 0);
	fixture_mode(&f, EXECUTOR_ANSWERS);
	for (uint32_t xid = 1; xid <= 2; xid++) {
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_expect_eq(a.xid, xid);
	}
	close(fd);
	fixture_stop(&f);
}

/* Replies that the peer does not take keep its connection where it is, and nobody else. */
Test(tcp_move, it_stays_if_the_peer_takes_no_replies, .timeout = 120)
{
	enum { LARGE = 16 };
	struct shaker s;
	struct fixture f;
	struct answer a;

	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	int slow = client_connect(&f);
	for (uint32_t i = 0; i < LARGE; i++)
		client_call(slow, i, 1u << 20, 100, 0);
	cr_assert(fixture_wait(&f, 0));
	int fast = client_connect(&f);
	client_ping(fast, 1);
	shaker_start(&s, &f);
	for (uint32_t i = 0; fixture_moved(&f) < 10; i++)
		client_ping(fast, i);
	for (uint32_t i = 0; i < LARGE; i++) {
		cr_assert_eq(client_answer(slow, &a), 1);
		cr_expect_eq(a.xid, i);
		cr_expect_eq(a.bulk_len, 1u << 20);
		client_ping(fast, i);
	}
	shaker_stop(&s);
	for (uint32_t i = 0; i < 100; i++) {
		fixture_move(&f, 0);
		client_ping(slow, i);
	}
	close(slow);
	close(fast);
	fixture_stop(&f);
}

static void *come_and_go(void *arg)
{
	static const struct linger now = { 1, 0 };
	struct fixture *f = arg;
	struct answer a;

	for (uint32_t i = 0; i < 300; i++) {
		int fd = client_connect(f);

		client_call(fd, i, i % 3 ? 0 : 100000, 100, 0);
		if (i % 4) {
			cr_assert_eq(client_answer(fd, &a), 1);
			client_ping(fd, i);
		}
		client_send(fd, "\x80\0\1\0abc", i % 8); /* a part of a record */
		if (i % 2)				 /* by a reset */
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fd);
	}
	return NULL;
}

static void *come_and_ping(void *arg)
{
	struct fixture *f = arg;

	for (uint32_t i = 0; i < 300; i++) {
		int fd = client_connect(f);

		for (uint32_t k = 0; k < 5; k++)
			client_ping(fd, k);
		close(fd);
	}
	return NULL;
}

/* Peers end connections at any moment of a move. */
Test(tcp_move, connections_end_on_their_way, .timeout = 120)
{
	struct shaker s;
	struct fixture f;
	struct tcp_stats st;
	pthread_t threads[4];

	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	shaker_start(&s, &f);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, i ? come_and_ping : come_and_go, &f),
			     0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 4000; i++) {
		tcp_server_stats(f.srv, &st);
		if (!st.connections)
			break;
		usleep(5000);
	}
	shaker_stop(&s);
	cr_expect_eq(st.connections, 0);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(atomic_load(&f.loops[i]->conns), 0);
	fixture_stop(&f);
}

/* The server ends while connections are on their way, or about to leave. */
Test(tcp_move, the_server_ends_meanwhile, .timeout = 120)
{
	for (unsigned round = 0; round < 100; round++) {
		struct fixture f;
		int fds[6];

		fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
		for (unsigned i = 0; i < 6; i++) {
			fds[i] = client_connect(&f);
			client_ping(fds[i], i);
		}
		if (round % 2) /* with replies on their way as well */
			for (unsigned i = 0; i < 6; i++)
				client_call(fds[i], i, 1u << 20, 100, 0);
		for (unsigned i = 0; i < 2; i++)
			fixture_wish(&f, (round / 2 + i) % 2, ANY_CONN);
		if (round % 4 < 2)
			tcp_server_quiesce(f.srv);
		fixture_stop(&f);
		for (unsigned i = 0; i < 6; i++)
			close(fds[i]);
	}
}

/* A thread is stuck in a call and another one has its loop: the loop's connections move, but for
 * that one, which stays and is served. */
Test(tcp_move, beside_a_thread_that_is_stuck, .timeout = 120)
{
	struct fixture f;
	struct answer a;

	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_LATER);
	int stuck = client_connect(&f), fd[3];
	for (unsigned i = 0; i < 3; i++)
		fd[i] = client_connect(&f);
	client_call(stuck, XID_GATE, 0, 100, 0);
	while (ev_loop_replace(f.loops[0]) != 0) /* it has not begun the call */
		usleep(1000);
	for (uint32_t i = 0; i < 20; i++) {
		for (unsigned k = 0; k < 3; k++) {
			fixture_move(&f, k + 1);
			client_ping(fd[k], i);
		}
		client_ping(stuck, i);
	}
	for (unsigned i = 0; i < 2; i++)
		fixture_wish(&f, i, 0);
	client_ping(stuck, 7);
	const uint64_t before = fixture_moved(&f);
	sem_post(&f.gate);
	cr_assert_eq(client_answer(stuck, &a), 1);
	cr_expect_eq(a.xid, XID_GATE);
	cr_expect_eq(before, 60, "it has moved with its call");
	fixture_move(&f, 0);
	client_ping(stuck, 8);
	close(stuck);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
	fixture_stop(&f);
}

/* A client that keeps its thread busy: most of the time goes into sums of its calls. */
struct heavy {
	pthread_t thread;
	int fd;
	atomic_bool stop;
	bool failed;
};

static void *heavy_main(void *arg)
{
	enum { LEN = 60000, AT_ONCE = 8 };
	struct heavy *h = arg;
	const uint32_t words[4] = { htonl(0x80000000u | LEN), htonl(5) };
	uint8_t *record = calloc(AT_ONCE, LEN + 4);
	struct answer a;

	for (unsigned i = 0; i < AT_ONCE; i++)
		memcpy(record + (size_t)i * (LEN + 4), words, sizeof(words));
	while (!atomic_load(&h->stop) && !h->failed) {
		client_send(h->fd, record, (size_t)AT_ONCE * (LEN + 4));
		for (unsigned i = 0; i < AT_ONCE; i++)
			h->failed |= client_answer(h->fd, &a) != 1 || a.len != LEN;
	}
	free(record);
	return NULL;
}

static void heavy_start(struct heavy *h, int fd)
{
	*h = (struct heavy){ .fd = fd };
	cr_assert_eq(pthread_create(&h->thread, NULL, heavy_main, h), 0);
}

static void heavy_stop(struct heavy *h)
{
	atomic_store(&h->stop, true);
	pthread_join(h->thread, NULL);
	cr_expect_not(h->failed);
	close(h->fd);
}

struct census {
	struct tcp_loop *loop;
	unsigned n;
	uint64_t ids; /* bits of the first 64 connections */
};

static void count_conns(void *arg)
{
	struct census *c = arg;
	struct tcp_conn *conn;

	TAILQ_FOREACH (conn, &c->loop->conns, link) {
		c->n++;
		c->ids |= 1ull << (conn->rpc.id - 1);
	}
}

/* Connections of a loop, as bits. */
static uint64_t conns_on(struct fixture *f, unsigned loop)
{
	struct census c = { .loop = &f->srv->loops[loop] };

	ev_loop_call(c.loop->ev, count_conns, &c);
	return c.ids;
}

/* New connections go round; two that have one thread busy end on two threads, and stay there. */
Test(tcp_move, two_busy_connections_get_a_thread_each, .timeout = 120)
{
	struct heavy heavy[2];
	struct fixture f;
	int idle[2];

	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_LATER);
	for (unsigned i = 0; i < 2; i++) {
		int fd = client_connect(&f);

		client_ping(fd, 1);
		idle[i] = client_connect(&f);
		client_ping(idle[i], 2);
		heavy[i].fd = fd;
	}
	cr_expect_eq(conns_on(&f, 0), 5); /* numbers 0 and 2 */
	cr_expect_eq(conns_on(&f, 1), 10);
	for (unsigned i = 0; i < 2; i++)
		heavy_start(&heavy[i], heavy[i].fd);
	for (unsigned i = 0; fixture_moved(&f) == 0; i++) {
		cr_assert_lt(i, 6000, "no connection moves");
		usleep(10000);
	}
	while ((conns_on(&f, 0) | conns_on(&f, 1)) != 15) /* it is on its way */
		usleep(1000);
	const uint64_t first = conns_on(&f, 0) & 5;
	cr_expect(first == 1 || first == 4, "%llu is on the first thread",
		  (unsigned long long)first);
	for (unsigned i = 0; i < 2; i++) {
		client_ping(idle[i], 3);
		close(idle[i]);
		heavy_stop(&heavy[i]);
	}
	cr_expect_eq(fixture_moved(&f), 1);
	fixture_stop(&f);
}

/* The only busy connection of a thread is not given away. */
Test(tcp_move, one_busy_connection_stays, .timeout = 120)
{
	struct heavy heavy;
	struct fixture f;
	unsigned busy = 0;

	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_LATER);
	heavy_start(&heavy, client_connect(&f));
	for (unsigned i = 0; i < 600 && busy < 300; i++) { /* three seconds of much work */
		busy += ev_load_measured(f.loops[0]) > EV_LOAD_FULL * 8 / 10;
		usleep(10000);
	}
	heavy_stop(&heavy);
	cr_expect_eq(fixture_moved(&f), 0);
	fixture_stop(&f);
}
