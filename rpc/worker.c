/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/worker.h"

#include "rpc/request.h"

void rpc_requeue(struct rpc_request *req, void (*work)(struct rpc_request *req))
{
	struct rpc_worker *w = req->worker;

	req->work = work;
	if (w->move)
		w->move(w, req);
	else
		rn_inbox_post(&w->inbox, &req->node);
}

bool rpc_is_prompt(const struct rpc_request *req)
{
	return req->worker->move;
}
