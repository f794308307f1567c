/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums up a call, so that a retry is told from another call with the same slot and sequence number (RFC 8881 section 2.10.6.1.3.1). */
#include "lib/util.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "rpc/principal.h"
#include "rpc/sum.h"

/* Enough where no reply is kept: a client that sends another call as a retry is only answered that its reply was not kept,
 * instead of an error for a false retry. */
#define FIRST_BYTES 256u

/* The credential and the call's properties outside its arguments. */
static void add_caller(struct rpc_sum *s, const struct nfs4_compound *c)
{
	const struct rpc_cred *cred = &c->req->call.cred;
	const uint32_t first[] = { c->minor,
				   c->nops,
				   cred->ngids,
				   cred->uid,
				   cred->gid,
				   (uint32_t)cred->sec,
				   (uint32_t)cred->protection,
				   cred->principal ? cred->principal->len : 0 };

	rpc_sum_add(s, first, sizeof(first));
	rpc_sum_add(s, cred->gids, cred->ngids * sizeof(cred->gids[0]));
	if (cred->principal)
		rpc_sum_add(s, cred->principal->name, cred->principal->len);
}

uint64_t nfs4_call_sum(const struct nfs4_compound *c, bool whole)
{
	const struct xdr_in *in = c->in;
	struct rpc_sum s;

	rpc_sum_begin(&s, &c->server->sum_secret);
	add_caller(&s, c);
	rpc_sum_add_segments(&s, in->seg + in->cur, in->nseg - in->cur, in->off,
			     whole ? SIZE_MAX : FIRST_BYTES);
	return rpc_sum_end(&s).low;
}
