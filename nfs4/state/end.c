/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of single states, at the administrator's request. */
#include "lib/error.h"
#include "nfs4/nfs4_end.h"

#include <errno.h>
#include <time.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/recall.h"
#include "nfs4/state/state.h"

/* Attempts to get an open that an operation has, and the pause between two of them. */
#define ATTEMPTS 200u
#define PAUSE_NS 5000000

static const enum nfs4_state_kind kinds[] = {
	[NFS4_VIEW_OPENS] = NFS4_STATE_OPEN,
	[NFS4_VIEW_LOCKS] = NFS4_STATE_LOCK,
	[NFS4_VIEW_DELEGATIONS] = NFS4_STATE_DELEG,
};

/* The state with that id, with a reference, unless it was revoked; or NULL. */
static struct nfs4_state *nfs4_state_by_view_id(struct nfs4_server *s, enum nfs4_view_kind kind,
						uint64_t id)
{
	struct nfs4_client *cl = nfs4_client_by_number(s, (uint32_t)(id >> 32));
	struct nfs4_state *st;

	if (!cl)
		return NULL;
	pthread_mutex_lock(&cl->lock);
	st = nfs4_stateid_find(cl->holdings, (uint32_t)id);
	if (st && (st->kind != kinds[kind] || st->gone || st->revoked))
		st = NULL;
	if (st)
		nfs4_state_ref(st);
	pthread_mutex_unlock(&cl->lock);
	nfs4_client_put(cl);
	return st;
}

static bool nfs4_open_enter_soon(struct nfs4_open *open)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (rn_lock_try(&open->busy))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static int end_open_or_lock(struct nfs4_state *st)
{
	struct nfs4_open *open = nfs4_open_of(st);

	if (!nfs4_record_distrust(st->client->srv, &st->client->record))
		return -RN_ESOON;
	if (!nfs4_open_enter_soon(open))
		return -EBUSY;
	const bool ended = st->kind == NFS4_STATE_OPEN
				   ? nfs4_open_revoke(open, NFS4ERR_ADMIN_REVOKED)
				   : nfs4_lock_revoke(nfs4_as_lock(st), NFS4ERR_ADMIN_REVOKED);

	rn_lock_give(&open->busy);
	return ended ? 0 : -ENOENT;
}

static int end_deleg(struct nfs4_state *st)
{
	if (!nfs4_record_add(st->client->srv, &st->client->record, NFS4_RECORD_DELEG_LOST))
		return -RN_ESOON;
	nfs4_revoke(st, NFS4ERR_ADMIN_REVOKED);
	return 0;
}

int nfs4_end_state(struct nfs4_server *s, enum nfs4_view_kind kind, uint64_t id)
{
	struct nfs4_state *st = nfs4_state_by_view_id(s, kind, id);

	if (!st)
		return -ENOENT;
	const int rc = st->kind == NFS4_STATE_DELEG ? end_deleg(st) : end_open_or_lock(st);

	nfs4_state_unref(st);
	return rc;
}

int nfs4_recall_delegation(struct nfs4_server *s, uint64_t id)
{
	struct nfs4_state *st = nfs4_state_by_view_id(s, NFS4_VIEW_DELEGATIONS, id);

	if (!st)
		return -ENOENT;
	nfs4_recall_own(nfs4_as_deleg(st));
	nfs4_state_unref(st);
	return 0;
}
