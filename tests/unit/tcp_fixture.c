/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/tcp_fixture.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/client.h"
#include "transport/tcp/tcp_private.h"

#define ANSWER_WORDS 7

/* Sanitizers look at none of the bytes that are made and summed here: that would take four fifths of the tests' time. */
#define UNSANITIZED __attribute__((no_sanitize("address", "undefined")))

UNSANITIZED static uint32_t sum_bytes(uint32_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 16777619u;
	return sum;
}

static void answer(struct fixture *f, struct rpc_request *r)
{
	uint32_t words[3] = { 0 }, sum = 2166136261u, len = 0;
	struct rpc_seg *last = &r->seg[r->nseg - 1];

	memcpy(words, r->seg[0].base, rn_min(sizeof(words), r->seg[0].len));
	for (unsigned i = 0; i < r->nseg; i++) {
		sum = sum_bytes(sum, r->seg[i].base, r->seg[i].len);
		len += r->seg[i].len;
	}
	xdr_put_u32(&r->out, ntohl(words[0]));
	xdr_put_u32(&r->out, 1);
	xdr_put_u32(&r->out, len);
	xdr_put_u32(&r->out, sum);
	xdr_put_u32(&r->out, r->nseg);
	xdr_put_u32(&r->out, r->seg[0].len);
	xdr_put_u32(&r->out, last->payload && !((uintptr_t)last->base % 4096));
	uint32_t bulk = ntohl(words[2]) & ~BULK_ITEMS(15), items = ntohl(words[2]) >> 28;
	struct rn_payload *p = bulk ? rn_payload_get(f->pool, bulk) : NULL;
	if (p)
		memset(p->data, 'x', bulk);
	for (unsigned i = 0; p && i < items; i++) {
		rn_payload_ref(p);
		xdr_put_bulk(&r->out, p, 0, bulk);
	}
	xdr_put_bulk(&r->out, p, 0, p ? bulk : 0);
	r->conn->ops->reply(r);
}

static void *sink_main(void *arg)
{
	struct fixture *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->stop || f->first) {
		if (!f->first || f->mode == EXECUTOR_HOLDS) {
			pthread_cond_wait(&f->work, &f->lock);
			continue;
		}
		struct rpc_request *r = rn_container_of(f->first, struct rpc_request, node);
		enum sink_mode mode = f->mode;
		f->first = r->node.next;
		if (!f->first)
			f->last = &f->first;
		pthread_mutex_unlock(&f->lock);
		if (mode == EXECUTOR_GARBAGE)
			r->conn->ops->garbage(r);
		else
			answer(f, r);
		pthread_mutex_lock(&f->lock);
		f->waiting--;
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static uint32_t xid_of(const struct rpc_request *r)
{
	uint32_t xid;

	memcpy(&xid, r->seg[0].base, sizeof(xid));
	return ntohl(xid);
}

/* True if the call has been answered here, on the event thread. */
static bool answer_in_place(struct fixture *f, struct rpc_request *r)
{
	pthread_mutex_lock(&f->lock);
	const bool here = f->mode == EXECUTOR_IN_PLACE && xid_of(r) != XID_OTHER_THREAD;
	pthread_mutex_unlock(&f->lock);
	if (!here)
		return false;
	if (xid_of(r) == XID_GATE)
		while (sem_wait(&f->gate) < 0)
			;
	answer(f, r);
	return true;
}

/* True if the call waits for its turn on the event thread. */
static bool answer_later(struct fixture *f, struct rpc_request *r)
{
	const unsigned i = ev_loop_is_current(f->loops[0]) ? 0 : 1;

	pthread_mutex_lock(&f->lock);
	const bool later = f->mode == EXECUTOR_LATER && xid_of(r) != XID_OTHER_THREAD;
	pthread_mutex_unlock(&f->lock);
	if (!later)
		return false;
	ev_loop_keep(f->loops[i], &r->node);
	return true;
}

static void run_later(void *ctx, void *state, struct rn_inbox_node *call)
{
	struct fixture *f = ctx;
	struct rpc_request *r = rn_container_of(call, struct rpc_request, node);

	(void)state;
	if (xid_of(r) == XID_GATE)
		while (sem_wait(&f->gate) < 0)
			;
	answer(f, r);
}

static void executor_submit(void *ctx, struct rpc_request *r)
{
	struct fixture *f = ctx;

	if (answer_in_place(f, r) || answer_later(f, r))
		return;
	pthread_mutex_lock(&f->lock);
	r->node.next = NULL;
	*f->last = &r->node;
	f->last = &r->node.next;
	f->waiting++;
	pthread_cond_signal(&f->work);
	pthread_mutex_unlock(&f->lock);
}

void fixture_mode(struct fixture *f, enum sink_mode mode)
{
	pthread_mutex_lock(&f->lock);
	f->mode = mode;
	pthread_cond_signal(&f->work);
	pthread_mutex_unlock(&f->lock);
}

bool fixture_wait(struct fixture *f, unsigned n)
{
	for (unsigned i = 0; i < 10000; i++) {
		pthread_mutex_lock(&f->lock);
		bool there = f->waiting == n;
		pthread_mutex_unlock(&f->lock);
		if (there)
			return true;
		usleep(1000);
	}
	return false;
}

void fixture_start(struct fixture *f, struct tcp_config cfg, size_t budget, int family)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *sa = family == AF_INET ? (void *)&in4 : (void *)&in6;
	const struct ev_calls calls = { .run = run_later, .ctx = f };

	memset(f, 0, sizeof(*f));
	f->last = &f->first;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	sem_init(&f->gate, 0, 0);
	rn_budget_init(&f->budget, budget);
	f->pool = rn_payload_pool_new(&f->budget);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(ev_loop_new("test-loop", &calls, &f->loops[i]), 0);
	cfg.loops = f->loops;
	cfg.nloops = cfg.nloops ? cfg.nloops : 2;
	cfg.executor = (struct rpc_executor){ executor_submit, f };
	f->clients = rpc_clients_new();
	cr_assert_not_null(f->clients);
	cfg.clients = f->clients;
	cfg.pool = f->pool;
	cfg.budget = &f->budget;
	cfg.max_record = cfg.max_record ? cfg.max_record : (1u << 20) + 4096;
	cfg.max_connections = cfg.max_connections ? cfg.max_connections : 100;
	cfg.max_requests = cfg.max_requests ? cfg.max_requests : 16;
	cr_assert_eq(tcp_server_new(&cfg, &f->srv), 0);
	int err = tcp_server_listen(f->srv, sa, family == AF_INET ? sizeof(in4) : sizeof(in6),
				    &f->addr);
	if (err && family == AF_INET6)
		cr_skip_test("no IPv6 here");
	cr_assert_eq(err, 0);
	cr_assert_eq(pthread_create(&f->worker, NULL, sink_main, f), 0);
}

