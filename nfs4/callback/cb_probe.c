/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_probe.h"

#include <stdlib.h>

#include "nfs4/callback/callback.h"
#include "nfs4/callback/cb_recall_slot.h"
#include "nfs4/client/cb_conn.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/session.h"

/* The path's state was set by the answer. */
static void done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	(void)rc;
	(void)status;
	(void)results;
	free(cb);
}

static const struct nfs4_cb_op probe_op = { .name = "the probe", .done = done };

/* Without memory the next binding, or RENEW, gives another chance. */
static void probe(struct nfs4_session *s)
{
	struct nfs4_cb *cb = calloc(1, sizeof(*cb));

	if (!cb)
		return;
	nfs4_session_ref(s);
	nfs4_cb_start(cb, &probe_op, s);
}

static void probe_client(struct nfs4_client *cl)
{
	struct nfs4_cb *cb = calloc(1, sizeof(*cb));

	if (cb)
		nfs4_cb_call(cb, &probe_op, cl);
	else
		nfs4_cb_conn_is(cl, NULL, NFS4_CB_DOWN);
}

const struct nfs4_cb_hooks nfs4_cb_hooks = {
	.probe = probe,
	.probe_client = probe_client,
	.recall_slots = nfs4_recall_slots,
};
