/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/data/skim.h"

#include "lib/checked.h"
#include "nfs4/proto.h"
#include "nfs4/stateid.h"

#define SKIM_OPS_MAX 64u /* a longer COMPOUND is none that a client sends */

/* What the arguments of an operation are made of: fixed bytes, then bitmaps, then opaques. */
struct shape {
	uint8_t fixed;
	uint8_t bitmaps;
	uint8_t opaques;
	uint8_t known;
};

#define SHAPE(fixed, bitmaps, opaques)                                                             \
	{                                                                                          \
		fixed, bitmaps, opaques, 1                                                         \
	}

static const struct shape shapes[NFS4_OPS] = {
	[OP_ACCESS] = SHAPE(4, 0, 0),
	[OP_COMMIT] = SHAPE(12, 0, 0),
	[OP_GETATTR] = SHAPE(0, 1, 0),
	[OP_GETFH] = SHAPE(0, 0, 0),
	[OP_LOCKT] = SHAPE(4 + 8 + 8 + 8, 0, 1),
	[OP_LOOKUP] = SHAPE(0, 0, 1),
	[OP_LOOKUPP] = SHAPE(0, 0, 0),
	[OP_NVERIFY] = SHAPE(0, 1, 1),
	[OP_PUTFH] = SHAPE(0, 0, 1),
	[OP_PUTPUBFH] = SHAPE(0, 0, 0),
	[OP_PUTROOTFH] = SHAPE(0, 0, 0),
	[OP_READ] = SHAPE(NFS4_STATEID_SIZE + 12, 0, 0),
	[OP_READDIR] = SHAPE(8 + NFS4_VERIFIER_SIZE + 8, 1, 0),
	[OP_READLINK] = SHAPE(0, 0, 0),
	[OP_RENEW] = SHAPE(8, 0, 0),
	[OP_RESTOREFH] = SHAPE(0, 0, 0),
	[OP_SAVEFH] = SHAPE(0, 0, 0),
	[OP_SECINFO] = SHAPE(0, 0, 1),
	[OP_SECINFO_NO_NAME] = SHAPE(4, 0, 0),
	[OP_SEQUENCE] = SHAPE(NFS4_SESSIONID_SIZE + 16, 0, 0),
	[OP_VERIFY] = SHAPE(0, 1, 1),
};

static void skip_bitmap(struct xdr_in *x)
{
	const uint32_t words = xdr_get_u32(x);

	xdr_skip(x, (size_t)words * 4); /* fails beyond the message */
}

static void skip_opaque(struct xdr_in *x)
{
	const uint32_t len = xdr_get_u32(x);

	xdr_skip(x, (size_t)len + rn_xdr_pad(len));
}

bool nfs4_skim_op(struct xdr_in *x, uint32_t opnum)
{
	if (opnum >= NFS4_OPS || !shapes[opnum].known)
		return false;
	xdr_skip(x, shapes[opnum].fixed);
	for (unsigned i = 0; i < shapes[opnum].bitmaps; i++)
		skip_bitmap(x);
	for (unsigned i = 0; i < shapes[opnum].opaques; i++)
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
