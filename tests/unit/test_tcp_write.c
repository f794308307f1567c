/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies over TCP: how many leave together, and that no cut of a send spoils the stream. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/tcp_fixture.h"

#define BUDGET (64u << 20)
#define CALL_LEN 40u
#define IOV_MOST 1024 /* the kernel's limit */

static _Atomic uint32_t cut_seed;  /* 0: sends are left alone */
static _Atomic unsigned sends;	   /* calls of sendmsg that sent something */
static _Atomic size_t most_pieces; /* of one send */

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

static uint32_t next_random(void)
{
	uint32_t old = atomic_load(&cut_seed), x;

	do {
		x = old * 1664525u + 1013904223u;
		x += !x;
	} while (!atomic_compare_exchange_weak(&cut_seed, &old, x));
	return x >> 8;
}

/* A full socket now and then, and else a piece of any length from the front. */
static ssize_t send_piece(int fd, const struct msghdr *m, int flags)
{
	struct iovec iov[IOV_MOST];
	struct msghdr part = { .msg_iov = iov };
	const uint32_t r = next_random();
	size_t left = r % 3 ? 1 + next_random() % 300 : 1 + next_random() % 200000;

	if (r % 5 == 0) {
		errno = EAGAIN;
		return -1;
	}
	for (; part.msg_iovlen < m->msg_iovlen && left; part.msg_iovlen++) {
		iov[part.msg_iovlen] = m->msg_iov[part.msg_iovlen];
		iov[part.msg_iovlen].iov_len = rn_min(iov[part.msg_iovlen].iov_len, left);
		left -= iov[part.msg_iovlen].iov_len;
	}
	return __real_sendmsg(fd, &part, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t n =
		atomic_load(&cut_seed) ? send_piece(fd, m, flags) : __real_sendmsg(fd, m, flags);

	if (n > 0)
		atomic_fetch_add(&sends, 1);
	if (m->msg_iovlen > atomic_load(&most_pieces))
		atomic_store(&most_pieces, m->msg_iovlen);
	return n;
}

static void start(struct fixture *f)
{
	fixture_start(f, (struct tcp_config){ .nloops = 1, .max_requests = 64 }, BUDGET, AF_INET);
	fixture_mode(f, EXECUTOR_IN_PLACE);
}

/* Sends short calls in one write. */
static void send_calls(int fd, const uint32_t *xids, unsigned n)
{
	uint8_t *buf = calloc(n, CALL_LEN + 4);

	for (unsigned i = 0; i < n; i++) {
		const uint32_t words[] = { htonl(0x80000000u | CALL_LEN), htonl(xids[i]) };
		memcpy(buf + (size_t)i * (CALL_LEN + 4), words, sizeof(words));
	}
	client_send(fd, buf, (size_t)n * (CALL_LEN + 4));
	free(buf);
}

static void expect_answer(int fd, uint32_t xid)
{
	struct answer a;

	cr_assert_eq(client_answer(fd, &a), 1, "closed");
	cr_expect_eq(a.xid, xid, "%u, not %u", a.xid, xid);
}

static void send_row(int fd, uint32_t first, unsigned n)
{
	uint32_t xids[128];

	for (unsigned i = 0; i < n; i++)
		xids[i] = first + i;
	send_calls(fd, xids, n);
}

static void expect_row(int fd, uint32_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		expect_answer(fd, first + i);
}

/* Replies are counted after they have left: the client may be faster. */
static struct tcp_stats stats_after(struct fixture *f, uint64_t replies)
{
	struct tcp_stats st;

	for (int i = 0; i < 10000; i++) {
		tcp_server_stats(f->srv, &st);
		if (st.replies >= replies)
			break;
		usleep(1000);
	}
	return st;
}

/* The first calls are more than a new connection may have in flight. */
Test(tcp_write, replies_of_one_turn_leave_together, .timeout = 60)
{
	struct fixture f;
	struct tcp_stats st;

	start(&f);
	int fd = client_connect(&f);
	send_row(fd, 0, 64);
	expect_row(fd, 0, 64);
	cr_expect_leq(atomic_load(&sends), 6, "%u sends for 64 calls", atomic_load(&sends));
	const unsigned before = atomic_load(&sends);
	for (uint32_t i = 0; i < 10; i++) {
		send_row(fd, 1000 * i, 32);
		expect_row(fd, 1000 * i, 32);
	}
	cr_expect_leq(atomic_load(&sends) - before, 12, "%u sends for 10 x 32 calls",
		      atomic_load(&sends) - before);
	st = stats_after(&f, 384);
	cr_expect_eq(st.calls, 384);
	cr_expect_eq(st.replies, 384);
	cr_expect_eq(st.sends, atomic_load(&sends));
	close(fd);
	fixture_stop(&f);
}

/* Replies that wait in the queue while the socket is full go out together, too. */
Test(tcp_write, replies_of_workers_leave_together_when_they_wait, .timeout = 60)
{
	struct fixture f;
	struct answer a;

	start(&f);
	int fd = client_connect(&f);
	send_row(fd, 0, 64); /* opens the window */
	expect_row(fd, 0, 64);
	fixture_mode(&f, EXECUTOR_HOLDS);
	for (uint32_t i = 0; i < 10; i++)
		client_call(fd, i, 1u << 20, 100, 0);
	send_row(fd, 100, 50);
	cr_assert(fixture_wait(&f, 60));
	fixture_mode(&f, EXECUTOR_ANSWERS);
	cr_assert(fixture_wait(&f, 0)); /* ten MiB are more than the socket takes */
	atomic_store(&most_pieces, 0);
	for (uint32_t i = 0; i < 10; i++) {
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_expect_eq(a.xid, i);
		cr_expect_eq(a.bulk_len, 1u << 20);
	}
	expect_row(fd, 100, 50);
	cr_expect_geq(atomic_load(&most_pieces), 50, "replies left one by one");
	close(fd);
	fixture_stop(&f);
}

/* A turn that lasts holds up no reply that another thread gives. */
Test(tcp_write, a_reply_of_another_thread_does_not_wait_for_the_turn, .timeout = 60)
{
	static const uint32_t xids[] = { 1, XID_OTHER_THREAD, XID_GATE, 2 };
	struct fixture f;

	start(&f);
	int fd = client_connect(&f);
	send_calls(fd, xids, rn_array_size(xids));
	expect_answer(fd, 1); /* goes along */
	expect_answer(fd, XID_OTHER_THREAD);
	sem_post(&f.gate);
	expect_answer(fd, XID_GATE);
	expect_answer(fd, 2);
	close(fd);
	fixture_stop(&f);
}

/* A stream that breaks the rules ends, but calls before that are answered. */
Test(tcp_write, calls_before_a_bad_record_are_answered, .timeout = 60)
{
	struct fixture f;
	uint8_t buf[3 * (CALL_LEN + 4) + 4] = { 0 };

	start(&f);
	int fd = client_connect(&f);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t words[] = { htonl(0x80000000u | CALL_LEN), htonl(i) };
		memcpy(buf + (size_t)i * (CALL_LEN + 4), words, sizeof(words));
	}
	memset(buf + sizeof(buf) - 4, 0xff, 4);
	client_send(fd, buf, sizeof(buf));
	expect_row(fd, 0, 3);
	cr_expect(client_closed(fd));
	close(fd);
	fixture_stop(&f);
}

