/* SPDX-License-Identifier: BSD-2-Clause */
/* The TCP server under load and against bad clients: memory, descriptors, time. */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tests/unit/tcp_fixture.h"
#include "transport/tcp/tcp_private.h"

#define BUDGET (64u << 20)

/* The server's clock: the kernel's, plus the time that a test has skipped. */
static _Atomic uint64_t passed_ns;

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = __real_clock_gettime(id, ts);

	if (err == 0 && id == CLOCK_MONOTONIC) {
		uint64_t ns = (uint64_t)ts->tv_nsec + atomic_load(&passed_ns);
		ts->tv_sec += (time_t)(ns / RN_NS_PER_SECOND);
		ts->tv_nsec = (long)(ns % RN_NS_PER_SECOND);
	}
	return err;
}

static void tick(void *loop)
{
	tcp_times_tick(loop);
}

/* Skips time, and waits until every loop has checked its connections. */
static void let_pass(struct fixture *f, unsigned ms)
{
	atomic_fetch_add(&passed_ns, ms * (RN_NS_PER_SECOND / 1000));
	for (unsigned i = 0; i < f->srv->cfg.nloops; i++)
		ev_loop_call(f->srv->loops[i].ev, tick, &f->srv->loops[i]);
}

/* A thread that skips a second every fifty milliseconds, for a busy machine's sake, while the test waits for an answer. */
struct hurry {
	struct fixture *f;
	pthread_t thread;
	atomic_bool stop;
	_Atomic unsigned seconds;
};

static void *hurry_main(void *arg)
{
	struct hurry *h = arg;

	while (!atomic_load(&h->stop)) {
		usleep(50000);
		let_pass(h->f, 1000);
		atomic_fetch_add(&h->seconds, 1);
	}
	return NULL;
}

static void hurry_start(struct hurry *h, struct fixture *f)
{
	*h = (struct hurry){ .f = f };
	cr_assert_eq(pthread_create(&h->thread, NULL, hurry_main, h), 0);
}

/* Stops the thread; returns the skipped seconds. */
static unsigned hurry_stop(struct hurry *h)
{
	atomic_store(&h->stop, true);
	pthread_join(h->thread, NULL);
	return atomic_load(&h->seconds);
}

static void wait_connections(struct fixture *f, uint64_t n)
{
	struct tcp_stats st;

	for (unsigned i = 0; i < 4000; i++) {
		tcp_server_stats(f->srv, &st);
		if (st.connections == n)
			return;
		usleep(5000);
	}
	cr_assert_fail("%llu connections, not %llu", (unsigned long long)st.connections,
		       (unsigned long long)n);
}

static void raise_nofile(rlim_t want)
{
	struct rlimit rl;

	getrlimit(RLIMIT_NOFILE, &rl);
	if (rl.rlim_cur < want) {
		rl.rlim_cur = want;
		if (rl.rlim_max < want)
			rl.rlim_max = want;
		if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
			cr_skip_test("RLIMIT_NOFILE cannot be raised to %lu", (unsigned long)want);
	}
}

Test(tcp_limits, idle_connections_are_cheap, .timeout = 120)
{
	enum { N = 2000 };
	static int fds[N];
	struct fixture f;

	raise_nofile(2 * N + 100);
	fixture_start(&f, (struct tcp_config){ .max_connections = N }, BUDGET, AF_INET);
	size_t before = mallinfo2().uordblks;
	for (unsigned i = 0; i < N; i++)
		fds[i] = client_connect(&f);
	wait_connections(&f, N);
	/* A part of a record mark, or of a small record, may hold little memory. */
	static const uint8_t call[64] = { 0x80, 0, 0, 60 };
	for (unsigned i = 0; i < N; i++)
		client_send(fds[i], call, i % 2 ? 1 : 60);
	usleep(200000);
	size_t each = (mallinfo2().uordblks - before) / N;
	struct rn_payload_stats st;
	rn_payload_stats(f.pool, &st);
	printf("idle connection: %zu bytes allocated, %zu in the struct\n", each,
	       sizeof(struct tcp_conn));
	cr_expect_lt(sizeof(struct tcp_conn), 2048);
	cr_expect_lt(each, 2048);
	cr_expect_leq(st.buffers_in_use, 128);
	for (unsigned i = 0; i < N; i++) {
		struct answer a;
		size_t sent = i % 2 ? 1 : 60;
		client_send(fds[i], call + sent, sizeof(call) - sent);
		cr_assert_eq(client_answer(fds[i], &a), 1);
		cr_expect_eq(a.len, 60);
		client_ping(fds[i], i);
		close(fds[i]);
	}
	fixture_stop(&f);
}

