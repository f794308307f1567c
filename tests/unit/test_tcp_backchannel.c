/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls to clients over TCP, and what clients may send in place of a reply. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/backchannel.h"
#include "tests/unit/tcp_fixture.h"

#define BUDGET (64u << 20)

struct note {
	struct rpc_callback cb;
	sem_t ended;
	int rc;
	uint32_t word;
};

static struct fixture f;

static void begin(void)
{
	fixture_start(&f, (struct tcp_config){ 0 }, BUDGET, AF_INET);
}

static void end(int fd)
{
	close(fd);
	fixture_stop(&f);
}

static uint64_t strays(void)
{
	struct tcp_stats st;

	tcp_server_stats(f.srv, &st);
	return st.stray_replies;
}

/* Connects; *b is the backchannel of that connection. */
static int connect_back(struct rpc_backchannel **b)
{
	int fd = client_connect(&f);
	struct answer a;

	cr_assert(fixture_wait(&f,
			       0)); /* that of an earlier connection counts until it is answered */
	fixture_mode(&f, EXECUTOR_HOLDS);
	client_call(fd, 1, 0, 100, 0);
	cr_assert(fixture_wait(&f, 1));
	pthread_mutex_lock(&f.lock);
	*b = rpc_backchannel_get(rn_container_of(f.first, struct rpc_request, node)->conn);
	pthread_mutex_unlock(&f.lock);
	cr_assert_not_null(*b);
	fixture_mode(&f, EXECUTOR_ANSWERS);
	cr_assert_eq(client_answer(fd, &a), 1);
	return fd;
}

static void on_done(struct rpc_callback *cb, int rc, struct xdr_in *results)
{
	struct note *n = rn_container_of(cb, struct note, cb);

	n->rc = rc;
	if (results)
		n->word = xdr_get_u32(results);
	sem_post(&n->ended);
}

static int call(struct rpc_backchannel *b, struct note *n, unsigned seconds)
{
	uint8_t msg[RPC_CALLBACK_SIZE] = { 0 };

	memset(n, 0, sizeof(*n));
	sem_init(&n->ended, 0, 0);
	n->cb.done = on_done;
	n->cb.due_ns = rn_now_ns() + seconds * RN_NS_PER_SECOND;
	memset(msg + 40, 'm', sizeof(msg) - 40);
	return rpc_backchannel_call(b, &n->cb, msg, sizeof(msg));
}

/* Waits for the end of the call. */
static int result(struct note *n)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	while (sem_timedwait(&n->ended, &until) < 0)
		cr_assert_eq(errno, EINTR, "the call has not ended");
	return n->rc;
}

static bool has_ended(struct note *n)
{
	return sem_trywait(&n->ended) == 0;
}

/* Reads a call from the server; returns its xid. */
static uint32_t read_call(int fd)
{
	uint32_t words[1 + RPC_CALLBACK_SIZE / 4];
	size_t got = 0;

	while (got < sizeof(words)) {
		ssize_t n = recv(fd, (uint8_t *)words + got, sizeof(words) - got, 0);
		cr_assert_gt(n, 0);
		got += (size_t)n;
	}
	cr_expect_eq(ntohl(words[0]), 0x80000000u | RPC_CALLBACK_SIZE);
	cr_expect_eq(words[2], 0, "no call");
	cr_expect_eq(((uint8_t *)words)[sizeof(words) - 1], 'm');
	return ntohl(words[1]);
}

/* Sends a reply of len bytes: an accepted success, 42, and zeros. */
static void reply(int fd, uint32_t xid, size_t len)
{
	static uint32_t words[1 + 4096];
	const uint32_t head[] = { 0x80000000u | (uint32_t)len, xid, 1, 0, 0, 0, 0, 42 };

	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < rn_array_size(head); i++)
		words[i] = htonl(head[i]);
	client_send(fd, words, 4 + len);
}

#define REPLY_LEN 28u

