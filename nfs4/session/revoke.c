/* SPDX-License-Identifier: BSD-2-Clause */
/* Revocation by the administrator: of state below exports that are gone, or of a whole client. */
#include <errno.h>
#include <stdlib.h>

#include "lib/error.h"
#include "nfs4/client/client_table.h"
#include "nfs4/nfs4_server.h"
#include "nfs4/session/registry.h"
#include "nfs4/session/session_private.h"
#include "nfs4/state/holdings.h"

/* A client of that bucket that this walk has not visited, with a reference; or NULL. */
static struct nfs4_client *revoke_next_client(struct nfs4_clients *all, uint32_t bucket)
{
	struct id_part *part = &all->part[bucket % ID_PARTS];
	struct nfs4_client *cl;

	pthread_mutex_lock(&part->lock);
	LIST_FOREACH (cl, &part->clients[bucket / ID_PARTS], by_id) {
		if (cl->revoked_round != all->revoke_round)
			break;
	}
	if (cl) {
		cl->revoked_round = all->revoke_round;
		nfs4_client_ref(cl);
	}
	pthread_mutex_unlock(&part->lock);
	return cl;
}

static struct sockaddr_in6 nfs4_client_peer_addr(struct nfs4_client *cl)
{
	struct nfs4_clients *all = cl->srv->clients;

	pthread_mutex_lock(&all->lock);
	const struct sockaddr_in6 addr = cl->addr;

	pthread_mutex_unlock(&all->lock);
	return addr;
}

/* Fills lost->some with the exports that the client has lost and returns their number. The address is that
 * of its registration, which identifies it; calls from other addresses are checked one by one. */
static unsigned lost_to(struct nfs4_client *cl, const struct vfs_exports_lost *lost)
{
	const struct sockaddr_in6 addr = nfs4_client_peer_addr(cl);
	unsigned n = 0;

	for (unsigned i = 0; i < lost->n; i++) {
		if (lost->lost(lost->ctx, lost->ids[i], (const struct sockaddr *)&addr))
			lost->some[n++] = lost->ids[i];
	}
	return n;
}

static uint64_t revoke_client(struct nfs4_client *cl, const struct vfs_exports_lost *lost)
{
	struct nfs4_revocation r = { .status = NFS4ERR_ADMIN_REVOKED, .exports = lost->some };
	uint64_t revoked = 0;

	if (nfs4_client_has_state(cl))
		r.n = lost_to(cl, lost);
	if (r.n > 0)
		revoked = nfs4_holdings_revoke(cl, &r);
	return revoked;
}

uint64_t nfs4_clients_revoke(struct nfs4_clients *all, const struct vfs_exports_lost *lost)
{
	uint64_t revoked = 0;
	struct nfs4_client *cl;

	all->revoke_round++;
	for (uint32_t i = 0; i < ID_PARTS * ID_BUCKETS; i++) {
		while ((cl = revoke_next_client(all, i)) != NULL) {
			revoked += revoke_client(cl, lost);
			nfs4_client_put(cl);
		}
	}
	return revoked;
}

void nfs4_clients_count_lost(struct nfs4_clients *all, const struct vfs_exports_lost *lost,
			     void (*each)(void *ctx, const struct nfs4_loss *loss), void *ctx)
{
	struct nfs4_client *cl;

	all->revoke_round++;
	for (uint32_t i = 0; i < ID_PARTS * ID_BUCKETS; i++) {
		while ((cl = revoke_next_client(all, i)) != NULL) {
			struct nfs4_loss loss = { .clientid = cl->clientid };
			const struct nfs4_revocation r = {
				.exports = lost->some,
				.n = nfs4_client_has_state(cl) ? lost_to(cl, lost) : 0,
			};

			if (r.n > 0)
				nfs4_holdings_count(cl, &r, &loss);
			if (loss.opens + loss.delegations > 0) {
				loss.addr = nfs4_client_peer_addr(cl);
				each(ctx, &loss);
			}
			nfs4_client_put(cl);
		}
	}
}

/*
 * True if no operation that gives the client state is under way; none begins any more (nfs4_open).
 */
static bool nfs4_record_is_idle(const struct nfs4_record *rec)
{
	return atomic_load(&rec->ended) == atomic_load(&rec->begun);
}

int nfs4_clients_forget_one(struct nfs4_clients *all, uint64_t clientid)
{
	struct nfs4_client *cl = nfs4_client_get(all, clientid);
	enum nfs4_client_status status;
	int rc = 0;

	if (!cl)
		return -ENOENT;
	pthread_mutex_lock(&all->lock);
	status = nfs4_client_status(cl);
	if (status == NFS4_CLIENT_ACTIVE || status == NFS4_CLIENT_COURTESY)
		nfs4_client_become(all, cl, NFS4_CLIENT_EXPIRED);
	pthread_mutex_unlock(&all->lock);
	if (status == NFS4_CLIENT_UNCONFIRMED || status == NFS4_CLIENT_GONE)
		rc = -ENOENT;
	else if (!nfs4_record_is_idle(&cl->record) || !nfs4_record_revoke(all->srv, &cl->record))
		rc = -RN_ESOON;
	if (rc == 0)
		nfs4_client_forget(all, cl, NFS4_CLIENT_EXPIRED);
	else
		nfs4_client_put(cl);
	return rc;
}
