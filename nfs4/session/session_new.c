/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation of a session, and eviction for its memory. */
#include <stdlib.h>

#include "nfs4/session/make_room.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/session/sequence.h"

/* Counts a session. If there are too many, courtesy clients are evicted first, then clients without
 * state of the host that has most. */
static int count_session(struct nfs4_clients *all, const struct nfs4_host *h)
{
	const unsigned most = all->srv->cfg.max_sessions;

	for (unsigned i = 0; atomic_fetch_add(&all->nsessions, 1) >= most && most > 0; i++) {
		enum nfs4_expire how = NFS4_DROPPING;

		atomic_fetch_sub(&all->nsessions, 1);
		if (i < NFS4_EVICT_MOST)
			how = nfs4_clients_evict(all);
		if (how == NFS4_HOLDS && i < NFS4_EVICT_MOST &&
		    nfs4_clients_shed(all, NFS4_SESSIONS, nfs4_host_has(h, NFS4_SESSIONS) + 1))
			continue;
		if (how != NFS4_DROPPED)
			return how == NFS4_DROPPING ? NFS4ERR_DELAY : NFS4ERR_NOSPC;
	}
	return NFS4_OK;
}

int nfs4_session_new(struct nfs4_client *cl, const struct nfs4_channel *fore,
		     const struct nfs4_channel *back, struct nfs4_session **out)
{
	const size_t slots = NFS4_SLOT_PIECE * sizeof(struct nfs4_slot);
	struct nfs4_clients *all = cl->srv->clients;
	struct nfs4_session *s = NULL;
	int status = count_session(all, cl->host);

	if (status != NFS4_OK)
		return status;
	/* Memory for the first slots is included, so that the session can be used. */
	if (nfs4_clients_take(all, cl->host, sizeof(*s) + slots, NFS4_TO_BEGIN))
		s = calloc(1, sizeof(*s));
	else
		goto uncount;
	if (!s)
		goto give;
	nfs4_client_ref(cl);
	nfs4_host_count(cl->host, NFS4_SESSIONS, 1);
	s->client = cl;
	s->made = nfs4_clients_now(cl->srv);
	s->fore = *fore;
	s->back = *back;
	s->nslots = s->target = fore->max_requests;
	s->cost = sizeof(*s);
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	nfs4_session_name(s);
	nfs4_host_give(cl->host, slots);
	nfs4_slot_get(s, 0);
	*out = s;
	return NFS4_OK;
give:
	nfs4_host_give(cl->host, sizeof(*s) + slots);
uncount:
	atomic_fetch_sub(&all->nsessions, 1);
	return NFS4ERR_DELAY;
}
