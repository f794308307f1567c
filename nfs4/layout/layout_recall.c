/* SPDX-License-Identifier: BSD-2-Clause */
/* Recalls of layouts whose data server is gone, and walks over a client's layouts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/layout/data_server.h"
#include "nfs4/layout/layouts.h"
#include "nfs4/state/stateid_check.h"

#define AGAIN_S 1u	/* before a client that did not take a CB_LAYOUTRECALL is told again */
#define CALLS_MAX 1024u /* CB_LAYOUTRECALLs in a second */
#define AT_ONCE 256u /* entries of a client's table that are looked at under one hold of its lock */

int nfs4_layouts_new(struct nfs4_server *srv)
{
	struct nfs4_layouts *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	TAILQ_INIT(&all->recalled);
	all->max_of_client = NFS4_LAYOUTS_MAX;
	srv->layouts = all;
	return 0;
}

void nfs4_layouts_free(struct nfs4_layouts *all)
{
	struct nfs4_layout *l;

	while (all && (l = TAILQ_FIRST(&all->recalled))) {
		TAILQ_REMOVE(&all->recalled, l, link);
		nfs4_state_unref(&l->st);
	}
	free(all);
}

void nfs4_layouts_held(const struct nfs4_layouts *all, struct nfs4_held *out)
{
	out->layouts_given = atomic_load(&all->given);
	out->layouts_taken = atomic_load(&all->taken);
	out->layout_errors = atomic_load(&all->errors);
}

/* Looks at the next entries of a client from *entry on, which moves behind them. */
static unsigned walk_piece(struct nfs4_client *cl, const struct nfs4_layout_walk *w,
			   uint32_t *entry, struct nfs4_layout *found[AT_ONCE])
{
	unsigned n = 0;

	pthread_mutex_lock(&cl->lock);
	const uint32_t end = nfs4_stateid_entries(cl->holdings);

	for (unsigned i = 0; i < AT_ONCE && *entry < end; i++, ++*entry) {
		struct nfs4_state *st = nfs4_stateid_at(cl->holdings, *entry);

		if (!st || st->kind != NFS4_STATE_LAYOUT || st->gone ||
		    !w->pick(w->arg, nfs4_as_layout(st)))
			continue;
		nfs4_state_ref(st);
		found[n++] = nfs4_as_layout(st);
	}
	if (*entry >= end)
		*entry = UINT32_MAX;
	pthread_mutex_unlock(&cl->lock);
	return n;
}

void nfs4_layouts_walk(struct nfs4_client *cl, const struct nfs4_layout_walk *w)
{
	struct nfs4_layout *found[AT_ONCE];
	uint32_t entry = 0;

	while (entry != UINT32_MAX) {
		const unsigned n = walk_piece(cl, w, &entry, found);

		for (unsigned i = 0; i < n; i++)
			w->each(w->arg, found[i]);
	}
}

struct lost {
	struct nfs4_server *srv;
	uint8_t ids[NFS4_DEVICES_MAX][NFS4_DEVICEID_SIZE];
	unsigned n;
};

static bool device_is_among(const uint8_t (*ids)[NFS4_DEVICEID_SIZE], unsigned n, const uint8_t *id)
{
	for (unsigned i = 0; i < n; i++) {
		if (memcmp(ids[i], id, NFS4_DEVICEID_SIZE) == 0)
			return true;
	}
	return false;
}

static bool has_lost(void *arg, const struct nfs4_layout *l)
{
	const struct lost *lost = arg;

	return !l->recalled && !device_is_among(lost->ids, lost->n, l->device);
}

/* Its seqid is that of the recall from now on (RFC 8881 section 12.5.3), however often the client is told. */
static void begin_recall(void *arg, struct nfs4_layout *l)
{
	struct nfs4_server *srv = ((struct lost *)arg)->srv;

	pthread_mutex_lock(&l->st.client->lock);
	l->recalled = true;
	l->recalled_at = l->call_at = nfs4_clients_now(srv);
	l->st.seqid = nfs4_next_seqid(l->st.seqid);
	pthread_mutex_unlock(&l->st.client->lock);
	TAILQ_INSERT_TAIL(&srv->layouts->recalled, l, link);
}

static void recall_lost(struct nfs4_server *srv, struct lost *lost)
{
	const struct nfs4_layout_walk w = { .pick = has_lost, .each = begin_recall, .arg = lost };
	struct nfs4_client *cl;
	uint32_t number = 0;

	while ((cl = nfs4_client_after(srv, number))) {
		number = cl->number;
		nfs4_layouts_walk(cl, &w);
		nfs4_client_put(cl);
	}
}

static void layout_recall_ended(struct nfs4_layout_recall *r, enum nfs4_layout_recall_end how)
{
	struct nfs4_layout *l = rn_container_of(r, struct nfs4_layout, call);
	struct nfs4_client *cl = l->st.client;

	pthread_mutex_lock(&cl->lock);
	l->calling = false;
	l->told = how == NFS4_LAYOUT_TOLD;
	l->call_at = nfs4_clients_now(cl->srv) + AGAIN_S;
	pthread_mutex_unlock(&cl->lock);
	if (how == NFS4_LAYOUT_NONE)
		nfs4_layout_end(l);
	nfs4_state_unref(&l->st);
}