void fixture_stop(struct fixture *f)
{
	struct rn_payload_stats st;

	tcp_server_free(f->srv);
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->work);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->worker, NULL);
	for (unsigned i = 0; i < 2; i++)
		ev_loop_free(f->loops[i]);
	rn_payload_stats(f->pool, &st);
	cr_expect_eq(st.buffers_in_use, 0, "buffers leaked");
	cr_expect_eq(rpc_clients_count(f->clients), 0);
	rpc_clients_free(f->clients);
	rn_payload_pool_free(f->pool);
	cr_expect_eq(f->budget.used, 0, "budget leaked");
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->work);
	sem_destroy(&f->gate);
}

struct wish {
	struct tcp_loop *loop;
	uint64_t id;
	bool done;
};

static void on_wish(void *arg)
{
	struct wish *w = arg;
	struct tcp_conn *c;

	if (w->loop->leaving)
		return;
	TAILQ_FOREACH_REVERSE (c, &w->loop->conns, tcp_conn_list, link) {
		if ((w->id != ANY_CONN && c->rpc.id != w->id + 1) || !tcp_move_may(c))
			continue;
		tcp_move_begin(c, &w->loop->srv->loops[1 - w->loop->index]);
		w->done = true;
		return;
	}
}

bool fixture_wish(struct fixture *f, unsigned loop, uint64_t id)
{
	struct wish w = { .loop = &f->srv->loops[loop], .id = id };

	ev_loop_call(w.loop->ev, on_wish, &w);
	return w.done;
}

uint64_t fixture_moved(struct fixture *f)
{
	struct tcp_stats st;

	tcp_server_stats(f->srv, &st);
	return st.moved;
}

void fixture_move(struct fixture *f, uint64_t id)
{
	const uint64_t before = fixture_moved(f);

	for (unsigned i = 0; fixture_moved(f) == before; i++) {
		cr_assert_lt(i, 10000, "connection %llu does not move", (unsigned long long)id);
		if (!fixture_wish(f, i % 2, id))
			usleep(1000);
	}
}

static void *shake(void *arg)
{
	struct shaker *s = arg;

	while (!atomic_load(&s->stop)) {
		for (unsigned i = 0; i < 2; i++)
			fixture_wish(s->f, i, ANY_CONN);
		usleep(100);
	}
	return NULL;
}

