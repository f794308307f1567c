/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the offset of the data of the first WRITE of a COMPOUND in the first bytes of the call. A
 * wrong answer costs alignment, never correctness: the call is decoded properly later. */
#include "lib/checked.h"
#include "nfs4/nfs4_server.h"
#include "nfs4/proto.h"
#include "nfs4/skim.h"
#include "nfs4/stateid.h"
#include "rpc/message.h"

#define OPS_BEFORE_MAX 16u /* clients put two or three before a WRITE */

static void skip_opaque(struct xdr_in *x, uint32_t max)
{
	const uint32_t len = xdr_get_u32(x);

	if (len > max)
		x->err = true;
	else
		xdr_skip(x, (size_t)len + rn_xdr_pad(len));
}

static bool is_compound(struct xdr_in *x)
{
	xdr_skip(x, 4); /* xid */
	if (xdr_get_u32(x) != RPC_CALL || xdr_get_u32(x) != RPC_VERSION ||
	    xdr_get_u32(x) != NFS4_PROGRAM || xdr_get_u32(x) != NFS4_VERSION ||
	    xdr_get_u32(x) != NFSPROC4_COMPOUND)
		return false;
	for (int i = 0; i < 2 && !x->err; i++) { /* credential and verifier */
		xdr_skip(x, 4);
		skip_opaque(x, RPC_AUTH_BYTES_MAX);
	}
	return !x->err;
}

size_t nfs4_bulk_offset(const uint8_t *head, size_t len)
{
	const struct rpc_seg seg = { .base = (uint8_t *)head, .len = (uint32_t)len };
	struct xdr_in x;

	if (len > UINT32_MAX)
		return 0;
	xdr_in_init(&x, &seg, 1, NULL);
	if (!is_compound(&x))
		return 0;
	skip_opaque(&x, NFS4_OPAQUE_LIMIT); /* tag */
	xdr_skip(&x, 4 + 4);		    /* minor version, number of operations */
	for (unsigned i = 0; i < OPS_BEFORE_MAX && !x.err; i++) {
		const uint32_t op = xdr_get_u32(&x);

		if (op == OP_WRITE) {
			/* stateid, offset, stable, length of the data */
			xdr_skip(&x, NFS4_STATEID_SIZE + 8 + 4 + 4);
			return x.err ? 0 : xdr_in_pos(&x);
		}
		if (!nfs4_skim_op(&x, op))
			return 0;
	}
	return 0;
}
