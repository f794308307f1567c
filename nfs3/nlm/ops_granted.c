/* SPDX-License-Identifier: BSD-2-Clause */
/* Procedures for a client's lock manager, which this server is not, and the answer to GRANTED_MSG. */
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm_answer.h"
#include "nfs3/nlm/nlm_grant.h"
#include "nfs3/nlm/ops.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_state.h"

/* This server waits for nobody's lock. */
static enum rpc_run proc_granted(struct rpc_request *req, void *args)
{
	const struct nlm_lock_args *a = args;
	const struct nfs3_server *s = req->program_ctx;

	if (nlm_is_message(req) && !s->cfg.nsm)
		return RPC_RUN_SYSTEM_ERR;
	nlm_reply(req, &(struct nlm_result){ .cookie = &a->cookie, .stat = NLM4_DENIED });
	return RPC_RUN_DONE;
}

static enum rpc_run proc_granted_res(struct rpc_request *req, void *args)
{
	const struct nlm_res_args *a = args;
	const struct nfs3_server *s = req->program_ctx;

	nlm_grants_answered(s->grants, &req->conn->peer, &a->cookie, a->stat);
	return RPC_RUN_DONE;
}

#define GRANTED_ROW(row, text, decoder)                                                            \
	const struct rpc_proc row = {                                                              \
		.name = text,                                                                      \
		.decode = decoder,                                                                 \
		.args_size = sizeof(struct nlm_lock_args),                                         \
		.run = proc_granted,                                                               \
	}

GRANTED_ROW(nlm_proc_granted, "GRANTED", nlm_decode_test);
GRANTED_ROW(nlm_proc_granted_old, "GRANTED", nlm_decode_test_old);
GRANTED_ROW(nlm_proc_granted_msg, "GRANTED_MSG", nlm_decode_test);
GRANTED_ROW(nlm_proc_granted_msg_old, "GRANTED_MSG", nlm_decode_test_old);

/* The server sends no messages that these would answer. */
const struct rpc_proc nlm_proc_test_res = { .name = "TEST_RES" };
const struct rpc_proc nlm_proc_lock_res = { .name = "LOCK_RES" };
const struct rpc_proc nlm_proc_cancel_res = { .name = "CANCEL_RES" };
const struct rpc_proc nlm_proc_unlock_res = { .name = "UNLOCK_RES" };

const struct rpc_proc nlm_proc_granted_res = {
	.name = "GRANTED_RES",
	.decode = nlm_decode_res,
	.args_size = sizeof(struct nlm_res_args),
	.run = proc_granted_res,
	.flags = RPC_FOR_FORMER,
};
