/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/scan.h"

#include "nfs4/nfs4_server.h"
#include "nfs4/op_table.h"
#include "nfs4/nfs4_proto.h"
#include "rpc/message.h"

#define SCAN_OPS_MAX 64u    /* operations; longer COMPOUNDs are not examined */
#define OPS_BEFORE_BULK 16u /* clients put two or three before a WRITE */
#define OPS_BEFORE_FH 3u

static void skip_bitmap(struct xdr_in *x)
{
	const uint32_t words = xdr_get_u32(x);

	xdr_skip(x, (size_t)words * 4); /* fails at the end of the message */
}

bool nfs4_scan_op(struct xdr_in *x, uint32_t opnum)
{
	const struct nfs4_op *op = nfs4_op_find(opnum, NFS4_MINOR_MAX);

	if (!op || !op->shape.known)
		return false;
	xdr_skip(x, op->shape.fixed);
	for (unsigned i = 0; i < op->shape.bitmaps; i++)
		skip_bitmap(x);
	for (unsigned i = 0; i < op->shape.opaques; i++)
		xdr_skip_opaque(x, UINT32_MAX);
	return !x->err;
}

/* Moves x from a COMPOUND's arguments behind the number of the first operation that is wanted, past
 * at most `most` operations that change nothing. NULL: there is none. */
static const struct nfs4_op *scan_to(struct xdr_in *x, unsigned most,
				     bool (*wanted)(const struct nfs4_op *op))
{
	xdr_skip_opaque(x, NFS4_OPAQUE_LIMIT); /* tag */
	xdr_skip(x, 4 + 4);		       /* minor version, number of operations */
	for (unsigned i = 0; i < most && !x->err; i++) {
		const uint32_t opnum = xdr_get_u32(x);
		const struct nfs4_op *op = nfs4_op_find(opnum, NFS4_MINOR_MAX);

		if (op && wanted(op))
			return x->err ? NULL : op;
		if (!nfs4_scan_op(x, opnum))
			return NULL;
	}
	return NULL;
}

static bool sets_fh(const struct nfs4_op *op)
{
	return op == &nfs4_op_putfh;
}

bool nfs4_skip_to_fh(struct xdr_in *x)
{
	return scan_to(x, OPS_BEFORE_FH, sets_fh) != NULL;
}

static bool has_bulk(const struct nfs4_op *op)
{
	return op->bulk_at > 0;
}

size_t nfs4_bulk_offset(const uint8_t *head, size_t len)
{
	const struct rpc_seg seg = { .base = (uint8_t *)head, .len = (uint32_t)len };
	const struct nfs4_op *op;
	struct rpc_peek call;
	struct xdr_in x;

	if (len > UINT32_MAX)
		return 0;
	xdr_in_init(&x, &seg, 1, NULL);
	if (!rpc_peek_call(&x, &call) || call.prog != NFS4_PROGRAM || call.vers != NFS4_VERSION ||
	    call.proc != NFSPROC4_COMPOUND)
		return 0;
	op = scan_to(&x, OPS_BEFORE_BULK, has_bulk);
	if (!op)
		return 0;
	xdr_skip(&x, op->bulk_at);
	return x.err ? 0 : xdr_in_pos(&x);
}

bool nfs4_scan_idempotent(const struct xdr_in *at, uint32_t nops)
{
	struct xdr_in x = *at;

	if (nops > SCAN_OPS_MAX)
		return false;
	while (nops-- > 0)
		if (!nfs4_scan_op(&x, xdr_get_u32(&x)))
			return false;
	return true;
}
