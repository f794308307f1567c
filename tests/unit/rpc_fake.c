/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/rpc_fake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/clock.h"
#include "lib/fiber.h"
#include "lib/util.h"

static void record(struct fake_conn *c, const struct xdr_out *out)
{
	c->reply_len = xdr_out_total(out);
	if (c->reply_len <= sizeof(c->reply))
		xdr_out_copy(out, c->reply);
}

static void take_back(struct rpc_request *req)
{
	struct rpc_conn *conn = req->conn;

	rpc_request_free(req);
	rpc_conn_put(conn);
}

static void op_reply(struct rpc_request *req)
{
	struct fake_conn *c = (struct fake_conn *)req->conn;

	c->replies++;
	record(c, &req->out);
	take_back(req);
}

static void op_drop(struct rpc_request *req)
{
	((struct fake_conn *)req->conn)->drops++;
	take_back(req);
}

static void op_too_long(struct rpc_request *req)
{
	((struct fake_conn *)req->conn)->too_longs++;
	take_back(req);
}

static void op_garbage(struct rpc_request *req)
{
	((struct fake_conn *)req->conn)->garbage++;
	take_back(req);
}

static void op_destroy(struct rpc_conn *conn)
{
	((struct fake_conn *)conn)->destroyed++;
}

static const struct rpc_conn_ops fake_ops = {
	.netid = "tcp",
	.reliable = true,
	.keeps_port = true,
	.reply = op_reply,
	.drop = op_drop,
	.too_long = op_too_long,
	.garbage = op_garbage,
	.destroy = op_destroy,
};

static const struct rpc_conn_ops fake_rdma_ops = {
	.netid = "rdma",
	.reliable = true,
	.reply = op_reply,
	.drop = op_drop,
	.too_long = op_too_long,
	.garbage = op_garbage,
	.destroy = op_destroy,
};

static const struct rpc_conn_ops fake_udp_ops = {
	.netid = "udp",
	.keeps_port = true,
	.datagrams = true,
	.reply = op_reply,
	.drop = op_drop,
	.too_long = op_too_long,
	.garbage = op_garbage,
	.destroy = op_destroy,
};

struct echo_args {
	const uint8_t *data;
	uint32_t len;
};

static bool get_echo(struct xdr_in *in, void *args)
{
	struct echo_args *a = args;

	a->data = xdr_get_opaque(in, 64, &a->len);
	return true; /* dispatch reads the cursor's error */
}

static bool get_word(struct xdr_in *in, void *args)
{
	*(uint32_t *)args = xdr_get_u32(in);
	return true;
}

static bool get_bulk(struct xdr_in *in, void *args)
{
	xdr_get_bulk(in, 4096, args);
	return true;
}

static enum rpc_run run_echo(struct rpc_request *req, void *args)
{
	const struct echo_args *a = args;

	xdr_put_opaque(&req->out, a->data, a->len);
	return RPC_RUN_DONE;
}

static enum rpc_run run_count(struct rpc_request *req, void *args)
{
	struct fake *f = req->program_ctx;

	(void)args;
	xdr_put_u32(&req->out, ++f->count);
	return RPC_RUN_DONE;
}

static enum rpc_run run_bulk(struct rpc_request *req, void *args)
{
	struct fake *f = req->program_ctx;
	const uint32_t n = *(uint32_t *)args;
	struct rn_payload *p = rn_payload_get(f->pool, n);

	if (p == NULL)
		return RPC_RUN_SYSTEM_ERR;
	memset(p->data, 'b', n);
	xdr_put_bulk(&req->out, p, 0, n);
	xdr_put_u32(&req->out, 7);
	return RPC_RUN_DONE;
}

static enum rpc_run run_long(struct rpc_request *req, void *args)
{
	const uint32_t n = *(uint32_t *)args;

	/* If the grown head is still too small, xdr_reserve() sets the overflow that dispatch
	 * checks. */
	rpc_reply_grow(req, (size_t)n + 3);
	uint8_t *p = xdr_reserve(&req->out, n);
	if (p != NULL)
		memset(p, 0, n);
	return RPC_RUN_DONE;
}

static enum rpc_run run_pending(struct rpc_request *req, void *args)
{
	struct fake *f = req->program_ctx;

	f->pending = req;
	f->count++;
	xdr_put_u32(&req->out, *(uint32_t *)args);
	pthread_mutex_lock(&f->lock);
	rpc_wait(req, RN_WAIT_CALL, req, 0, &f->lock);
	return f->how;
}

static enum rpc_run run_how(struct rpc_request *req, void *args)
{
	struct fake *f = req->program_ctx;

	f->count++;
	xdr_put_u32(&req->out, 1);
	return *(uint32_t *)args % (RPC_RUN_AUTH_BADCRED + 1);
}

