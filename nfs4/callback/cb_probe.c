/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_probe.h"

#include <stdlib.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/callback/callback.h"
#include "nfs4/client/cb_conn.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/session.h"
#include "rpc/principal.h"
#include "rpc/program.h"
#include "rpc/security.h"

#define PATIENCE 30u /* seconds that a probe waits for a thread that asks the KDC */

/* The path's state was set by the answer. */
static void cb_probe_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	(void)rc;
	(void)status;
	(void)results;
	free(cb);
}

static const struct nfs4_cb_op probe_op = { .name = "the probe", .done = cb_probe_done };

/* Without memory the next binding, or RENEW, gives another chance. */
void nfs4_cb_probe(struct nfs4_session *s)
{
	struct nfs4_cb *cb = calloc(1, sizeof(*cb));

	if (!cb)
		return;
	nfs4_session_ref(s);
	nfs4_cb_start(cb, &probe_op, s);
}

/* The probe of a client under Kerberos: a context is made first, which the probe then tries. */
struct initiating {
	struct rpc_cb_initiation init;
	struct nfs4_client *client; /* a reference */
};

static void cb_probe_auth_made(struct rpc_cb_initiation *init, struct rpc_cb_auth *auth)
{
	struct initiating *w = rn_container_of(init, struct initiating, init);
	struct nfs4_cb *cb = auth ? calloc(1, sizeof(*cb)) : NULL;

	if (cb) {
		nfs4_cb_try(cb, &probe_op, w->client, auth);
	} else {
		rpc_cb_auth_put(auth);
		nfs4_cb_conn_no_auth(w->client);
	}
	nfs4_client_put(w->client);
	free(w);
}

/* False: no context is needed. */
static bool probe_by_context(struct nfs4_client *cl, const struct rpc_server *rpc)
{
	struct initiating *w = calloc(1, sizeof(*w));
	bool needed = true, begun = false;

	if (w)
		needed = nfs4_cb_conn_initiation(cl, &w->init);
	if (w && needed) {
		const struct rpc_principal *from = w->init.from, *to = w->init.to;

		w->init.due_ns = rn_now_ns() + PATIENCE * RN_NS_PER_SECOND;
		w->init.made = cb_probe_auth_made;
		w->client = cl;
		nfs4_client_ref(cl);
		begun = rpc->security->initiate(rpc->security_ctx, &w->init);
		if (!begun)
			nfs4_client_put(cl);
		rpc_principal_put(from);
		rpc_principal_put(to);
	}
	if (!begun)
		free(w);
	if (needed && !begun)
		nfs4_cb_conn_no_auth(cl);
	return needed;
}

void nfs4_cb_probe_client(struct nfs4_client *cl, const struct rpc_server *rpc)
{
	struct nfs4_cb *cb;

	if (cl->principal.name && probe_by_context(cl, rpc))
		return;
	cb = calloc(1, sizeof(*cb));
	if (cb)
		nfs4_cb_call(cb, &probe_op, cl);
	else
		nfs4_cb_conn_is(cl, NULL, NFS4_CB_DOWN);
}