static void log_taken(struct nfs4_client *cl)
{
	unsigned left_out;

	if (!rn_log_limit_pass(&cl->srv->layouts->told_taken, rn_now_ns(), &left_out))
		return;
	rn_notice(cl->srv->cfg.log,
		  "client %llx has not returned a layout in time: it is taken from it; "
		  "%u more since the last such message",
		  (unsigned long long)cl->clientid, left_out);
}

enum recall_state { RECALL_OVER, RECALL_LATE, RECALL_CALLS, RECALL_WAITS };

/* Tells what is to be done; for RECALL_CALLS the call is prepared, with a reference. */
static enum recall_state look_at_recall(struct nfs4_layout *l, bool may_call)
{
	struct nfs4_client *cl = l->st.client;
	const uint64_t now = nfs4_clients_now(cl->srv);
	const bool alive = nfs4_client_is_alive(cl);
	enum recall_state state = RECALL_WAITS;

	pthread_mutex_lock(&cl->lock);
	if (l->st.gone) {
		state = RECALL_OVER;
	} else if (!alive || now >= l->recalled_at + cl->srv->cfg.lease_seconds) {
		state = RECALL_LATE;
	} else if (may_call && !l->calling && !l->told && now >= l->call_at) {
		state = RECALL_CALLS;
		l->calling = true;
		nfs4_state_stateid(&l->st, &l->call.stateid);
		nfs4_state_ref(&l->st);
	}
	pthread_mutex_unlock(&cl->lock);
	return state;
}

/* True if the recall goes on. */
static bool go_on_with_recall(struct nfs4_layout *l, unsigned *calls)
{
	struct nfs4_client *cl = l->st.client;

	switch (look_at_recall(l, *calls < CALLS_MAX)) {
	case RECALL_LATE:
		nfs4_layout_end(l);
		atomic_fetch_add(&cl->srv->layouts->taken, 1);
		log_taken(cl);
		return false;
	case RECALL_CALLS:
		++*calls;
		l->call.fh = l->fh;
		l->call.fh_len = l->fh_len;
		l->call.ended = layout_recall_ended;
		l->call.cb.referring = &l->giver;
		nfs4_layout_recall(cl, &l->call);
		return true;
	case RECALL_WAITS:
		return true;
	case RECALL_OVER:
		return false;
	}
	return false;
}

static void go_on(struct nfs4_layouts *all)
{
	struct nfs4_layout *l, *next;
	unsigned calls = 0;

	for (l = TAILQ_FIRST(&all->recalled); l; l = next) {
		next = TAILQ_NEXT(l, link);
		if (go_on_with_recall(l, &calls))
			continue;
		TAILQ_REMOVE(&all->recalled, l, link);
		nfs4_state_unref(&l->st);
	}
}

/* Tells all clients that hear of devices that the oldest one that is gone is so. */
static void tell_of_oldest(struct nfs4_server *srv)
{
	struct nfs4_layouts *all = srv->layouts;
	struct nfs4_client *cl;
	uint32_t number = 0;

	while ((cl = nfs4_client_after(srv, number))) {
		number = cl->number;
		if (atomic_load(&cl->holdings->hears_of_devices))
			nfs4_tell_device_gone(cl, all->gone[0].id);
		nfs4_client_put(cl);
	}
	all->ngone--;
	memmove(&all->gone[0], &all->gone[1], all->ngone * sizeof(all->gone[0]));
}

/* Notes devices that are not among the present ones any more. */
static void note_gone(struct nfs4_server *srv, const struct lost *now)
{
	struct nfs4_layouts *all = srv->layouts;

	for (unsigned i = 0; i < all->nids; i++) {
		if (device_is_among(now->ids, now->n, all->ids[i]))
			continue;
		if (all->ngone == NFS4_DEVICES_MAX)
			tell_of_oldest(srv);
		memcpy(all->gone[all->ngone].id, all->ids[i], NFS4_DEVICEID_SIZE);
		all->gone[all->ngone++].tell_at =
			nfs4_clients_now(srv) + srv->cfg.lease_seconds + 1;
	}
	memcpy(all->ids, now->ids, sizeof(all->ids));
	all->nids = now->n;
}

static bool are_as_before(const struct nfs4_layouts *all, const struct lost *now)
{
	return all->nids == now->n &&
	       memcmp(all->ids, now->ids, now->n * (size_t)NFS4_DEVICEID_SIZE) == 0;
}

void nfs4_layouts_tick(struct nfs4_server *srv)
{
	struct nfs4_layouts *all = srv->layouts;
	struct lost lost = { .srv = srv };

	if (!nfs4_gives_layouts(srv))
		return;
	lost.n = nfs4_device_ids(srv, lost.ids);
	if (!are_as_before(all, &lost)) {
		note_gone(srv, &lost);
		recall_lost(srv, &lost);
	}
	go_on(all);
	while (all->ngone > 0 && nfs4_clients_now(srv) >= all->gone[0].tell_at)
		tell_of_oldest(srv);
}
