/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/worker.h"

#include "rpc/request.h"

void rpc_requeue(struct rpc_request *req, void (*work)(struct rpc_request *req))
{
	req->work = work;
	rn_inbox_post(&req->worker->inbox, &req->node);
}
