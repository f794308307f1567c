/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that the server makes to clients, and what clients may do with them. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "rpc/backchannel.h"
#include "tests/unit/tcp_fixture.h"

#define BUDGET (64u << 20)
#define CALL_LEN 100u
#define REPLY_LEN 28u

struct note {
	struct rpc_callback cb;
	sem_t ended;
	int rc;
	uint32_t word;
};

static struct fixture f;
static struct rpc_route route; /* to the client's listener */
static int listener;

/* A listener of the client, on loopback. */
static void begin_with(struct tcp_config cfg, int family)
{
	struct sockaddr_storage sa;
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;
	socklen_t len = sizeof(sa);

	fixture_start(&f, cfg, BUDGET, family);
	sa = f.addr;
	in->sin_port = in6->sin6_port = 0;
	listener = socket(family, SOCK_STREAM, 0);
	cr_assert_geq(listener, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&sa,
			  family == AF_INET ? sizeof(*in) : sizeof(*in6)),
		     0);
	cr_assert_eq(listen(listener, 64), 0);
	getsockname(listener, (struct sockaddr *)&sa, &len);
	memset(&route, 0, sizeof(route));
	route.to = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = in->sin_port };
	if (family == AF_INET6) {
		route.to.sin6_addr = in6->sin6_addr;
	} else {
		memset(route.to.sin6_addr.s6_addr + 10, 0xff, 2);
		memcpy(route.to.sin6_addr.s6_addr + 12, &in->sin_addr, 4);
	}
	route.from = route.to;
}

