/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/skim.h"

#include "lib/checked.h"
#include "nfs4/op_table.h"
#include "nfs4/proto.h"

#define SKIM_OPS_MAX 64u /* operations; longer COMPOUNDs are not examined */

static void skip_bitmap(struct xdr_in *x)
{
	const uint32_t words = xdr_get_u32(x);

	xdr_skip(x, (size_t)words * 4); /* fails at the end of the message */
}

static void skip_opaque(struct xdr_in *x)
{
	const uint32_t len = xdr_get_u32(x);

	xdr_skip(x, (size_t)len + rn_xdr_pad(len));
}

bool nfs4_skim_op(struct xdr_in *x, uint32_t opnum)
{
	const struct nfs4_op *op = nfs4_op_find(opnum, NFS4_MINOR_MAX);

	if (!op || !op->shape.known)
		return false;
	xdr_skip(x, op->shape.fixed);
	for (unsigned i = 0; i < op->shape.bitmaps; i++)
		skip_bitmap(x);
	for (unsigned i = 0; i < op->shape.opaques; i++)
		skip_opaque(x);
	return !x->err;
}

bool nfs4_skim_idempotent(const struct xdr_in *at, uint32_t nops)
{
	struct xdr_in x = *at;

	if (nops > SKIM_OPS_MAX)
		return false;
	while (nops-- > 0)
		if (!nfs4_skim_op(&x, xdr_get_u32(&x)))
			return false;
	return true;
}