Test(tcp_backchannel, a_call_is_answered_among_calls)
{
	struct rpc_backchannel *b;
	struct note n, m;

	begin();
	int fd = connect_back(&b);
	cr_assert_eq(call(b, &n, 60), 0);
	cr_assert_eq(call(b, &m, 60), 0);
	uint32_t first = read_call(fd), second = read_call(fd);
	cr_expect_eq(first, n.cb.xid);
	cr_expect_eq(second, m.cb.xid);
	client_ping(fd, 5);
	reply(fd, second, REPLY_LEN);
	reply(fd, first, RPC_CALLBACK_REPLY);
	client_ping(fd, 6);
	cr_expect_eq(result(&n), 0);
	cr_expect_eq(result(&m), 0);
	cr_expect_eq(n.word, 42);
	cr_expect_eq(strays(), 0);
	rpc_backchannel_put(b);
	end(fd);
}

/* Security that makes of a call the first one of a context, with a long ticket. */
static uint32_t auth_seq(struct rpc_cb_auth *s)
{
	(void)s;
	return 0;
}

static uint32_t auth_long(struct rpc_cb_auth *s, uint32_t number, const struct rpc_seg *msg,
			  struct rpc_seg *out)
{
	(void)s;
	(void)number;
	memset(out->base, 't', out->len);
	memcpy(out->base, msg->base, 40);
	return out->len;
}

static bool auth_verify(struct rpc_cb_auth *s, uint32_t number, const uint8_t *verf, uint32_t len)
{
	(void)s;
	(void)number;
	(void)verf;
	return len == 0;
}

static void auth_destroy(struct rpc_cb_auth *s)
{
	(void)s;
}

static const struct rpc_cb_auth_ops auth_ops = {
	.seq = auth_seq, .wrap = auth_long, .verify = auth_verify, .destroy = auth_destroy
};

Test(tcp_backchannel, a_call_under_a_context_may_be_longer_than_others)
{
	static uint8_t got[4 + RPC_CALLBACK_AUTH_SIZE];
	struct rpc_cb_auth auth = { .ops = &auth_ops, .refs = 1 };
	struct rpc_backchannel *b;
	struct note n;

	begin();
	int fd = connect_back(&b);
	uint8_t msg[RPC_CALLBACK_SIZE] = { 0 };
	memset(&n, 0, sizeof(n));
	sem_init(&n.ended, 0, 0);
	n.cb.done = on_done;
	n.cb.due_ns = rn_now_ns() + 60 * RN_NS_PER_SECOND;
	n.cb.auth = &auth;
	cr_assert_gt(RPC_CALLBACK_AUTH_SIZE, RPC_CALLBACK_SIZE);
	cr_assert_eq(rpc_backchannel_call(b, &n.cb, msg, sizeof(msg)), 0);
	cr_assert_eq(recv(fd, got, sizeof(got), MSG_WAITALL), (ssize_t)sizeof(got));
	uint32_t mark;
	memcpy(&mark, got, sizeof(mark));
	cr_expect_eq(ntohl(mark), 0x80000000u | RPC_CALLBACK_AUTH_SIZE);
	cr_expect_eq(got[44], 't');
	cr_expect_eq(got[sizeof(got) - 1], 't');
	rpc_backchannel_put(b);
	end(fd);
}

/* The connection moves between event threads, and calls are made at any moment of that. */
Test(tcp_backchannel, calls_over_a_connection_that_moves, .timeout = 120)
{
	struct rpc_backchannel *b;
	struct shaker shaker;
	struct note notes[4];
	uint32_t xids[4];
	const int on = 1;

	begin();
	int fd = connect_back(&b);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* replies go one by one */
	shaker_start(&shaker, &f);
	for (unsigned round = 0; round < 2000; round++) {
		for (unsigned i = 0; i < 4; i++)
			cr_assert_eq(call(b, &notes[i], 60), 0);
		for (unsigned i = 0; i < 4; i++)
			xids[i] = read_call(fd);
		for (unsigned i = 0; i < 4; i++)
			reply(fd, xids[i], REPLY_LEN);
		for (unsigned i = 0; i < 4; i++) {
			cr_assert_eq(result(&notes[i]), 0);
			cr_assert_eq(notes[i].word, 42);
		}
	}
	shaker_stop(&shaker);
	cr_expect_gt(fixture_moved(&f), 20);
	cr_expect_eq(strays(), 0);
	rpc_backchannel_put(b);
	end(fd);
}