/* Sixteen unread replies of 1 MiB must not hold up other connections. Read late, they must be
 * whole. */
Test(tcp_limits, slow_reader, .timeout = 120)
{
	struct fixture f;
	struct answer a;

	fixture_start(&f, (struct tcp_config){ .nloops = 1 }, BUDGET, AF_INET);
	int slow = client_connect(&f), other = client_connect(&f);
	for (uint32_t i = 0; i < 40; i++)
		client_call(slow, i, 1u << 20, 100, 0);
	for (uint32_t i = 0; i < 200; i++)
		client_ping(other, i);
	for (uint32_t i = 0; i < 40; i++) {
		cr_assert_eq(client_answer(slow, &a), 1);
		cr_expect_eq(a.xid, i);
		cr_expect_eq(a.bulk_len, 1u << 20);
	}
	close(slow);
	close(other);
	fixture_stop(&f);
}

Test(tcp_limits, a_peer_that_never_reads_is_closed, .timeout = 120)
{
	struct hurry hurry;
	struct fixture f;

	fixture_start(&f, (struct tcp_config){ .stall_seconds = 1 }, BUDGET, AF_INET);
	int slow = client_connect(&f);
	for (uint32_t i = 0; i < 16; i++)
		client_call(slow, i, 1u << 20, 100, 0);
	wait_connections(&f, 1);
	cr_assert(fixture_wait(&f, 0)); /* the executor has answered all calls */
	hurry_start(&hurry, &f);
	wait_connections(&f, 0);
	hurry_stop(&hurry);
	cr_expect(client_closed(slow));
	close(slow);
	fixture_stop(&f);
}

Test(tcp_limits, a_record_that_never_ends_is_closed, .timeout = 120)
{
	struct fixture f;

	fixture_start(&f, (struct tcp_config){ .stall_seconds = 1 }, BUDGET, AF_INET);
	int small = client_connect(&f), large = client_connect(&f), good = client_connect(&f);
	client_send(small, "\x80\0\0\x64\0\0\0\1\0\0", 10);
	client_send(large, "\x80\x10\0\0\0\0\0\1\0\0", 10);
	for (unsigned i = 0; i < 2000; i++)
		client_send(large, "z", 1);
	for (uint32_t i = 0; i < 30; i++) {
		client_send(large, "z", 1); /* single bytes do not count as progress */
		client_ping(good, i);
		let_pass(&f, 100);
	}
	wait_connections(&f, 1);
	cr_expect(client_closed(small));
	cr_expect(client_closed(large));
	client_ping(good, 1);
	close(small);
	close(large);
	close(good);
	fixture_stop(&f);
}