static enum rpc_run run_store(struct rpc_request *req, void *args)
{
	const struct xdr_bulk *b = args;
	uint32_t sum = 0;

	for (unsigned i = 0; i < b->npieces; i++) {
		for (size_t j = 0; j < b->piece[i].iov_len; j++)
			sum += ((const uint8_t *)b->piece[i].iov_base)[j];
	}
	xdr_put_u32(&req->out, b->len);
	xdr_put_u32(&req->out, sum);
	return RPC_RUN_DONE;
}

/* Decodes its argument, a word with or without a chunk, only when it runs. */
static enum rpc_run run_rest(struct rpc_request *req, void *args)
{
	struct xdr_bulk b;

	(void)args;
	xdr_get_bulk(&req->in, 4, &b);
	xdr_put_u32(&req->out, b.len);
	((struct fake *)req->program_ctx)->count++;
	return RPC_RUN_DONE;
}

/* Cacheable only if the call has data. */
static bool rest_is_cacheable(const struct rpc_request *req, const void *args)
{
	struct xdr_in in = req->in;

	(void)args;
	return xdr_get_u32(&in) > 0;
}

static const struct rpc_proc rows[FAKE_PROCS] = {
	[FAKE_NULL] = { .name = "NULL" },
	[FAKE_ECHO] = { .name = "ECHO",
			.decode = get_echo,
			.args_size = sizeof(struct echo_args),
			.run = run_echo },
	[FAKE_COUNT] = { .name = "COUNT",
			 .decode = get_word,
			 .args_size = 4,
			 .run = run_count,
			 .flags = RPC_NONIDEMPOTENT,
			 .reply_size = 4 },
	[FAKE_REST] = { .name = "REST",
			.run = run_rest,
			.flags = RPC_NONIDEMPOTENT | RPC_RUN_DECODES,
			.reply_size = 4,
			.cacheable = rest_is_cacheable },
	[FAKE_BULK] = { .name = "BULK",
			.decode = get_word,
			.args_size = 4,
			.run = run_bulk,
			.flags = RPC_EVENT_THREAD },
	[FAKE_LONG] = { .name = "LONG", .decode = get_word, .args_size = 4, .run = run_long },
	[FAKE_PENDING] = { .name = "PENDING",
			   .decode = get_word,
			   .args_size = 4,
			   .run = run_pending,
			   .flags = RPC_NONIDEMPOTENT,
			   .reply_size = 4 },
	[FAKE_HOW] = { .name = "HOW",
		       .decode = get_word,
		       .args_size = 4,
		       .run = run_how,
		       .flags = RPC_NONIDEMPOTENT },
	[FAKE_GIVE] = { .name = "GIVE", .run = run_count, .flags = RPC_FOR_RECENT },
	[FAKE_ASK] = { .name = "ASK", .run = run_count, .flags = RPC_FOR_ALL },
	[FAKE_LIST] = { .name = "LIST", .run = run_count, .flags = RPC_NO_EXPORT },
	[FAKE_STORE] = { .name = "STORE",
			 .decode = get_bulk,
			 .args_size = sizeof(struct xdr_bulk),
			 .run = run_store },
};

#define POINTER(proc) [proc] = &rows[proc]
static const struct rpc_proc *const procs[FAKE_PROCS] = {
	POINTER(FAKE_NULL), POINTER(FAKE_ECHO), POINTER(FAKE_COUNT),   POINTER(FAKE_REST),
	POINTER(FAKE_BULK), POINTER(FAKE_LONG), POINTER(FAKE_PENDING), POINTER(FAKE_HOW),
	POINTER(FAKE_GIVE), POINTER(FAKE_ASK),	POINTER(FAKE_LIST),    POINTER(FAKE_STORE),
};

static const struct rpc_version versions[] = {
	{ 2, procs, FAKE_PROCS, NULL },
	{ 4, procs, FAKE_PROCS, NULL },
};

static enum rpc_admission admission(void *ctx, struct rpc_conn *conn)
{
	(void)conn;
	return ((struct fake *)ctx)->admission;
}

static void observe(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error)
{
	struct fake *f = ctx;

	(void)req;
	(void)elapsed_ns;
	f->observed++;
	f->errors += error;
}

void fake_init(struct fake *f, size_t drc_entries)
{
	memset(f, 0, sizeof(*f));
	rn_budget_init(&f->budget, 16 * (size_t)RN_SLAB_SIZE);
	f->pool = rn_payload_pool_new(&f->budget);
	f->server.programs[0] = (struct rpc_program){
		.prog = FAKE_PROG,
		.name = "FAKE",
		.versions = versions,
		.nversions = 2,
		.ctx = f,
	};
	f->server.nprograms = 1;
	f->admission = RPC_ADMITTED;
	f->server.admission = admission;
	f->server.admission_ctx = f;
	f->server.pool = f->pool;
	f->server.drc = drc_entries > 0 ? drc_new(drc_entries, drc_entries * 1024) : NULL;
	f->server.observe = observe;
	f->server.observe_ctx = f;
	rn_inbox_init(&f->worker.inbox);
	f->worker.stacks = rn_stacks_new(&f->budget, 4);
	pthread_mutex_init(&f->lock, NULL);
	if (rpc_waits_new(NULL, &f->server.waits) != 0)
		abort();
}

