/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_recall_any.h"

#include "lib/util.h"
#include "nfs4/nfs4_proto.h"

static void cb_recall_any_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_recall_any *r = rn_container_of(cb, const struct nfs4_recall_any, cb);

	xdr_put_u32(x, r->keep);
	xdr_put_u32(x, 1); /* words of the mask */
	xdr_put_u32(x, r->types);
}

static void cb_recall_any_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_recall_any *r = rn_container_of(cb, struct nfs4_recall_any, cb);

	(void)results;
	r->ended(r, rc == 0 && status == NFS4_OK);
}

static const struct nfs4_cb_op recall_any_op = {
	.name = "CB_RECALL_ANY",
	.opnum = OP_CB_RECALL_ANY,
	.encode = cb_recall_any_encode,
	.done = cb_recall_any_done,
};

void nfs4_recall_any(struct nfs4_client *cl, struct nfs4_recall_any *r)
{
	nfs4_cb_call(&r->cb, &recall_any_op, cl);
}
