/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When memory is short, SEQUENCE's replies tell clients to use fewer slots (nfs4/client/slot.c). A client that sends no
 * requests does not read that, and its session keeps its replies. It is told by CB_RECALL_SLOT, and then sends a
 * SEQUENCE (RFC 8881 section 20.8.3).
 */
#include "lib/budget.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/session.h"
#include "nfs4/session/sequence.h"
#include "nfs4/callback/cb_recall_slot.h"

bool nfs4_session_short_of_memory(const struct nfs4_session *s)
{
	const struct rn_budget *b = s->client->srv->cfg.budget;

	return atomic_load_explicit(&b->used, memory_order_relaxed) > b->max - b->max / 8 ||
	       nfs4_host_has_its_share(s->client->host, b->max / 8);
}

/* Under the session's lock. True: the client is to be told of s->target. */
static bool shrink(struct nfs4_session *s)
{
	const bool idle = !s->active && s->busy == 0;

	s->active = false;
	if (!idle || s->dead || s->slots_recalled || s->nslots <= NFS4_SLOTS_LEAST ||
	    s->nmade <= NFS4_SLOTS_LEAST || !s->cb_path || s->cb_path->state != NFS4_CB_UP ||
	    !nfs4_session_short_of_memory(s))
		return false;
	s->short_of_memory = true;
	s->slots_recalled = true;
	s->target = NFS4_SLOTS_LEAST;
	s->target_state = NFS4_TARGET_NEW;
	return true;
}

/* A session whose idle slots are to be recalled, with a reference; NULL: none. */
static struct nfs4_session *next_idle(struct nfs4_client *cl)
{
	struct nfs4_session *s;
	bool found = false;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (s, &cl->session_list, of_client) {
		pthread_mutex_lock(&s->lock);
		found = shrink(s);
		pthread_mutex_unlock(&s->lock);
		if (found)
			break;
	}
	if (found)
		nfs4_session_ref(s);
	pthread_mutex_unlock(&cl->lock);
	return found ? s : NULL;
}

bool nfs4_client_recall_slots(struct nfs4_client *cl)
{
	struct nfs4_session *s = next_idle(cl);

	if (!s)
		return false;
	nfs4_recall_slots(s, NFS4_SLOTS_LEAST - 1);
	nfs4_session_put(s);
	return true;
}
