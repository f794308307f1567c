/* SPDX-License-Identifier: BSD-2-Clause */
/* The step of READ that NFSv2 and NFSv3 share: memory for the data, for which a call may have to wait. */
#include "nfs3/op.h"

#include "lib/util.h"

/* Called on the request's worker when there is memory. */
static void read_resume(struct rpc_request *req)
{
	struct nfs3_op *op = req->op;

	op->ctx.w = req->worker->vfs; /* maybe another than before */
	vfs_read(&op->io);
}

static void memory_ready(struct rn_payload_waiter *w, struct rn_payload *p)
{
	struct rpc_request *req = rn_container_of(w, struct rpc_request, waiter);
	struct nfs3_op *op = req->op;

	op->io.payload = p;
	rpc_requeue(req, read_resume);
}

enum rpc_run nfs3_op_read(struct nfs3_op *op)
{
	struct rpc_request *req = op->req;
	struct vfs_io *io = &op->io;
	size_t size = vfs_read_buffer_size(op->ctx.exp, io->offset, io->count);
	struct rn_payload *p;

	if (size == 0)
		size = 1;
	/* a peer may have sent much more than the arguments of READ */
	rpc_request_forget_call(req);
	req->waiter.ready = memory_ready;
	req->waiter.account = rpc_request_account(req);
	p = rn_payload_get_or_wait(req->server->pool, size, &req->waiter);
	/* If p is NULL the request may be on its way back already: it must not be touched. */
	if (!p)
		return RPC_RUN_PENDING;
	io->payload = p;
	vfs_read(io);
	return RPC_RUN_PENDING;
}