Test(tcp_backchannel, stray_replies_are_dropped_and_counted)
{
	struct rpc_backchannel *b, *o;
	struct note n, m;

	begin();
	int fd = connect_back(&b), other = connect_back(&o);
	cr_assert_eq(call(b, &n, 60), 0);
	cr_assert_eq(call(o, &m, 60), 0);
	uint32_t xid = read_call(fd);
	read_call(other);
	reply(fd, xid + 1, REPLY_LEN);
	/* Another connection answers the call of the first. */
	reply(other, xid, REPLY_LEN);
	client_ping(other, 7);
	client_ping(fd, 8);
	cr_expect_eq(strays(), 2);
	cr_expect_not(has_ended(&n));
	reply(fd, xid, REPLY_LEN);
	reply(fd, xid, REPLY_LEN);
	cr_expect_eq(result(&n), 0);
	client_ping(fd, 9);
	cr_expect_eq(strays(), 3);
	cr_expect_not(has_ended(&n));
	cr_expect_not(has_ended(&m));
	rpc_backchannel_put(b);
	rpc_backchannel_put(o);
	close(other);
	cr_expect_eq(result(&m), -ENOTCONN);
	end(fd);
}

Test(tcp_backchannel, a_reply_nobody_asked_for_ends_the_connection)
{
	begin();
	int fd = client_connect(&f);
	reply(fd, 1, REPLY_LEN);
	cr_expect(client_closed(fd));
	end(fd);
}

Test(tcp_backchannel, a_long_reply_ends_the_connection)
{
	struct rpc_backchannel *b;
	struct note n;

	begin();
	int fd = connect_back(&b);
	cr_assert_eq(call(b, &n, 60), 0);
	reply(fd, read_call(fd), RPC_CALLBACK_REPLY + 4);
	cr_expect(client_closed(fd));
	cr_expect_eq(result(&n), -ENOTCONN);
	cr_expect_not(rpc_backchannel_is_open(b));
	rpc_backchannel_put(b);
	end(fd);
}

Test(tcp_backchannel, garbage_ends_the_call)
{
	struct rpc_backchannel *b;
	struct note n;

	begin();
	int fd = connect_back(&b);
	cr_assert_eq(call(b, &n, 60), 0);
	const uint32_t words[] = { htonl(0x80000000u | 12), htonl(read_call(fd)), htonl(1),
				   htonl(9) };
	client_send(fd, words, sizeof(words));
	cr_expect_eq(result(&n), -EPROTO);
	client_ping(fd, 5);
	rpc_backchannel_put(b);
	end(fd);
}

Test(tcp_backchannel, no_reply)
{
	struct rpc_backchannel *b;
	struct note n;

	begin();
	int fd = connect_back(&b);
	cr_assert_eq(call(b, &n, 0), 0);
	uint32_t xid = read_call(fd);
	cr_expect_eq(result(&n), -ETIMEDOUT);
	reply(fd, xid, REPLY_LEN);
	client_ping(fd, 5);
	cr_expect_eq(strays(), 1);
	cr_expect_not(has_ended(&n));
	rpc_backchannel_put(b);
	end(fd);
}

Test(tcp_backchannel, the_client_goes)
{
	struct rpc_backchannel *b;
	struct note n, m;

	begin();
	int fd = connect_back(&b);
	cr_assert_eq(call(b, &n, 60), 0);
	read_call(fd);
	shutdown(fd, SHUT_WR);
	cr_expect_eq(result(&n), -ENOTCONN);
	cr_expect_eq(call(b, &m, 60), -ENOTCONN);
	close(fd);
	rpc_backchannel_put(b);
	/* In the middle of a reply. */
	fd = connect_back(&b);
	cr_assert_eq(call(b, &n, 60), 0);
	const uint32_t part[] = { htonl(0x80000000u | REPLY_LEN), htonl(read_call(fd)), htonl(1) };
	client_send(fd, part, sizeof(part));
	close(fd);
	cr_expect_eq(result(&n), -ENOTCONN);
	rpc_backchannel_put(b);
	fixture_stop(&f);
}

/* The holder of a backchannel may outlive the server's transports. */
Test(tcp_backchannel, the_server_stops)
{
	struct rpc_backchannel *b;
	struct note n, m;

	begin();
	int fd = connect_back(&b);
	cr_assert_eq(call(b, &n, 60), 0);
	end(fd);
	cr_expect_eq(result(&n), -ENOTCONN);
	cr_expect_eq(call(b, &m, 60), -ENOTCONN);
	rpc_backchannel_put(b);
}
