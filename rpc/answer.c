/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/answer.h"

#include "lib/clock.h"
#include "rpc/program.h"
#include "rpc/worker.h"

static void rpc_observe(struct rpc_request *req, bool error)
{
	const struct rpc_server *server = req->server;

	if (error)
		atomic_fetch_add_explicit(&req->conn->tally.errors, 1, memory_order_relaxed);
	if (!server->observe)
		return;
	const uint64_t now = req->ended_ns ? req->ended_ns : rn_now_ns();

	atomic_store_explicit(&req->worker->ended_ns, now, memory_order_relaxed);
	server->observe(server->observe_ctx, req, now > req->arrived_ns ? now - req->arrived_ns : 0,
			error);
}

void rpc_give_back(struct rpc_request *req, void (*by)(struct rpc_request *req))
{
	const struct rpc_server *server = req->server;

	if (server->ended)
		server->ended(server->ended_ctx, req);
	by(req);
}

/* The way to end a connection that gets no answer. */
static void (*closing(const struct rpc_request *req))(struct rpc_request *)
{
	return req->conn->ops->garbage ? req->conn->ops->garbage : req->conn->ops->drop;
}

/* True if results are to be wrapped, and that takes longer than an event thread may. */
static bool must_move(const struct rpc_request *req)
{
	return req->secured && req->secured->wraps && rpc_is_prompt(req) &&
	       xdr_out_total(&req->out) > RPC_SECURE_PROMPT_MOST;
}

void rpc_answer(struct rpc_request *req, bool error)
{
	const bool fits = rpc_reply_ok(req);

	/* Refusals are short. */
	if (fits && must_move(req))
		rpc_move(req);
	rpc_observe(req, error || !fits);
	if (!fits)
		rpc_give_back(req, req->conn->ops->too_long);
	else if (req->secured && !req->server->security->protect(req))
		rpc_give_back(req, closing(req));
	else
		rpc_give_back(req, req->conn->ops->reply);
}

void rpc_restart_reply(struct rpc_request *req)
{
	xdr_out_release(&req->out);
	xdr_out_init(&req->out, req->head->data, rpc_reply_head_size(req, req->head->size));
}

void rpc_refuse(struct rpc_request *req, enum rpc_accept_stat stat)
{
	rpc_restart_reply(req);
	rpc_put_accepted(&req->out, req->call.xid, stat);
	rpc_answer(req, true);
}

void rpc_refuse_auth(struct rpc_request *req, enum rpc_auth_stat stat)
{
	rpc_restart_reply(req);
	rpc_put_auth_error(&req->out, req->call.xid, stat);
	rpc_answer(req, true);
}

void rpc_answer_too_long(struct rpc_request *req)
{
	rpc_observe(req, true);
	rpc_give_back(req, req->conn->ops->too_long);
}

static void system_error(struct rpc_request *req)
{
	rpc_restart_reply(req);
	rpc_put_accepted(&req->out, req->call.xid, RPC_SYSTEM_ERR);
	/* The procedure may have had its effects: a retransmission must not repeat them. */
	drc_done(req->server->drc, req);
	rpc_answer(req, true);
}

void rpc_answer_run(struct rpc_request *req, enum rpc_run how)
{
	struct drc *drc = req->server->drc;

	switch (how) {
	case RPC_RUN_UNDONE:
		drc_abandon(drc, req);
		rpc_answer(req, false);
		return;
	case RPC_RUN_DONE:
		if (req->out.overflow) {
			system_error(req);
			return;
		}
		drc_done(drc, req);
		rpc_answer(req, false);
		return;
	case RPC_RUN_GARBAGE:
		drc_abandon(drc, req);
		rpc_refuse(req, RPC_GARBAGE_ARGS);
		return;
	case RPC_RUN_TOO_LONG:
		drc_abandon(drc, req);
		rpc_answer_too_long(req);
		return;
	case RPC_RUN_NO_ROOM:
		drc_done(drc, req);
		rpc_answer_too_long(req);
		return;
	case RPC_RUN_AUTH_TOOWEAK:
		drc_abandon(drc, req);
		rpc_refuse_auth(req, RPC_AUTH_TOOWEAK);
		return;
	case RPC_RUN_AUTH_BADCRED:
		drc_abandon(drc, req);
		rpc_refuse_auth(req, RPC_AUTH_BADCRED);
		return;
	case RPC_RUN_SYSTEM_ERR:
		break;
	}
	system_error(req);
}
