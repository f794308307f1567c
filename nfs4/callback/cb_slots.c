/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slot whose call ended without an answer is lost: the client may have accepted its sequence id or
 * not, and a wrong guess would be taken for a retry of another call. When no slot is left, the
 * client is told to make a new session (SEQ4_STATUS_BACKCHANNEL_FAULT).
 */
#include "nfs4/callback/cb_slots.h"

#include <errno.h>

#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/session.h"

bool nfs4_cb_queue(struct nfs4_cb *cb)
{
	struct nfs4_session *s = cb->session;
	struct nfs4_cb_path *p = s->cb_path;
	bool queued;

	pthread_mutex_lock(&s->lock);
	queued = p->nwaiting < NFS4_CB_WAITING_MAX;
	if (queued) {
		TAILQ_INSERT_TAIL(&p->waiting, cb, link);
		p->nwaiting++;
	}
	pthread_mutex_unlock(&s->lock);
	return queued;
}

/* The functions below, down to the next comment, need the session's lock. */

/* The first free slot; NULL: there is none now. */
static struct nfs4_cb_slot *cb_slot_first_free(struct nfs4_cb_path *p)
{
	for (uint32_t i = 0; i < p->nslots; i++) {
		if (!p->slot[i].busy && !p->slot[i].lost)
			return &p->slot[i];
	}
	return NULL;
}

static bool all_lost(const struct nfs4_cb_path *p)
{
	for (uint32_t i = 0; i < p->nslots; i++) {
		if (!p->slot[i].lost)
			return false;
	}
	return true;
}

static void cb_slot_take(struct nfs4_cb_path *p, struct nfs4_cb_slot *slot, struct nfs4_cb *cb)
{
	slot->busy = true;
	cb->slot = (uint32_t)(slot - p->slot);
	cb->seqid = slot->seqid;
	for (uint32_t i = 0; i < NFS4_CB_SLOTS; i++) {
		if (p->slot[i].busy)
			cb->highest = i;
	}
	cb->sent = false;
	cb->conn = p->conn[p->nconns - 1];
	rpc_backchannel_ref(cb->conn);
}

static bool may_call(struct nfs4_session *s)
{
	const struct nfs4_cb_path *p = s->cb_path;

	return !s->dead && !p->fault && p->state != NFS4_CB_DOWN && nfs4_cb_is_connected(s);
}

struct nfs4_cb *nfs4_cb_next(struct nfs4_session *s, int *rc)
{
	struct nfs4_cb_path *p = s->cb_path;
	struct nfs4_cb_slot *slot;
	struct nfs4_cb *cb;

	pthread_mutex_lock(&s->lock);
	cb = TAILQ_FIRST(&p->waiting);
	slot = cb_slot_first_free(p);
	*rc = may_call(s) ? 0 : -ENOTCONN;
	if (cb && *rc == 0 && !slot)
		cb = NULL;
	if (cb) {
		TAILQ_REMOVE(&p->waiting, cb, link);
		p->nwaiting--;
		if (*rc == 0)
			cb_slot_take(p, slot, cb);
	}
	pthread_mutex_unlock(&s->lock);
	return cb;
}

bool nfs4_cb_next_conn(struct nfs4_cb *cb)
{
	struct nfs4_session *s = cb->session;
	struct nfs4_cb_path *p = s->cb_path;
	bool found;

	pthread_mutex_lock(&s->lock);
	nfs4_cb_unbind(s, cb->conn);
	rpc_backchannel_put(cb->conn);
	cb->conn = NULL;
	found = may_call(s);
	if (found) {
		cb->conn = p->conn[p->nconns - 1];
		rpc_backchannel_ref(cb->conn);
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

static void note_news(struct nfs4_cb_path *p, enum nfs4_cb_news news)
{
	switch (news) {
	case NFS4_CB_NO_NEWS:
		if (p->state == NFS4_CB_TRYING)
			p->state = NFS4_CB_UNTRIED;
		break;
	case NFS4_CB_ANSWERED:
		p->state = NFS4_CB_UP;
		break;
	case NFS4_CB_FAILED:
		p->state = NFS4_CB_DOWN;
		break;
	case NFS4_CB_BROKEN:
		p->fault = true;
		break;
	}
}

void nfs4_cb_give_slot(struct nfs4_cb *cb, enum nfs4_cb_fate fate, enum nfs4_cb_news news)
{
	struct nfs4_session *s = cb->session;
	struct nfs4_cb_path *p = s->cb_path;
	struct nfs4_cb_slot *slot = &p->slot[cb->slot];

	pthread_mutex_lock(&s->lock);
	slot->busy = false;
	if (fate == NFS4_CB_ACCEPTED)
		slot->seqid++;
	else if (fate == NFS4_CB_LOST)
		slot->lost = true;
	note_news(p, news);
	if (all_lost(p))
		p->fault = true;
	pthread_mutex_unlock(&s->lock);
}

void nfs4_cb_limit_slots(struct nfs4_session *s, uint32_t highest)
{
	const uint32_t most = (uint32_t)rn_min(s->back.max_requests, NFS4_CB_SLOTS);

	pthread_mutex_lock(&s->lock);
	s->cb_path->nslots = highest < most ? highest + 1 : most;
	pthread_mutex_unlock(&s->lock);
}