/* A listener on another address of loopback, with the same port. */
static int listen_at(uint8_t host)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	const struct sockaddr_in sa = { .sin_family = AF_INET,
					.sin_port = route.to.sin6_port,
					.sin_addr.s_addr = htonl(0x7f000000u + host) };

	cr_assert_eq(bind(fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	cr_assert_eq(listen(fd, 64), 0);
	return fd;
}

static void begin(void)
{
	begin_with((struct tcp_config){ 0 }, AF_INET);
}

static void end(void)
{
	close(listener);
	fixture_stop(&f);
}

static struct rpc_backchannel *dial(void)
{
	struct rpc_backchannel *b;

	cr_assert_eq(tcp_server_dial(f.srv, &route, &b), 0);
	return b;
}

static int take(void)
{
	static const struct timeval patience = { 10, 0 };
	const int fd = accept(listener, NULL, NULL);

	cr_assert_geq(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
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
	uint8_t msg[CALL_LEN];

	memset(n, 0, sizeof(*n));
	sem_init(&n->ended, 0, 0);
	n->cb.done = on_done;
	n->cb.due_ns = rn_now_ns() + seconds * RN_NS_PER_SECOND;
	memset(msg, 0, sizeof(msg));
	memset(msg + 40, 'm', sizeof(msg) - 40);
	return rpc_backchannel_call(b, &n->cb, msg, sizeof(msg));
}

/* Waits for the end of the call. */
static int result(struct note *n)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	while (sem_timedwait(&n->ended, &until) < 0)
		cr_assert_eq(errno, EINTR, "the call has not ended");
	return n->rc;
}

static uint32_t read_call(int fd)
{
	uint32_t words[1 + CALL_LEN / 4];

	cr_assert_eq(recv(fd, words, sizeof(words), MSG_WAITALL), sizeof(words));
	cr_expect_eq(ntohl(words[0]), 0x80000000u | CALL_LEN);
	cr_expect_eq(words[2], 0, "no call");
	cr_expect_eq(((uint8_t *)words)[sizeof(words) - 1], 'm');
	return ntohl(words[1]);
}

static void reply(int fd, uint32_t xid)
{
	const uint32_t words[] = {
		htonl(0x80000000u | REPLY_LEN), htonl(xid), htonl(1), 0, 0, 0, 0, htonl(42)
	};

	client_send(fd, words, sizeof(words));
}

static uint64_t connections(void)
{
	struct tcp_stats st;

	tcp_server_stats(f.srv, &st);
	return st.connections;
}

static void await_connections(uint64_t n)
{
	for (unsigned i = 0; connections() != n; i++) {
		cr_assert_lt(i, 30000, "%llu connections", (unsigned long long)connections());
		usleep(1000);
	}
}

/* The peer's end is closed by the server, with what was sent before that. */
static void await_close(int fd)
{
	cr_expect(client_closed(fd));
	close(fd);
}

static void a_call(int family)
{
	struct note n, m;

	begin_with((struct tcp_config){ 0 }, family);
	struct rpc_backchannel *b = dial();
	/* Before it can be established: nobody has accepted it. */
	cr_assert_eq(call(b, &n, 60), 0);
	cr_assert_eq(call(b, &m, 60), 0);
	int fd = take();
	const uint32_t first = read_call(fd), second = read_call(fd);
	cr_expect_eq(second, first + 1);
	reply(fd, second);
	reply(fd, first);
	cr_expect_eq(result(&n), 0);
	cr_expect_eq(result(&m), 0);
	cr_expect_eq(n.word, 42);
	/* And later. */
	cr_assert_eq(call(b, &n, 60), 0);
	reply(fd, read_call(fd));
	cr_expect_eq(result(&n), 0);
	rpc_backchannel_hang_up(b);
	await_close(fd);
	await_connections(0);
	cr_expect_not(rpc_backchannel_is_open(b));
	rpc_backchannel_hang_up(b);
	cr_expect_eq(call(b, &n, 60), -ENOTCONN);
	rpc_backchannel_put(b);
	end();
}

Test(tcp_dial, a_call)
{
	a_call(AF_INET);
}

Test(tcp_dial, ipv6)
{
	a_call(AF_INET6);
}

/* The connection comes from the address that is asked for, and from a port above 1023. */
Test(tcp_dial, the_source)
{
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	struct rpc_backchannel *b;

	begin();
	route.from.sin6_addr.s6_addr[15] = 77;
	b = dial();
	int fd = take();
	cr_assert_eq(getpeername(fd, (struct sockaddr *)&peer, &len), 0);
	cr_expect_eq(ntohl(peer.sin_addr.s_addr), 0x7f00004du);
	cr_expect_geq(ntohs(peer.sin_port), 1024);
	rpc_backchannel_put(b);
	route.from.sin6_family = AF_UNSPEC;
	b = dial();
	rpc_backchannel_put(b);
	/* Not an address of this host (TEST-NET-1). */
	route.from.sin6_family = AF_INET6;
	memcpy(route.from.sin6_addr.s6_addr + 12, (uint8_t[]){ 192, 0, 2, 1 }, 4);
	cr_expect_eq(tcp_server_dial(f.srv, &route, &b), -EADDRNOTAVAIL);
	close(fd);
	end();
}

Test(tcp_dial, nobody_listens)
{
	struct rpc_backchannel *b;
	struct note n;

	begin();
	close(listener);
	/* The refusal comes at any moment. */
	for (unsigned i = 0; i < 20; i++) {
		int rc = tcp_server_dial(f.srv, &route, &b);

		if (rc == 0) {
			rc = call(b, &n, 60);
			if (rc == 0)
				rc = result(&n);
			rpc_backchannel_put(b);
		}
		cr_expect_eq(rc, -ENOTCONN, "%d", rc);
	}
	await_connections(0);
	listener = -1;
	end();
}

Test(tcp_dial, a_silent_client)
{
	struct rpc_backchannel *b;
	struct note n;

	begin();
	b = dial(); /* nobody accepts it */
	cr_assert_eq(call(b, &n, 0), 0);
	cr_expect_eq(result(&n), -ETIMEDOUT);
	rpc_backchannel_hang_up(b);
	await_connections(0);
	rpc_backchannel_put(b);
	end();
}

/* Each row is sent in place of a reply, and ends the connection. */
Test(tcp_dial, hostile_clients)
{
	static const struct {
		const char *name;
		uint32_t words[4];
	} rows[] = {
		{ "a call", { 0x80000000u | 12, 1, 0, 2 } },
		{ "a call in pieces", { 8, 1, 0, 0x80000000u | 4 } },
		{ "a huge record", { 0x80000000u | 0x7fffffff, 1, 1, 0 } },
		{ "a long record", { 0x80000000u | (RPC_CALLBACK_REPLY + 1), 1, 1, 0 } },
		{ "a long record in pieces", { 4, 1, RPC_CALLBACK_REPLY, 0 } },
		{ "neither a call nor a reply", { 0x80000000u | 12, 1, 2, 0 } },
		{ "a short record", { 0x80000000u | 4, 1, 0x80000000u | 4, 1 } },
		{ "HTTP", { 0x48545450, 0x2f312e31, 0x20323030, 0x0d0a0d0a } },
	};

	begin();
	const int other = client_connect(&f);
	for (size_t i = 0; i < rn_array_size(rows); i++) {
		struct rpc_backchannel *b = dial();
		uint32_t words[4];
		struct note n;

		cr_assert_eq(call(b, &n, 60), 0);
		int fd = take();
		read_call(fd);
		for (unsigned w = 0; w < 4; w++)
			words[w] = htonl(rows[i].words[w]);
		client_send(fd, words, sizeof(words));
		cr_expect_eq(result(&n), -ENOTCONN, "%s", rows[i].name);
		await_close(fd);
		rpc_backchannel_put(b);
		client_ping(other, (uint32_t)i);
	}
	await_connections(1);
	close(other);
	end();
}

Test(tcp_dial, a_client_that_closes)
{
	struct rpc_backchannel *b;
	struct note n;

	begin();
	for (unsigned i = 0; i < 4; i++) {
		b = dial();
		cr_assert_eq(call(b, &n, 60), 0);
		int fd = take();
		if (i > 0)
			read_call(fd);
		if (i == 2)
			shutdown(fd, SHUT_WR);
		if (i == 3) /* in the middle of a mark */
			client_send(fd, "\x80", 1);
		if (i != 2)
			close(fd);
		cr_expect_eq(result(&n), -ENOTCONN);
		if (i == 2)
			close(fd);
		rpc_backchannel_put(b);
	}
	await_connections(0);
	end();
}

Test(tcp_dial, idle)
{
	struct rpc_backchannel *b;
	struct note n;

	begin_with((struct tcp_config){ .idle_seconds = 1 }, AF_INET);
	b = dial();
	cr_assert_eq(call(b, &n, 60), 0);
	int fd = take();
	reply(fd, read_call(fd));
	cr_expect_eq(result(&n), 0);
	await_close(fd);
	await_connections(0);
	cr_expect_not(rpc_backchannel_is_open(b));
	rpc_backchannel_put(b);
	end();
}

/* A quarter of 40 connections and one; a client may have as many as are left. */
Test(tcp_dial, limits)
{
	struct rpc_backchannel *b[8], *more;

	begin_with((struct tcp_config){ .max_connections = 40 }, AF_INET);
	const int other = listen_at(9);
	for (unsigned i = 0; i < 6; i++)
		b[i] = dial();
	cr_expect_eq(tcp_server_dial(f.srv, &route, &more), -RN_EFULL);
	/* Another host still gets some. */
	route.to.sin6_addr.s6_addr[15] = 9;
	b[6] = dial();
	b[7] = dial();
	route.to.sin6_addr.s6_addr[15] = 1;
	cr_expect_eq(tcp_server_dial(f.srv, &route, &more), -RN_EFULL);
	for (unsigned i = 0; i < 4; i++) {
		rpc_backchannel_hang_up(b[i]);
		rpc_backchannel_put(b[i]);
	}
	await_connections(4);
	b[0] = dial();
	rpc_backchannel_put(b[0]);
	for (unsigned i = 4; i < 8; i++)
		rpc_backchannel_put(b[i]);
	close(other);
	end();
}

/* Connections that the server makes count among all, and clients are not kept out for them. */
Test(tcp_dial, clients_have_room)
{
	int fds[10];

	begin_with((struct tcp_config){ .max_connections = 10 }, AF_INET);
	for (unsigned i = 0; i < 2; i++)
		rpc_backchannel_put(dial());
	for (unsigned i = 0; i < 8; i++) {
		fds[i] = client_connect(&f);
		client_ping(fds[i], i);
	}
	struct rpc_backchannel *b;
	cr_expect_eq(tcp_server_dial(f.srv, &route, &b), -RN_EFULL);
	fds[8] = client_connect(&f);
	client_ping(fds[8], 8);
	for (unsigned i = 0; i < 9; i++)
		close(fds[i]);
	end();
}

/* Calls, lost interest and the start of a connection, in any order. */
Test(tcp_dial, hanging_up_at_once, .timeout = 120)
{
	struct shaker shaker;

	begin();
	shaker_start(&shaker, &f);
	for (unsigned round = 0; round < 500; round++) {
		struct rpc_backchannel *b = dial();
		struct note n;
		const int rc = round % 3 ? call(b, &n, 60) : -ENOTCONN;

		if (round % 2)
			usleep(round % 7 * 20);
		rpc_backchannel_hang_up(b);
		if (rc == 0)
			cr_expect_eq(result(&n), -ENOTCONN);
		rpc_backchannel_put(b);
		await_close(take());
	}
	shaker_stop(&shaker);
	await_connections(0);
	end();
}

/* The holder of a backchannel may outlive the server's transports. */
Test(tcp_dial, the_server_stops)
{
	struct rpc_backchannel *b, *unused;
	struct note n, m;

	begin();
	b = dial();
	unused = dial();
	cr_assert_eq(call(b, &n, 60), 0);
	end();
	cr_expect_eq(result(&n), -ENOTCONN);
	cr_expect_eq(call(b, &m, 60), -ENOTCONN);
	rpc_backchannel_hang_up(b);
	rpc_backchannel_put(b);
	rpc_backchannel_put(unused);
}
