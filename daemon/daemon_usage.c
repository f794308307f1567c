/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/daemon_usage.h"

#include <string.h>

#include "nfs3/nfs3_server.h"
#include "nfs3/nfs3_proto.h"
#include "rpc/client.h"

#define STATUS_AT 24u /* bytes of an accepted reply before its results, which begin with a status */

static bool has_failed(const struct rpc_request *req)
{
	static const uint8_t ok[4];
	const struct xdr_out *out = &req->out;

	return req->call.proc != NFSPROC3_NULL && out->used >= STATUS_AT + sizeof(ok) &&
	       memcmp(out->base + STATUS_AT, ok, sizeof(ok)) != 0;
}

void usage_observe(const struct rpc_request *req, uint64_t elapsed_ns, bool error)
{
	const struct rpc_call *call = &req->call;

	if (call->prog != NFS_PROGRAM || call->vers != NFS3_VERSION || !req->proc ||
	    call->proc >= RPC_USAGE_PROCS || !req->conn->client)
		return;
	rpc_usage_call(&req->conn->client->usage, call->proc, error || has_failed(req),
		       req->arrived_ns + elapsed_ns);
}
