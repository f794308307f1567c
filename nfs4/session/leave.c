/* SPDX-License-Identifier: BSD-2-Clause */
/* Work for the session and the client at the end of a COMPOUND. */
#include "nfs4/client/nfs4_client.h"
#include "nfs4/session/registry.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/session/sequence.h"

/* Keeps the reply for a retry if the client asked for that, frees the slot, and renews the lease
 * again. */
static void leave_session(struct nfs4_compound *c)
{
	struct nfs4_session *s = c->session;

	if (c->cache_this)
		nfs4_slot_keep(c);
	nfs4_slot_done(s, c->slot);
	nfs4_client_renew(s->client);
	c->session = NULL;
	c->slot = NULL;
	nfs4_session_put(s);
}

void nfs4_clients_leave(struct nfs4_compound *c)
{
	if (c->session)
		leave_session(c);
	if (c->client)
		c->clientid = c->client->clientid;
	nfs4_client_put(c->client);
	c->client = NULL;
	nfs4_client_put(c->of_conn);
	c->of_conn = NULL;
	c->counts = NULL;
}