void shaker_start(struct shaker *s, struct fixture *f)
{
	*s = (struct shaker){ .f = f };
	cr_assert_eq(pthread_create(&s->thread, NULL, shake, s), 0);
}

void shaker_stop(struct shaker *s)
{
	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
}

int client_connect(struct fixture *f)
{
	static const struct timeval patience = { 10, 0 };
	int fd = socket(f->addr.ss_family, SOCK_STREAM, 0);

	cr_assert_geq(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	cr_assert_eq(connect(fd, (struct sockaddr *)&f->addr,
			     f->addr.ss_family == AF_INET ? sizeof(struct sockaddr_in)
							  : sizeof(struct sockaddr_in6)),
		     0, "connect: %s", strerror(errno));
	return fd;
}

void client_send(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return; /* the client will miss the answer and fail the test */
		p = (const uint8_t *)p + sent;
		n -= (size_t)sent;
	}
}

UNSANITIZED static uint8_t *make_call(uint32_t xid, uint32_t bulk, size_t len)
{
	uint8_t *p = malloc(len);
	uint32_t words[3] = { htonl(xid), 0, htonl(bulk) };

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + xid);
	memcpy(p, words, sizeof(words));
	return p;
}

void client_call(int fd, uint32_t xid, uint32_t bulk, size_t len, size_t frag)
{
	uint8_t *call = make_call(xid, bulk, len);
	size_t step = frag ? frag : len;
	uint8_t *buf = malloc(len + 4 * (len / step + 1));
	size_t n = 0;

	for (size_t at = 0; at < len; at += step) {
		size_t take = rn_min(step, len - at);
		uint32_t mark = htonl((uint32_t)take | (at + take == len ? 0x80000000u : 0));
		memcpy(buf + n, &mark, 4);
		memcpy(buf + n + 4, call + at, take);
		n += 4 + take;
	}
	client_send(fd, buf, n);
	free(buf);
	free(call);
}

uint32_t call_sum(uint32_t xid, uint32_t bulk, size_t len)
{
	uint8_t *call = make_call(xid, bulk, len);
	uint32_t sum = sum_bytes(2166136261u, call, len);

	free(call);
	return sum;
}

static bool read_all(int fd, void *p, size_t n)
{
	while (n) {
		ssize_t got = recv(fd, p, n, 0);
		cr_assert(got >= 0 || errno == ECONNRESET, "recv: %s", strerror(errno));
		if (got <= 0)
			return false;
		p = (uint8_t *)p + got;
		n -= (size_t)got;
	}
	return true;
}

int client_answer(int fd, struct answer *a)
{
	uint32_t mark, w[ANSWER_WORDS + 1];

	if (!read_all(fd, &mark, 4))
		return 0;
	cr_assert(read_all(fd, w, sizeof(w)));
	*a = (struct answer){ ntohl(w[0]), ntohl(w[1]), ntohl(w[2]),
			      ntohl(w[3]), ntohl(w[4]), ntohl(w[5]),
			      ntohl(w[6]), ntohl(w[7]), 1 };
	cr_assert(ntohl(mark) & 0x80000000u);
	size_t left = (ntohl(mark) & 0x7fffffffu) - sizeof(w);
	const uint32_t len = a->bulk_len, pad = rn_xdr_pad(len);
	uint8_t *bulk = malloc(len + pad + 4u);
	for (;; a->bulks++) {
		cr_assert_geq(left, len + pad);
		left -= len + pad;
		/* The length word of the next item follows. */
		cr_assert(read_all(fd, bulk, len + pad + (left ? 4 : 0)));
		for (size_t i = 0; i < len + pad; i++)
			cr_assert_eq(bulk[i], i < len ? 'x' : 0, "bulk byte %zu", i);
		if (!left)
			break;
		memcpy(&mark, bulk + len + pad, 4);
		cr_assert_eq(ntohl(mark), len);
		left -= 4;
	}
	free(bulk);
	return 1;
}

void client_ping(int fd, uint32_t xid)
{
	struct answer a;

	client_call(fd, xid, 0, 100, 0);
	cr_assert_eq(client_answer(fd, &a), 1, "closed");
	cr_assert_eq(a.xid, xid);
	cr_assert_eq(a.len, 100);
	cr_assert_eq(a.sum, call_sum(xid, 0, 100));
}

bool client_closed(int fd)
{
	uint8_t buf[65536];

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return true;
		if (n < 0)
			return false;
	}
}
