/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_notify_lock.h"

#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_proto.h"

static void cb_notify_lock_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_notify_lock *n = rn_container_of(cb, const struct nfs4_notify_lock, cb);

	xdr_put_opaque(x, n->fh, n->fh_len);
	xdr_put_u64(x, n->clientid);
	xdr_put_opaque(x, n->owner, n->owner_len);
}

/* Nothing depends on the answer: the client may ignore the callback, and asks again by itself. */
static void cb_notify_lock_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_notify_lock *n = rn_container_of(cb, struct nfs4_notify_lock, cb);

	(void)rc;
	(void)status;
	(void)results;
	n->ended(n);
}

static const struct nfs4_cb_op notify_lock_op = {
	.name = "CB_NOTIFY_LOCK",
	.opnum = OP_CB_NOTIFY_LOCK,
	.encode = cb_notify_lock_encode,
	.done = cb_notify_lock_done,
};

void nfs4_notify_lock(struct nfs4_client *cl, struct nfs4_notify_lock *n)
{
	struct nfs4_session *s = nfs4_cb_session(cl);

	n->clientid = cl->clientid;
	if (s)
		nfs4_cb_start(&n->cb, &notify_lock_op, s);
	else
		n->ended(n);
}
