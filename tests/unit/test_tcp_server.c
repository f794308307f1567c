/* SPDX-License-Identifier: BSD-2-Clause */
/* The TCP server over loopback: records cut at any place, placement of bulk data, closing. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/tcp_fixture.h"

#define BUDGET (64u << 20)
#define DEFAULTS ((struct tcp_config){ 0 })

Test(tcp_server, answers, .timeout = 60)
{
	struct fixture f;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	int fd = client_connect(&f);
	for (uint32_t i = 0; i < 100; i++)
		client_ping(fd, i);
	struct tcp_stats st;
	/* The counter is updated after the last answer is sent */
	for (unsigned i = 0; i < 1000; i++) {
		tcp_server_stats(f.srv, &st);
		if (st.replies == 100)
			break;
		usleep(1000);
	}
	cr_expect_eq(st.calls, 100);
	cr_expect_eq(st.replies, 100);
	cr_expect_eq(st.connections, 1);
	close(fd);
	fixture_stop(&f);
}

Test(tcp_server, ipv6, .timeout = 60)
{
	struct fixture f;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET6);
	int fd = client_connect(&f);
	client_ping(fd, 1);
	close(fd);
	fixture_stop(&f);
}

/* Sizes around every limit: head, scratch, payload classes, the largest record; in one fragment, in
 * odd fragments, in fragments of 97 bytes. */
Test(tcp_server, sizes_and_fragments, .timeout = 120)
{
	static const size_t sizes[] = { 12,
					13,
					100,
					1023,
					1024,
					1025,
					4092,
					4096,
					4097,
					5000,
					8192,
					65535,
					65536,
					70000,
					262144,
					262145,
					1u << 20,
					(1u << 20) + 1,
					(1u << 20) + 4096 };
	static const size_t frags[] = { 0, 97, 1024, 5000, 65536 };
	struct fixture f;
	uint32_t xid = 0;

	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	int fd = client_connect(&f);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t j = 0; j < sizeof(frags) / sizeof(frags[0]); j++) {
			struct answer a;
			client_call(fd, ++xid, 0, sizes[i], frags[j]);
			cr_assert_eq(client_answer(fd, &a), 1);
			cr_expect_eq(a.xid, xid);
			cr_expect_eq(a.len, sizes[i], "%zu by %zu: %u", sizes[i], frags[j], a.len);
			cr_expect_eq(a.sum, call_sum(xid, 0, sizes[i]), "%zu by %zu", sizes[i],
				     frags[j]);
			cr_expect_leq(a.nseg, 4);
		}
	}
	close(fd);
	fixture_stop(&f);
}

static size_t bulk_at_200(const uint8_t *head, size_t len)
{
	(void)head;
	return len >= 200 ? 200 : 0;
}

Test(tcp_server, bulk_lands_on_a_page, .timeout = 60)
{
	struct fixture f;
	struct answer a;
	fixture_start(&f, (struct tcp_config){ .bulk_offset = bulk_at_200 }, BUDGET, AF_INET);
	int fd = client_connect(&f);
	client_call(fd, 1, 0, 200 + (1u << 20), 0);
	cr_assert_eq(client_answer(fd, &a), 1);
	cr_expect_eq(a.head_len, 200);
	cr_expect_eq(a.nseg, 2);
	cr_expect_eq(a.aligned, 1);
	cr_expect_eq(a.sum, call_sum(1, 0, 200 + (1u << 20)));
	close(fd);
	fixture_stop(&f);
}

Test(tcp_server, byte_by_byte, .timeout = 60)
{
	struct fixture f;
	struct answer a;
	static const uint8_t stream[] = {
		0,    0, 0, 5, 0, 0, 0, 9, 0, /* xid and a byte of the type */
		0,    0, 0, 0,		      /* an empty fragment */
		0,    0, 0, 3, 0, 0, 0,	      /* the rest of the type */
		0x80, 0, 0, 6, 0, 0, 0, 0, 1, 2
	};
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	int fd = client_connect(&f);
	for (size_t i = 0; i < sizeof(stream); i++) {
		client_send(fd, stream + i, 1);
		usleep(2000);
	}
	cr_assert_eq(client_answer(fd, &a), 1);
	cr_expect_eq(a.xid, 9);
	cr_expect_eq(a.len, 14);
	client_ping(fd, 10);
	close(fd);
	fixture_stop(&f);
}

/* More calls in one write than may be in flight: each is answered once. */
Test(tcp_server, many_records_in_one_write, .timeout = 60)
{
	enum { CALLS = 500, LEN = 40 };
	static uint8_t buf[CALLS * (LEN + 4)];
	struct fixture f;
	bool seen[CALLS] = { false };

	for (uint32_t i = 0; i < CALLS; i++) {
		uint32_t words[4] = { htonl(0x80000000u | LEN), htonl(i), 0, 0 };
		memcpy(buf + (size_t)i * (LEN + 4), words, sizeof(words));
	}
	fixture_start(&f, (struct tcp_config){ .max_requests = 4 }, BUDGET, AF_INET);
	int fd = client_connect(&f);
	client_send(fd, buf, sizeof(buf));
	for (unsigned i = 0; i < CALLS; i++) {
		struct answer a;
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_assert_lt(a.xid, CALLS);
		cr_expect(!seen[a.xid]);
		seen[a.xid] = true;
		cr_expect_eq(a.len, LEN);
	}
	close(fd);
	fixture_stop(&f);
}

