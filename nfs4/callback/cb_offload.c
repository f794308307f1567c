/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_offload.h"

#include "lib/util.h"

static void cb_offload_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_offload *o = rn_container_of(cb, const struct nfs4_offload, cb);

	xdr_put_opaque(x, o->fh->data, o->fh->len);
	nfs4_put_stateid(x, &o->sid);
	xdr_put_u32(x, o->status);
	if (o->status == NFS4_OK)
		xdr_put_u32(x, 0); /* no wr_callback_id */
	xdr_put_u64(x, o->count);
	if (o->status != NFS4_OK)
		return;
	xdr_put_u32(x, o->committed);
	xdr_put_u64(x, o->verifier);
}

static void cb_offload_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_offload *o = rn_container_of(cb, struct nfs4_offload, cb);

	(void)results;
	o->ended(o, rc, status);
}

static const struct nfs4_cb_op offload_op = {
	.name = "CB_OFFLOAD",
	.opnum = OP_CB_OFFLOAD,
	.encode = cb_offload_encode,
	.done = cb_offload_done,
};

void nfs4_offload_tell(struct nfs4_client *cl, struct nfs4_offload *o)
{
	nfs4_cb_call(&o->cb, &offload_op, cl);
}
