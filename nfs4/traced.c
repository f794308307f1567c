/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/util.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_view.h"

/* The current object is cleared by then, which leaves its filehandle. */
bool nfs4_traced(const struct rpc_request *req, struct nfs4_traced *out)
{
	const struct nfs4_compound *c = req->op;

	if (!c || req->call.prog != NFS4_PROGRAM || req->call.vers != NFS4_VERSION ||
	    req->call.proc != NFSPROC4_COMPOUND)
		return false;
	*out = (struct nfs4_traced){
		.minor = c->minor,
		.nops = c->done,
		.ops = c->ran,
		.nkept = (uint32_t)rn_min(c->done, NFS4_RAN_MAX),
		.clientid = c->clientid,
		.fh = c->current.fh.len > 0 ? &c->current.fh : NULL,
	};
	return true;
}
