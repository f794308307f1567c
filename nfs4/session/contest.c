/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers that ask for the owner string of another client, or of the same one at another address: who gets it, and when
 * (doc/design/nfs4-clients.md). */
#include "nfs4/session/contest.h"

#include <string.h>

#include "lib/log_ids.h"
#include "lib/log.h"
#include "nfs4/client/client_address.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/client_lease.h"
#include "nfs4/client/origin.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/state/holdings.h"
#include "rpc/address.h"

/* Seconds between two log messages about refused callers. */
#define LOG_EVERY 60u

static bool contest_has_sessions(struct nfs4_client *cl)
{
	bool has;

	pthread_mutex_lock(&cl->lock);
	has = cl->nsessions > 0;
	pthread_mutex_unlock(&cl->lock);
	return has;
}

/* cl has, or asks for, the owner string of the client at holder. */
static void contest_log_refusal(struct nfs4_client *cl, const struct sockaddr_in6 *holder,
				const struct nfs4_compound *c)
{
	const uint64_t now = nfs4_clients_now(cl->srv);
	struct nfs4_clients *all = cl->srv->clients;
	char address[RPC_ADDRESS_TEXT], was[NFS4_UADDR_MAX], is[NFS4_UADDR_MAX];
	char owner[RN_LOG_TEXT];
	struct sockaddr_in6 addr = { 0 };
	char netid[NFS4_NETID_MAX];

	if (all->refusal_logged > 0 && now < all->refusal_logged + LOG_EVERY)
		return;
	all->refusal_logged = now;
	nfs4_peer_address(c, &addr, netid);
	nfs4_uaddr(&addr, is);
	rpc_address_text(&c->req->conn->peer, address);
	nfs4_uaddr(holder, was);
	rn_log_text(owner, sizeof(owner), cl->ownerid, cl->ownerid_len);
	const struct rn_log_event event = { .id = RN_ID_CLIENT_CONFLICT, .client = address };

	rn_log_event(
		cl->srv->cfg.log, RN_NOTICE, &event,
		"client %s may not register as \"%s\", the name of the client at %s: two machines "
		"have one name, or one takes the other's",
		is, owner, was);
}

/* The caller may be the same client with a new address. If so, the lease of the old one runs out.
 * If the old one renews after this call, it is another client. */
static int contest_refusal(struct nfs4_client *cl)
{
	const uint64_t now = nfs4_clients_now(cl->srv), lease = cl->srv->cfg.lease_seconds + 1;
	const uint64_t renewed = atomic_load(&cl->lease.due) - lease;
	struct nfs4_origin *o = &cl->origin;

	if (o->contested == 0 || now > o->contested + lease) {
		o->contested = now;
		return NFS4ERR_DELAY;
	}
	return renewed > o->contested ? NFS4ERR_CLID_INUSE : NFS4ERR_DELAY;
}

int nfs4_client_contest(struct nfs4_client *cl, const struct nfs4_compound *c)
{
	const bool principal = nfs4_may_manage(c, cl);
	const bool own = nfs4_origin_is(cl, c);

	if ((principal && own) || nfs4_client_status(cl) != NFS4_CLIENT_ACTIVE ||
	    nfs4_client_has_lapsed(cl))
		return NFS4_OK;
	/* Only the machine credential replaces what it protects, with state or without (RFC 8881 section 18.35.3). */
	if (!principal && cl->protect.machine) {
		contest_log_refusal(cl, &cl->addr, c);
		return NFS4ERR_CLID_INUSE;
	}
	if (!nfs4_client_has_state(cl) && (own || !contest_has_sessions(cl)))
		return NFS4_OK;
	contest_log_refusal(cl, &cl->addr, c);
	return principal ? contest_refusal(cl) : NFS4ERR_CLID_INUSE;
}

int nfs4_client_contest_record(struct nfs4_client *fresh, const struct nfs4_compound *c)
{
	struct sockaddr_in6 holder = { 0 };

	if (nfs4_record_may_register(fresh->srv, &fresh->record, holder.sin6_addr.s6_addr))
		return NFS4_OK;
	contest_log_refusal(fresh, &holder, c);
	return NFS4ERR_DELAY;
}
