/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "rpc/client.h"
#include "rpc/program.h"

static void start_reply(struct rpc_request *req)
{
	xdr_out_init(&req->out, req->head->data, req->head->size);
}

static void end_security(struct rpc_request *req)
{
	if (req->secured)
		req->server->security->release(req);
	req->secured = NULL;
}

struct rpc_request *rpc_request_new(struct rn_payload_pool *pool)
{
	struct rpc_request *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->head = rn_payload_get_to_keep(pool, RPC_HEAD_SIZE);
	if (!req->head) {
		free(req);
		return NULL;
	}
	rn_arena_init(&req->arena, req->arena_mem, sizeof(req->arena_mem));
	start_reply(req);
	return req;
}

struct rn_payload_account *rpc_request_account(const struct rpc_request *req)
{
	return req->conn != NULL && req->conn->client != NULL ? &req->conn->client->memory : NULL;
}

void rpc_request_free(struct rpc_request *req)
{
	if (!req)
		return;
	rpc_request_reset(req);
	rn_payload_put(req->head);
	free(req);
}

void rpc_request_forget_call(struct rpc_request *req)
{
	for (unsigned i = 0; i < req->nseg; i++) {
		rn_payload_put(req->seg[i].payload);
		req->seg[i] = (struct rpc_seg){ 0 };
	}
	req->nseg = 0;
}

void rpc_request_reset(struct rpc_request *req)
{
	end_security(req);
	rpc_request_forget_call(req);
	xdr_out_release(&req->out);
	rn_payload_put(req->long_head);
	req->long_head = NULL;
	start_reply(req);
	rn_arena_reset(&req->arena);
	req->reply_max = 0;
	req->nbulk_spaces = 0;
	req->proc = NULL;
	req->program_ctx = NULL;
	req->args = NULL;
	req->op = NULL;
	req->drc = NULL;
	req->work = NULL;
	req->waited = false;
	req->wait_until_ns = 0;
	req->run_ns = 0;
	req->ended_ns = 0;
}

static uint32_t chunk_of(const struct rpc_request *req, unsigned item)
{
	return item < req->nbulk_spaces ? req->bulk_space[item] : 0;
}

/* Bytes of the reply that do not go by Write chunks. */
static size_t stream_length(const struct rpc_request *req)
{
	const struct xdr_out *out = &req->out;
	size_t len = out->used;

	for (unsigned i = 0; i < out->nbulks; i++)
		if (chunk_of(req, i) == 0)
			len += (size_t)out->bulk[i].len + rn_xdr_pad(out->bulk[i].len);
	return len;
}

size_t rpc_reply_space(const struct rpc_request *req)
{
	const size_t len = stream_length(req);

	return len < req->reply_max ? req->reply_max - len : 0;
}

uint32_t rpc_reply_bulk_chunk(const struct rpc_request *req)
{
	return chunk_of(req, req->out.nbulks);
}

bool rpc_reply_fits(const struct rpc_request *req, size_t head, uint32_t bulk)
{
	const uint32_t chunk = rpc_reply_bulk_chunk(req);
	size_t need = stream_length(req) + head;

	if (chunk == 0)
		need += (size_t)bulk + rn_xdr_pad(bulk);
	else if (bulk > chunk)
		return false;
	return need <= req->reply_max;
}

bool rpc_reply_ok(const struct rpc_request *req)
{
	const struct xdr_out *out = &req->out;

	for (unsigned i = 0; i < out->nbulks; i++) {
		const uint32_t chunk = chunk_of(req, i);

		if (chunk > 0 && out->bulk[i].len > chunk)
			return false;
	}
	return stream_length(req) <= req->reply_max;
}

/* True if what is sent goes to the socket as it is. */
static bool sends_plain(const struct rpc_conn *conn)
{
	const struct rpc_conn_tls *tls = atomic_load_explicit(&conn->tls, memory_order_acquire);

	return rpc_conn_protection(conn) == RPC_PLAIN || (tls && tls->ktls);
}

bool rpc_reply_takes_pipes(const struct rpc_request *req)
{
	return req->conn->ops->takes_pipes && sends_plain(req->conn) &&
	       !(req->secured && req->secured->wraps);
}

/* Bytes that securing the reply may add to its head, with a word for what each bulk item leaves over. */
static size_t rpc_reply_overhead(const struct rpc_request *req)
{
	return req->secured ? req->secured->overhead + 4 * (XDR_BULKS_MAX + 1) : 0;
}

size_t rpc_reply_head_size(const struct rpc_request *req, size_t buffer)
{
	const size_t overhead = rpc_reply_overhead(req);

	return buffer > overhead ? buffer - overhead : 0;
}

int rpc_reply_grow(struct rpc_request *req, size_t size)
{
	struct xdr_out *out = &req->out;

	if (size <= out->size - out->used)
		return 0;
	const size_t overhead = rpc_reply_overhead(req);

	if (size > RN_PAYLOAD_MAX - out->used || size + overhead > RN_PAYLOAD_MAX - out->used)
		return -ENOMEM;
	struct rn_payload *p = rn_payload_get_for(req->server->pool, out->used + size + overhead,
						  rpc_request_account(req));
	if (!p)
		return -ENOMEM;
	memcpy(p->data, out->base, out->used);
	out->base = p->data;
	out->size = rpc_reply_head_size(req, p->size);
	rn_payload_put(req->long_head);
	req->long_head = p;
	return 0;
}
