/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/request.h"

#include <stdlib.h>

#include "rpc/client.h"

static void start_reply(struct rpc_request *req)
{
	xdr_out_init(&req->out, req->head->data, req->head->size);
}

struct rpc_request *rpc_request_new(struct rn_payload_pool *pool)
{
	struct rpc_request *req = calloc(1, sizeof(*req));

	if (req == NULL)
		return NULL;
	req->head = rn_payload_get(pool, RPC_HEAD_SIZE);
	if (req->head == NULL) {
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
	if (req == NULL)
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
	rpc_request_forget_call(req);
	xdr_out_release(&req->out);
	rn_payload_put(req->long_head);
	req->long_head = NULL;
	start_reply(req);
	rn_arena_reset(&req->arena);
	req->reply_max = 0;
	req->bulk_chunk = false;
	req->proc = NULL;
	req->program_ctx = NULL;
	req->args = NULL;
	req->op = NULL;
	req->drc = NULL;
	req->work = NULL;
}
