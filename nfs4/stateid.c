/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/stateid.h"

#include <string.h>

static const uint8_t zeros[NFS4_OTHER_SIZE];

static bool other_is(const struct nfs4_stateid *sid, uint8_t byte)
{
	for (unsigned i = 0; i < NFS4_OTHER_SIZE; i++) {
		if (sid->other[i] != byte)
			return false;
	}
	return true;
}

void nfs4_get_stateid(struct xdr_in *x, struct nfs4_stateid *out)
{
	out->seqid = xdr_get_u32(x);
	xdr_get_fixed(x, out->other, NFS4_OTHER_SIZE);
}

void nfs4_put_stateid(struct xdr_out *x, const struct nfs4_stateid *sid)
{
	xdr_put_u32(x, sid->seqid);
	xdr_put_fixed(x, sid->other, NFS4_OTHER_SIZE);
}

bool nfs4_stateid_is_special(const struct nfs4_stateid *sid)
{
	return other_is(sid, 0) || other_is(sid, 0xff);
}

bool nfs4_stateid_is_anonymous(const struct nfs4_stateid *sid)
{
	return sid->seqid == 0 && memcmp(sid->other, zeros, NFS4_OTHER_SIZE) == 0;
}

bool nfs4_stateid_is_bypass(const struct nfs4_stateid *sid)
{
	return sid->seqid == UINT32_MAX && other_is(sid, 0xff);
}

bool nfs4_stateid_is_current(const struct nfs4_stateid *sid)
{
	return sid->seqid == 1 && other_is(sid, 0);
}

bool nfs4_stateid_is_invalid(const struct nfs4_stateid *sid)
{
	return sid->seqid == UINT32_MAX && other_is(sid, 0);
}
