/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_recall.h"

#include "lib/util.h"
#include "nfs4/nfs4_proto.h"

static void cb_recall_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_recall *r = rn_container_of(cb, const struct nfs4_recall, cb);

	nfs4_put_stateid(x, &r->stateid);
	xdr_put_bool(x, false); /* the file is not about to be truncated to nothing */
	xdr_put_opaque(x, r->fh, r->fh_len);
}

static void cb_recall_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_recall *r = rn_container_of(cb, struct nfs4_recall, cb);

	(void)results;
	r->ended(r, rc == 0 && status == NFS4_OK);
}

static const struct nfs4_cb_op recall_op = {
	.name = "CB_RECALL",
	.opnum = OP_CB_RECALL,
	.encode = cb_recall_encode,
	.done = cb_recall_done,
};

void nfs4_recall(struct nfs4_client *cl, struct nfs4_recall *r)
{
	nfs4_cb_call(&r->cb, &recall_op, cl);
}
