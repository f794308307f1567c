/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/nfs4_client.h"

#include <stdlib.h>

#include "nfs4/client/cb_conn.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "rpc/principal.h"

void nfs4_client_ref(struct nfs4_client *cl)
{
	atomic_fetch_add_explicit(&cl->refs, 1, memory_order_relaxed);
}

void nfs4_client_put(struct nfs4_client *cl)
{
	struct nfs4_host *host;
	struct nfs4_server *srv;
	size_t cost;

	if (!cl || atomic_fetch_sub_explicit(&cl->refs, 1, memory_order_acq_rel) > 1)
		return;
	srv = cl->srv;
	host = cl->host;
	cost = cl->cost;
	nfs4_record_fini(srv, &cl->record);
	rpc_principal_put(cl->principal.name);
	free(cl->cs_reply);
	nfs4_callback_free(cl->callback);
	nfs4_callback_free(cl->update);
	pthread_mutex_destroy(&cl->lock);
	free(cl);
	nfs4_host_give(host, cost);
	nfs4_host_put(host);
}

void nfs4_client_calls(struct nfs4_client *cl, struct nfs4_compound *c)
{
	nfs4_client_put(c->client);
	c->client = cl;
	c->current.ctx.client = cl;
	c->saved.ctx.client = cl;
	c->counts = &cl->counts;
	nfs4_count(&cl->counts.calls, 1);
}