Test(tcp_write, calls_before_the_end_of_the_stream_are_answered, .timeout = 60)
{
	struct fixture f;

	start(&f);
	int fd = client_connect(&f);
	send_row(fd, 0, 40);
	shutdown(fd, SHUT_WR);
	expect_row(fd, 0, 40);
	cr_expect(client_closed(fd));
	close(fd);
	fixture_stop(&f);
}

/* Sends cut at any byte, also within a mark and a pad, with bulk items and without. */
static void cut_sends(uint32_t seed, enum sink_mode mode)
{
	static const uint32_t lens[] = { 0, 1, 3, 4, 4095, 4096, 65537, 300001 };
	struct fixture f;
	struct answer a;

	fprintf(stderr, "seed %u\n", seed);
	start(&f);
	fixture_mode(&f, mode);
	int fd = client_connect(&f);
	atomic_store(&cut_seed, seed);
	for (uint32_t round = 0; round < 12; round++) {
		for (uint32_t i = 0; i < 30; i++) {
			uint32_t bulk = lens[(i + round) % rn_array_size(lens)];
			if (bulk && bulk < 5000 && i % 7 == 0)
				bulk |= BULK_ITEMS(15);
			client_call(fd, 100 * round + i, bulk, 40 + i, 0);
		}
		for (uint32_t i = 0; i < 30; i++) {
			cr_assert_eq(client_answer(fd, &a), 1);
			cr_assert_eq(a.xid, 100 * round + i);
			cr_expect_eq(a.bulk_len, lens[(i + round) % rn_array_size(lens)]);
		}
	}
	atomic_store(&cut_seed, 0);
	close(fd);
	fixture_stop(&f);
}

Test(tcp_write, sends_that_are_cut_in_place, .timeout = 120)
{
	cut_sends((uint32_t)getpid(), EXECUTOR_IN_PLACE);
}

Test(tcp_write, sends_that_are_cut_by_workers, .timeout = 120)
{
	cut_sends((uint32_t)getpid(), EXECUTOR_ANSWERS);
}

struct sender {
	int fd;
	uint32_t calls;
};

static void *sender_main(void *arg)
{
	const struct sender *s = arg;

	for (uint32_t i = 0; i < s->calls; i++)
		client_call(s->fd, i, i % 50 ? 0 : 100000, 40, 0);
	return NULL;
}

/* A reader that lets replies pile up in both sockets gets each of them once and whole. */
Test(tcp_write, a_slow_reader_gets_whole_replies, .timeout = 120)
{
	struct sender s = { .calls = 3000 };
	struct fixture f;
	pthread_t t;

	start(&f);
	s.fd = client_connect(&f);
	cr_assert_eq(pthread_create(&t, NULL, sender_main, &s), 0);
	usleep(100000);
	expect_row(s.fd, 0, s.calls);
	pthread_join(t, NULL);
	close(s.fd);
	fixture_stop(&f);
}
