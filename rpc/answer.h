/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ends of calls, for rpc/dispatch.c: each gives the request back to its transport. It must not be touched
 * afterwards.
 */
#ifndef RN_RPC_ANSWER_H
#define RN_RPC_ANSWER_H

#include <stdbool.h>

#include "rpc/message.h"
#include "rpc/program.h"
#include "rpc/request.h"

/* Makes req->out an empty reply again. */
void rpc_restart_reply(struct rpc_request *req);

/* Sends req->out if the client offered room for it. error: it is counted as one. */
void rpc_answer(struct rpc_request *req, bool error);
void rpc_refuse(struct rpc_request *req, enum rpc_accept_stat stat);
void rpc_refuse_auth(struct rpc_request *req, enum rpc_auth_stat stat);
void rpc_answer_too_long(struct rpc_request *req);
/* Without an answer, by an operation of the connection. */
void rpc_give_back(struct rpc_request *req, void (*by)(struct rpc_request *req));
/* Answers or refuses the call, as the result of its procedure's run() says, and tells the duplicate request cache. */
void rpc_answer_run(struct rpc_request *req, enum rpc_run how);

#endif