Test(tcp_server, bad_streams_are_closed_and_others_go_on, .timeout = 60)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
#define BAD(s) { s, sizeof(s) - 1 }
		BAD("\xff\xff\xff\xff"),
		BAD("\x80\x20\0\0"),
		BAD("GET / HTTP/1.0\r\n\r\n"),
		BAD("\x80\0\0\0"),			     /* an empty record */
		BAD("\x80\0\0\4\0\0\0\1"),		     /* only an xid */
		BAD("\x80\0\0\x0c\0\0\0\1\0\0\0\1\0\0\0\0"), /* a reply */
		BAD("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	};
	struct fixture f;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	int good = client_connect(&f);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd = client_connect(&f);
		client_send(fd, bad[i].bytes, bad[i].len);
		cr_expect(client_closed(fd), "stream %zu", i);
		close(fd);
		client_ping(good, (uint32_t)i);
	}
	struct tcp_stats st;
	tcp_server_stats(f.srv, &st);
	cr_expect_eq(st.closed_error, sizeof(bad) / sizeof(bad[0]));
	close(good);
	fixture_stop(&f);
}

Test(tcp_server, garbage_closes, .timeout = 60)
{
	struct fixture f;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_GARBAGE);
	int fd = client_connect(&f);
	client_call(fd, 1, 0, 100, 0);
	cr_expect(client_closed(fd));
	close(fd);
	fixture_stop(&f);
}

Test(tcp_server, half_closed_peer_gets_its_replies, .timeout = 60)
{
	struct fixture f;
	struct answer a;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_HOLDS);
	int fd = client_connect(&f);
	for (uint32_t i = 0; i < 3; i++)
		client_call(fd, i, 1u << 20, 100, 0);
	client_send(fd, "\x80\0\1\0abc", 7); /* the beginning of a record that never ends */
	shutdown(fd, SHUT_WR);
	cr_assert(fixture_wait(&f, 3));
	usleep(50000);
	fixture_mode(&f, EXECUTOR_ANSWERS);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_expect_eq(a.xid, i);
		cr_expect_eq(a.bulk_len, 1u << 20);
	}
	cr_expect(client_closed(fd));
	close(fd);
	fixture_stop(&f);
}

Test(tcp_server, replies_with_several_bulk_items, .timeout = 60)
{
	static const uint32_t lens[] = { 1, 5, 4096, 100001, 1u << 20 };
	struct fixture f;
	struct answer a;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	int fd = client_connect(&f);
	/* All calls are sent first, so that the longer replies meet a full socket and go out in
	 * parts. */
	for (uint32_t i = 0; i < rn_array_size(lens); i++)
		client_call(fd, i, lens[i] | BULK_ITEMS(15), 100, 0);
	usleep(50000);
	for (uint32_t i = 0; i < rn_array_size(lens); i++) {
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_expect_eq(a.bulk_len, lens[a.xid]);
		cr_expect_eq(a.bulks, 16);
	}
	close(fd);
	fixture_stop(&f);
}

Test(tcp_server, closed_with_requests_in_flight, .timeout = 60)
{
	struct fixture f;
	struct tcp_stats st;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_HOLDS);
	int fds[8];
	for (unsigned i = 0; i < 8; i++) {
		fds[i] = client_connect(&f);
		client_call(fds[i], i, 1u << 20, 70000, 0);
	}
	cr_assert(fixture_wait(&f, 8));
	for (unsigned i = 0; i < 8; i++) {
		struct linger now = { 1, 0 };
		if (i % 2) /* half of the connections end by a reset */
			setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fds[i]);
	}
	usleep(50000);
	fixture_mode(&f, EXECUTOR_ANSWERS);
	cr_assert(fixture_wait(&f, 0));
	for (unsigned i = 0; i < 1000; i++) {
		tcp_server_stats(f.srv, &st);
		if (!st.connections)
			break;
		usleep(5000);
	}
	cr_expect_eq(st.connections, 0);
	fixture_stop(&f);
}

static void *release_later(void *arg)
{
	usleep(100000);
	fixture_mode(arg, EXECUTOR_ANSWERS);
	return NULL;
}

Test(tcp_server, free_waits_for_requests_in_flight, .timeout = 60)
{
	struct fixture f;
	pthread_t t;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_HOLDS);
	int fd = client_connect(&f);
	client_call(fd, 1, 0, 100, 0);
	cr_assert(fixture_wait(&f, 1));
	pthread_create(&t, NULL, release_later, &f);
	fixture_stop(&f);
	pthread_join(t, NULL);
	close(fd);
}

Test(tcp_server, quiesce_answers_what_came, .timeout = 60)
{
	struct fixture f;
	struct answer a;
	fixture_start(&f, DEFAULTS, BUDGET, AF_INET);
	fixture_mode(&f, EXECUTOR_HOLDS);
	int fd = client_connect(&f);
	client_call(fd, 1, 0, 100, 0);
	cr_assert(fixture_wait(&f, 1));
	tcp_server_quiesce(f.srv);
	client_call(fd, 2, 0, 100, 0);
	usleep(50000);
	cr_expect(fixture_wait(&f, 1));
	fixture_mode(&f, EXECUTOR_ANSWERS);
	cr_assert_eq(client_answer(fd, &a), 1);
	cr_expect_eq(a.xid, 1);
	fixture_stop(&f);
	close(fd);
}