Test(tcp_limits, idle_timeout, .timeout = 120)
{
	struct fixture f;
	struct tcp_stats st;

	fixture_start(&f, (struct tcp_config){ .idle_seconds = 1 }, BUDGET, AF_INET);
	int fd = client_connect(&f), busy = client_connect(&f);
	client_ping(fd, 1);
	for (uint32_t i = 0; i < 30; i++) {
		client_ping(busy, i);
		let_pass(&f, 100);
	}
	cr_expect(client_closed(fd));
	client_ping(busy, 1);
	tcp_server_stats(f.srv, &st);
	cr_expect_eq(st.closed_idle, 1);
	close(fd);
	close(busy);
	fixture_stop(&f);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Moves a connection that is at rest, if it is still there, and waits until it has arrived. */
static void move(struct fixture *f, uint64_t id)
{
	if (!fixture_wish(f, 0, id))
		(void)fixture_wish(f, 1, id);
	for (unsigned i = 0; i < 2; i++)
		ev_loop_call(f->loops[i], nothing, NULL);
}

/* Times go on for connections that move to another event thread again and again. */
Test(tcp_limits, moves_put_no_limit_off, .timeout = 120)
{
	enum { SMALL, LARGE, IDLE, GOOD, ALL };
	struct fixture f;
	struct tcp_stats st;
	int fd[ALL];

	fixture_start(&f, (struct tcp_config){ .stall_seconds = 1, .idle_seconds = 1 }, BUDGET,
		      AF_INET);
	for (unsigned i = 0; i < ALL; i++)
		fd[i] = client_connect(&f);
	client_send(fd[SMALL], "\x80\0\0\x64\0\0\0\1\0\0", 10);
	client_send(fd[LARGE], "\x80\x10\0\0\0\0\0\1\0\0", 10);
	for (unsigned i = 0; i < 2000; i++)
		client_send(fd[LARGE], "z", 1);
	client_ping(fd[IDLE], 1);
	for (uint32_t i = 0; i < 20; i++) {
		client_send(fd[LARGE], "z", 1);
		client_ping(fd[GOOD], i);
		for (unsigned k = 0; k < ALL; k++)
			move(&f, k);
		let_pass(&f, 100);
	}
	wait_connections(&f, 1);
	for (unsigned i = 0; i < GOOD; i++)
		cr_expect(client_closed(fd[i]), "%u is not closed", i);
	client_ping(fd[GOOD], 1);
	tcp_server_stats(f.srv, &st);
	cr_expect_geq(st.moved, 30);
	cr_expect_eq(st.closed_idle, 1);
	cr_expect_eq(st.closed_error, 2);
	for (unsigned i = 0; i < ALL; i++)
		close(fd[i]);
	fixture_stop(&f);
}

/* A connection with a request in flight is not idle. */
Test(tcp_limits, long_request_is_not_idle, .timeout = 120)
{
	struct fixture f;
	struct answer a;

	fixture_start(&f, (struct tcp_config){ .idle_seconds = 1, .stall_seconds = 1 }, BUDGET,
		      AF_INET);
	fixture_mode(&f, EXECUTOR_HOLDS);
	int fd = client_connect(&f);
	client_call(fd, 7, 0, 100, 0);
	cr_assert(fixture_wait(&f, 1));
	for (unsigned i = 0; i < 6; i++)
		let_pass(&f, 500);
	fixture_mode(&f, EXECUTOR_ANSWERS);
	cr_assert_eq(client_answer(fd, &a), 1);
	cr_expect_eq(a.xid, 7);
	close(fd);
	fixture_stop(&f);
}

/* Memory for three buffers of 1 MiB at most, and twelve connections that each need one: all are
 * served in turn, and none is refused. */
Test(tcp_limits, payload_exhaustion_and_recovery, .timeout = 120)
{
	enum { N = 12 };
	const size_t len = (1u << 20) - 100;
	struct fixture f;
	struct tcp_stats st;
	int fds[N];

	fixture_start(&f, (struct tcp_config){ .max_connections = 20 }, 9u << 20, AF_INET);
	int small = client_connect(&f);
	client_ping(small, 1);
	fixture_mode(&f, EXECUTOR_HOLDS);
	for (uint32_t i = 0; i < N; i++) {
		fds[i] = client_connect(&f);
		client_send(fds[i], "", 0);
	}
	pid_t writer = fork();
	if (writer == 0) { /* the client's writes block while the server does not read */
		for (uint32_t i = 0; i < N; i++)
			if (fork() == 0) {
				client_call(fds[i], i, 0, len, 0);
				_exit(0);
			}
		_exit(0);
	}
	for (unsigned i = 0; i < 2000; i++) {
		tcp_server_stats(f.srv, &st);
		if (st.waits_memory)
			break;
		usleep(5000);
	}
	cr_expect_gt(st.waits_memory, 0);
	fixture_mode(&f, EXECUTOR_ANSWERS);
	client_ping(small, 2);
	for (uint32_t i = 0; i < N; i++) {
		struct answer a;
		cr_assert_eq(client_answer(fds[i], &a), 1);
		cr_expect_eq(a.xid, i);
		cr_expect_eq(a.sum, call_sum(i, 0, len));
		close(fds[i]);
	}
	client_ping(small, 3);
	close(small);
	fixture_stop(&f);
}

/* A connection that waits for memory is closed: its wait is cancelled. */
Test(tcp_limits, close_while_waiting_for_memory, .timeout = 120)
{
	enum { N = 12 };
	struct fixture f;
	int fds[N];
	static uint8_t part[100000] = { 0x80, 0x0f, 0xff, 0 };

	fixture_start(&f, (struct tcp_config){ .max_connections = 20 }, 9u << 20, AF_INET);
	for (uint32_t i = 0; i < N; i++) {
		fds[i] = client_connect(&f);
		client_send(fds[i], part, sizeof(part));
	}
	usleep(100000);
	for (uint32_t i = 0; i < N / 2; i++)
		close(fds[i]);
	usleep(100000);
	fixture_stop(&f); /* the others are closed while they wait */
	for (uint32_t i = N / 2; i < N; i++)
		close(fds[i]);
}

/* Twelve peers begin records of 1 MiB and stall, with memory for three. Connections that wait
 * behind them must wait for seconds, not minutes. */
Test(tcp_limits, standing_still_while_others_wait, .timeout = 120)
{
	enum { N = 12 };
	const size_t len = (1u << 20) - 100;
	static uint8_t part[100000] = { 0x80, 0x0f, 0xff, 0 };
	struct fixture f;
	struct answer a;
	struct hurry hurry;
	int fds[N];

	fixture_start(&f, (struct tcp_config){ .max_connections = 20 }, 9u << 20, AF_INET);
	for (uint32_t i = 0; i < N; i++) {
		fds[i] = client_connect(&f);
		client_send(fds[i], part, sizeof(part));
	}
	usleep(100000);
	int good = client_connect(&f);
	hurry_start(&hurry, &f);
	client_call(good, 1, 0, len, 0);
	cr_assert_eq(client_answer(good, &a), 1);
	unsigned seconds = hurry_stop(&hurry);
	cr_expect_eq(a.sum, call_sum(1, 0, len));
	cr_expect_lt(seconds, 50, "served after %u s", seconds);
	close(good);
	for (uint32_t i = 0; i < N; i++)
		close(fds[i]);
	fixture_stop(&f);
}

/* Leaves so many buffers of 256 KiB; the others are in *held. */
static unsigned take_all_but(struct fixture *f, unsigned left, struct rn_payload *held[64])
{
	unsigned n = 0;

	while (n < 64 && (held[n] = rn_payload_get(f->pool, 256u << 10)))
		n++;
	cr_assert_gt(n, left);
	cr_assert_lt(n, 64);
	for (; left > 0; left--)
		rn_payload_put(held[--n]);
	return n;
}

static void wait_for_waiters(struct fixture *f, unsigned n)
{
	for (unsigned i = 0; i < 5000 && rn_payload_waiting(f->pool) < n; i++)
		usleep(1000);
	cr_assert_geq(rn_payload_waiting(f->pool), n, "%u wait", rn_payload_waiting(f->pool));
}

/* The time in which there is no memory for its next piece is not the peer's. */
Test(tcp_limits, a_record_in_pieces_waits_for_memory, .timeout = 120)
{
	const size_t len = 600000;
	struct rn_payload *held[64];
	struct fixture f;
	struct answer a;

	fixture_start(&f, (struct tcp_config){ .max_connections = 20 }, 9u << 20, AF_INET);
	unsigned n = take_all_but(&f, 1, held);
	int fd = client_connect(&f);
	client_call(fd, 1, 0, len, 200000);
	wait_for_waiters(&f, 1);
	sleep(2 * TCP_PRESSURE_SECONDS);
	while (n > 0)
		rn_payload_put(held[--n]);
	cr_assert_eq(client_answer(fd, &a), 1, "closed");
	cr_expect_eq(a.sum, call_sum(1, 0, len));
	close(fd);
	fixture_stop(&f);
}

/* Up to 300,000 bytes of a fragment of that length. */
static void begin_fragment(int fd, uint32_t xid, uint32_t len, bool last)
{
	static uint8_t bytes[4 + 300000];
	const uint32_t mark = htonl(len | (last ? 0x80000000u : 0));

	memcpy(bytes, &mark, 4);
	xid = htonl(xid);
	memcpy(bytes + 4, &xid, 4);
	client_send(fd, bytes, 4 + (len < 300000 ? len : 300000));
}

/* Each of eight has a piece and waits for more, and there is no memory: those that began last let
 * go of theirs, and the oldest goes on. */
Test(tcp_limits, records_that_wait_for_each_other, .timeout = 120)
{
	enum { N = 8 };
	static const uint8_t rest[300000];
	struct rn_payload *held[64];
	struct fixture f;
	struct answer a;
	int fds[N];

	signal(SIGPIPE, SIG_IGN);
	fixture_start(&f, (struct tcp_config){ .max_connections = 20, .nloops = 1 }, 13u << 20,
		      AF_INET);
	for (uint32_t i = 0; i < N; i++) {
		fds[i] = client_connect(&f);
		begin_fragment(fds[i], i, 100000, false);
		usleep(20000);
	}
	unsigned n = take_all_but(&f, 0, held);
	for (uint32_t i = 0; i < N; i++)
		begin_fragment(fds[i], i, 600000, true);
	wait_for_waiters(&f, N);
	wait_connections(&f, 1);
	while (n > 0)
		rn_payload_put(held[--n]);
	client_send(fds[0], rest, sizeof(rest));
	cr_expect_eq(client_answer(fds[0], &a), 1, "it was not the oldest that stayed");
	cr_expect_eq(a.len, 700000u);
	for (uint32_t i = 0; i < N; i++)
		close(fds[i]);
	fixture_stop(&f);
}

/* A record has a piece, and waits alone for a large buffer that never comes together: others hold a small
 * part of each slab, with the rest free. */
Test(tcp_limits, a_record_takes_smaller_pieces, .timeout = 120)
{
	static const uint8_t rest[300000];
	struct rn_payload *held[64];
	struct fixture f;
	struct answer a;

	fixture_start(&f, (struct tcp_config){ .max_connections = 20 }, 13u << 20, AF_INET);
	int fd = client_connect(&f);
	begin_fragment(fd, 1, 100000, false);
	usleep(100000);
	unsigned n = take_all_but(&f, 0, held);
	begin_fragment(fd, 1, 600000, true);
	wait_for_waiters(&f, 1);
	for (unsigned i = 0; i < n; i++) {
		if (held[i]->offset != 0) {
			rn_payload_put(held[i]);
			held[i] = NULL;
		}
	}
	cr_expect_eq(rn_payload_waiting(f.pool), 1, "a large buffer came together");
	client_send(fd, rest, sizeof(rest));
	cr_expect_eq(client_answer(fd, &a), 1, "closed");
	cr_expect_eq(a.len, 700000u);
	for (unsigned i = 0; i < n; i++)
		rn_payload_put(held[i]);
	close(fd);
	fixture_stop(&f);
}

/* Nobody else waits for memory, and none is given back: in the end the record lets go of its own. */
Test(tcp_limits, a_record_that_gets_no_memory, .timeout = 120)
{
	struct rn_payload *held[64];
	struct fixture f;
	struct answer a;

	signal(SIGPIPE, SIG_IGN);
	fixture_start(&f, (struct tcp_config){ .max_connections = 20, .stall_seconds = 5 },
		      13u << 20, AF_INET);
	int fd = client_connect(&f);
	begin_fragment(fd, 1, 100000, false);
	usleep(100000);
	unsigned n = take_all_but(&f, 0, held);
	begin_fragment(fd, 1, 600000, true);
	wait_for_waiters(&f, 1);
	cr_expect_eq(client_answer(fd, &a), 0, "not closed");
	cr_expect_eq(rn_payload_waiting(f.pool), 0);
	while (n > 0)
		rn_payload_put(held[--n]);
	close(fd);
	fixture_stop(&f);
}

/* A record that has only begun to arrive holds no payload memory, whatever its announced length. */
Test(tcp_limits, memory_is_given_when_the_data_are_there, .timeout = 120)
{
	enum { N = 12 };
	static uint8_t part[60000] = { 0x80, 0x0f, 0xff, 0 };
	struct rn_payload_stats st;
	struct fixture f;
	int fds[N];

	fixture_start(&f, (struct tcp_config){ .max_connections = 20 }, 64u << 20, AF_INET);
	rn_payload_stats(f.pool, &st);
	const uint64_t before = st.bytes_in_use;
	for (uint32_t i = 0; i < N; i++) {
		fds[i] = client_connect(&f);
		client_send(fds[i], part, sizeof(part));
	}
	usleep(200000);
	rn_payload_stats(f.pool, &st);
	cr_expect_lt(st.bytes_in_use, before + N * 65536u, "%zu bytes", (size_t)st.bytes_in_use);
	for (uint32_t i = 0; i < N; i++)
		close(fds[i]);
	fixture_stop(&f);
}

/* A record that arrives in pieces of any size, with pauses between them, is complete. */
Test(tcp_limits, a_long_record_in_bits, .timeout = 120)
{
	const size_t len = 300000;
	struct fixture f;
	struct answer a;

	fixture_start(&f, (struct tcp_config){ 0 }, BUDGET, AF_INET);
	for (size_t frag = 20000; frag <= len; frag *= 2) {
		int fd = client_connect(&f);
		client_call(fd, 5, 0, len, frag);
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_expect_eq(a.sum, call_sum(5, 0, len));
		close(fd);
	}
	static uint8_t record[70000] = { 0x80, 1, 0x11, 0x6c };
	int fd = client_connect(&f);
	for (size_t at = 0; at < sizeof(record); at += 1400) {
		client_send(fd, record + at, 1400);
		usleep(2000);
	}
	cr_assert_eq(client_answer(fd, &a), 1);
	cr_expect_eq(a.len, sizeof(record) - 4);
	close(fd);
	fixture_stop(&f);
}

/* Reading paused for room, in a send that has the call's head as well. When it goes on, the rest is not there yet. */
Test(tcp_limits, a_long_record_behind_a_pause, .timeout = 120)
{
	static uint8_t record[70000] = { 0x80, 1, 0x11, 0x6c };
	enum { FIRST = 2000 };
	struct fixture f;
	struct answer a;

	fixture_start(&f, (struct tcp_config){ .max_requests = 1 }, BUDGET, AF_INET);
	for (unsigned ends = 0; ends < 2; ends++) {
		static uint8_t both[4 + 12 + FIRST] = { 0x80, 0, 0, 12 };
		int fd = client_connect(&f);

		fixture_mode(&f, EXECUTOR_HOLDS);
		memcpy(both + 16, record, FIRST);
		client_send(fd, both, sizeof(both));
		cr_assert(fixture_wait(&f, 1));
		usleep(50000);
		fixture_mode(&f, EXECUTOR_ANSWERS);
		cr_assert_eq(client_answer(fd, &a), 1);
		cr_expect_eq(a.len, 12);
		usleep(50000);
		if (ends) {
			shutdown(fd, SHUT_WR);
			cr_expect(client_closed(fd), "the end is not seen");
		} else {
			client_send(fd, record + FIRST, sizeof(record) - FIRST);
			cr_assert_eq(client_answer(fd, &a), 1, "the rest is not read");
			cr_expect_eq(a.len, sizeof(record) - 4);
		}
		close(fd);
	}
	fixture_stop(&f);
}

static enum rpc_admission admission;
/* The first connection: whether a record is in hand, and what it waits for. */
static bool in_record;
static enum tcp_pause pause_seen;

static enum rpc_admission tell(void *ctx, struct rpc_conn *conn)
{
	(void)ctx;
	atomic_store(&conn->admission, admission);
	return admission;
}

/* True if a call of that length from a host of that admission is answered; false if its connection
 * is closed. */
static bool gets_answer(enum rpc_admission who, size_t len)
{
	struct fixture f;
	struct answer a;

	admission = who;
	fixture_start(&f, (struct tcp_config){ .admission = tell }, BUDGET, AF_INET);
	signal(SIGPIPE, SIG_IGN);
	int fd = client_connect(&f);
	pid_t writer = fork();
	if (writer == 0) {
		client_call(fd, 5, 0, len, 0);
		_exit(0);
	}
	const bool is = client_answer(fd, &a) == 1;
	close(fd);
	fixture_stop(&f);
	return is;
}

Test(tcp_limits, strangers_send_short_calls_only, .timeout = 120)
{
	cr_expect(gets_answer(RPC_STRANGER, 900));
	cr_expect(gets_answer(RPC_STRANGER, 3000));
	cr_expect_not(gets_answer(RPC_STRANGER, 20000));
	cr_expect(gets_answer(RPC_RECENT, 20000));
	cr_expect_not(gets_answer(RPC_RECENT, 200000));
	cr_expect(gets_answer(RPC_ADMITTED, 200000));
}

/* While the host's admission is unknown, the call waits. */
Test(tcp_limits, a_long_call_waits_until_its_host_is_known, .timeout = 120)
{
	struct fixture f;
	struct answer a;

	admission = RPC_UNKNOWN;
	fixture_start(&f, (struct tcp_config){ .admission = tell }, BUDGET, AF_INET);
	int fd = client_connect(&f);
	client_call(fd, 5, 0, 60000, 0);
	usleep(300000);
	struct tcp_stats st;
	tcp_server_stats(f.srv, &st);
	cr_expect_eq(st.calls, 0);
	admission = RPC_ADMITTED;
	cr_expect_eq(client_answer(fd, &a), 1);
	close(fd);
	fixture_stop(&f);
}

static void look(void *arg)
{
	struct tcp_loop *loop = arg;
	const struct tcp_conn *c = TAILQ_FIRST(&loop->conns);

	in_record = c && c->cur && !turn_waits(&c->turn);
	if (c)
		pause_seen = c->pause;
}

static void wait_in_record(struct fixture *f, enum tcp_pause pause)
{
	in_record = false;
	for (unsigned i = 0; i < 10000 && !(in_record && pause_seen == pause); i++) {
		usleep(1000);
		ev_loop_call(f->srv->loops[0].ev, look, &f->srv->loops[0]);
	}
	cr_assert(in_record && pause_seen == pause);
}

/* The time until the server knows the host does not count against the peer. */
Test(tcp_limits, a_long_call_goes_on_when_its_host_is_known, .timeout = 120)
{
	enum { LEN = 200000, FIRST = 120000 };
	static uint8_t call[4 + LEN];
	const uint32_t mark = htonl(LEN | 0x80000000u);
	struct fixture f;
	struct answer a;

	memcpy(call, &mark, sizeof(mark));
	call[7] = 5; /* xid */
	admission = RPC_UNKNOWN;
	fixture_start(&f, (struct tcp_config){ .admission = tell, .nloops = 1 }, BUDGET, AF_INET);
	int fd = client_connect(&f);
	client_send(fd, call, FIRST);
	wait_in_record(&f, TCP_WAIT_REQUEST);
	let_pass(&f, 2 * 1000 * TCP_PRESSURE_SECONDS);
	admission = RPC_ADMITTED;
	wait_in_record(&f, TCP_GOING);
	let_pass(&f, 100);
	client_send(fd, call + FIRST, sizeof(call) - FIRST);
	cr_assert_eq(client_answer(fd, &a), 1, "closed");
	cr_expect_eq(a.len, LEN);
	close(fd);
	fixture_stop(&f);
}

/* Above the limit, the connections idle longest are closed; one with a request in flight is not. */
Test(tcp_limits, max_connections, .timeout = 120)
{
	enum { MAX = 8 };
	struct hurry hurry;
	struct fixture f;
	struct answer a;
	int fds[MAX];

	fixture_start(&f, (struct tcp_config){ .max_connections = MAX }, BUDGET, AF_INET);
	for (unsigned i = 0; i < MAX; i++) {
		fds[i] = client_connect(&f);
		client_ping(fds[i], i);
	}
	fixture_mode(&f, EXECUTOR_HOLDS);
	client_call(fds[0], 1, 0, 100, 0);
	cr_assert(fixture_wait(&f, 1));
	/* The new connection stays in the backlog until another has been idle for long enough. */
	int late = client_connect(&f);
	client_call(late, 2, 0, 100, 0);
	hurry_start(&hurry, &f);
	cr_assert(fixture_wait(&f, 2));
	hurry_stop(&hurry);
	fixture_mode(&f, EXECUTOR_ANSWERS);
	cr_assert_eq(client_answer(late, &a), 1);
	cr_assert_eq(client_answer(fds[0], &a), 1);
	struct tcp_stats st;
	tcp_server_stats(f.srv, &st);
	cr_expect_leq(st.connections, MAX);
	cr_expect_gt(st.closed_idle, 0);
	close(late);
	for (unsigned i = 0; i < MAX; i++)
		close(fds[i]);
	fixture_stop(&f);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Out of descriptors: new connections are refused, the loop does not spin, existing connections go
 * on, and later new ones are accepted again. */
Test(tcp_limits, out_of_descriptors, .timeout = 120)
{
	enum { N = 20 };
	struct fixture f;
	struct rlimit old, low;
	int fds[N];

	fixture_start(&f, (struct tcp_config){ 0 }, BUDGET, AF_INET);
	int good = client_connect(&f);
	client_ping(good, 1);
	for (unsigned i = 0; i < N; i++)
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	int next = dup(good);
	close(next);
	low.rlim_cur = (rlim_t)next;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(
			connect(fds[i], (struct sockaddr *)&f.addr, sizeof(struct sockaddr_in)), 0);
	double cpu = cpu_seconds();
	sleep(1);
	cpu = cpu_seconds() - cpu;
	cr_expect_lt(cpu, 0.3, "%.2f s of processor time in a second of nothing", cpu);
	client_ping(good, 2);
	struct tcp_stats st;
	tcp_server_stats(f.srv, &st);
	cr_expect_gt(st.refused, 0);
	setrlimit(RLIMIT_NOFILE, &old);
	for (unsigned i = 0; i < N; i++)
		close(fds[i]);
	int fd = client_connect(&f);
	client_ping(fd, 3);
	close(fd);
	close(good);
	fixture_stop(&f);
}
