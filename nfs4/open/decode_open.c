/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/open/opening.h"
#include "nfs4/state/owner.h"

static void get_how(struct nfs4_compound *c, struct nfs4_open_args *a)
{
	struct xdr_in *x = c->in;

	a->how = xdr_get_u32(x);
	switch (a->how) {
	case NFS4_UNCHECKED:
	case NFS4_GUARDED:
		nfs4_get_sattr(c, &a->attrs);
		break;
	case NFS4_EXCLUSIVE:
		xdr_get_fixed(x, a->verifier, sizeof(a->verifier));
		break;
	case NFS4_EXCLUSIVE_1:
		if (c->minor == 0)
			x->err = true;
		xdr_get_fixed(x, a->verifier, sizeof(a->verifier));
		nfs4_get_sattr(c, &a->attrs);
		break;
	default:
		x->err = true;
	}
}

static void get_claim(struct nfs4_compound *c, struct nfs4_open_args *a)
{
	struct xdr_in *x = c->in;

	a->claim = xdr_get_u32(x);
	if (a->claim >= NFS4_CLAIM_FH && c->minor == 0)
		x->err = true;
	switch (a->claim) {
	case NFS4_CLAIM_NULL:
	case NFS4_CLAIM_DELEGATE_PREV:
		nfs4_get_name(x, &a->name);
		break;
	case NFS4_CLAIM_PREVIOUS:
		a->delegate_type = xdr_get_u32(x);
		break;
	case NFS4_CLAIM_DELEGATE_CUR:
		nfs4_get_stateid(x, &a->delegate_sid);
		nfs4_get_name(x, &a->name);
		break;
	case NFS4_CLAIM_DELEG_CUR_FH:
		nfs4_get_stateid(x, &a->delegate_sid);
		break;
	case NFS4_CLAIM_FH:
	case NFS4_CLAIM_DELEG_PREV_FH:
		break;
	default:
		x->err = true;
	}
}

void nfs4_decode_open(struct nfs4_compound *c, void *args)
{
	struct nfs4_open_args *a = args;
	struct xdr_in *x = c->in;
	uint32_t type;

	nfs4_seq_sum(c);
	a->seqid = xdr_get_u32(x);
	a->access = xdr_get_u32(x);
	a->deny = xdr_get_u32(x);
	nfs4_get_wire_owner(c, &a->owner);
	type = xdr_get_u32(x);
	if (type > 1)
		x->err = true;
	a->create = type == 1;
	if (a->create)
		get_how(c, a);
	get_claim(c, a);
}