unsigned fake_leaks(struct fake *f)
{
	struct rn_payload_stats stats;

	rn_payload_stats(f->pool, &stats);
	return (unsigned)stats.buffers_in_use;
}

void fake_fini(struct fake *f)
{
	rpc_waits_free(f->server.waits);
	pthread_mutex_destroy(&f->lock);
	drc_free(f->server.drc);
	rn_inbox_fini(&f->worker.inbox);
	rn_fiber_put(f->worker.spare);
	rn_stacks_free(f->worker.stacks);
	rn_payload_pool_free(f->pool);
}

void fake_conn_init(struct fake_conn *c, unsigned id, uint8_t host, uint16_t port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&c->base.peer;

	memset(c, 0, sizeof(*c));
	c->base.ops = &fake_ops;
	c->base.id = id;
	atomic_init(&c->base.refs, 1);
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(0x0a000000u | host);
	sin->sin_port = htons(port);
}

void fake_conn_rdma(struct fake_conn *c, unsigned id, uint8_t host, uint16_t port)
{
	fake_conn_init(c, id, host, port);
	c->base.ops = &fake_rdma_ops;
}

void fake_conn_udp(struct fake_conn *c, unsigned id, uint8_t host, uint16_t port)
{
	fake_conn_init(c, id, host, port);
	c->base.ops = &fake_udp_ops;
}

void fake_call(struct xdr_out *x, uint32_t xid, uint32_t proc)
{
	const uint32_t cred[] = { 1, 4, 0x686f7374, 1000, 100, 2, 4, 24 };
	const uint32_t header[] = { xid, RPC_CALL, RPC_VERSION,	 FAKE_PROG,
				    4,	 proc,	   RPC_AUTH_SYS, sizeof(cred) };

	for (unsigned i = 0; i < rn_array_size(header); i++)
		xdr_put_u32(x, header[i]);
	for (unsigned i = 0; i < rn_array_size(cred); i++)
		xdr_put_u32(x, cred[i]);
	xdr_put_u64(x, 0); /* verifier */
}

struct rpc_request *fake_request(struct fake *f, struct fake_conn *c, const struct xdr_out *call)
{
	struct rpc_request *req = rpc_request_new(f->pool);

	if (req == NULL)
		abort();
	rpc_conn_ref(&c->base);
	req->conn = &c->base;
	req->server = &f->server;
	req->worker = &f->worker;
	req->seg[0] = (struct rpc_seg){ .base = call->base, .len = (uint32_t)call->used };
	req->nseg = 1;
	req->reply_max = sizeof(c->reply);
	req->arrived_ns = rn_now_ns();
	return req;
}

static void run(struct rpc_request *req)
{
	if (!rpc_is_ready(req->worker))
		abort();
	rpc_run(req);
}

void fake_begin(struct fake *f, struct rpc_request *req)
{
	req->server = &f->server;
	req->work = rpc_dispatch;
	run(req);
}

void fake_dispatch(struct fake *f, struct fake_conn *c, const struct xdr_out *call)
{
	fake_begin(f, fake_request(f, c, call));
}

unsigned fake_run_inbox(struct fake *f)
{
	struct rn_inbox_node *node = rn_inbox_take(&f->worker.inbox);
	unsigned n = 0;

	while (node != NULL) {
		struct rpc_request *req = rn_container_of(node, struct rpc_request, node);

		node = node->next;
		run(req);
		n++;
	}
	return n;
}

unsigned fake_await_inbox(struct fake *f)
{
	struct pollfd p = { .fd = f->worker.inbox.fd, .events = POLLIN };
	eventfd_t rung;

	if (poll(&p, 1, 10000) == 1)
		eventfd_read(p.fd, &rung);
	return fake_run_inbox(f);
}

void fake_complete(struct fake *f, struct rpc_request *req, enum rpc_run how)
{
	pthread_mutex_lock(&f->lock);
	f->how = how;
	pthread_mutex_unlock(&f->lock);
	rpc_wake(f->server.waits, req);
	fake_run_inbox(f);
}

uint32_t fake_word(const struct fake_conn *c, unsigned index)
{
	uint32_t be;

	if ((index + 1) * 4 > c->reply_len)
		return UINT32_MAX;
	memcpy(&be, c->reply + index * 4, 4);
	return ntohl(be);
}
