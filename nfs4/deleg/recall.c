/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/log_ids.h"
#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/deleg/deleg_pressure.h"
#include "nfs4/deleg/delegations.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/recovery/client_records.h"
#include "nfs4/state/holdings.h"
#include "nfs4/state/stateid_check.h"

/* Seconds before a client that did not take a CB_RECALL is told again. */
#define AGAIN_S 1u

int nfs4_recalls_new(struct nfs4_server *srv)
{
	struct nfs4_recall_list *list = calloc(1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	pthread_mutex_init(&list->lock, NULL);
	TAILQ_INIT(&list->clients);
	srv->recalls = list;
	return 0;
}

void nfs4_recalls_free(struct nfs4_recall_list *list)
{
	if (list)
		pthread_mutex_destroy(&list->lock);
	free(list);
}

/* The next delegation that the client is to be told of now, with a reference; NULL: none. */
static struct nfs4_deleg *recall_next_call(struct nfs4_client *cl)
{
	struct nfs4_recall_queue *rs = &cl->holdings->recalls;
	struct nfs4_deleg *d = TAILQ_FIRST(&rs->due);

	if (!d || rs->calls >= NFS4_CB_SLOTS || d->call_at > nfs4_clients_now(cl->srv))
		return NULL;
	TAILQ_REMOVE(&rs->due, d, due_link);
	d->due = false;
	rs->calls++;
	nfs4_state_ref(&d->st);
	nfs4_state_stateid(&d->st, &d->call.stateid);
	return d;
}

/* The functions below are called without locks. */

static void recall_ended(struct nfs4_recall *r, bool taken);

static void recall_send(struct nfs4_deleg *d)
{
	d->call.fh = d->fh;
	d->call.fh_len = d->fh_len;
	d->call.ended = recall_ended;
	d->call.cb.referring = &d->giver;
	nfs4_recall(d->st.client, &d->call);
}

/* Sends what can be sent. One thread at a time does so: a call that fails at once, and so ends
 * within recall_send(), does not begin the next from there. The caller holds a reference of cl. */
static void recall_pump(struct nfs4_client *cl)
{
	struct nfs4_recall_queue *rs = &cl->holdings->recalls;
	struct nfs4_deleg *d;

	pthread_mutex_lock(&cl->lock);
	rs->pump_again = true;
	while (!rs->pumping && rs->pump_again) {
		rs->pumping = true;
		rs->pump_again = false;
		while ((d = recall_next_call(cl))) {
			pthread_mutex_unlock(&cl->lock);
			recall_send(d);
			pthread_mutex_lock(&cl->lock);
		}
		rs->pumping = false;
	}
	pthread_mutex_unlock(&cl->lock);
}

static void recall_ended(struct nfs4_recall *r, bool taken)
{
	struct nfs4_deleg *d = rn_container_of(r, struct nfs4_deleg, call);
	struct nfs4_client *cl = d->st.client;
	struct nfs4_recall_queue *rs = &cl->holdings->recalls;

	pthread_mutex_lock(&cl->lock);
	rs->calls--;
	if (!taken && d->queued) {
		d->due = true;
		d->call_at = nfs4_clients_now(cl->srv) + AGAIN_S;
		TAILQ_INSERT_TAIL(&rs->due, d, due_link);
	}
	pthread_mutex_unlock(&cl->lock);
	recall_pump(cl);
	nfs4_state_unref(&d->st);
}

/* d stays while this runs, and so does its client: vfs_deleg_end() waits for it. */
static void recall_deleg(struct vfs_deleg *v)
{
	struct nfs4_deleg *d = rn_container_of(v, struct nfs4_deleg, vfs);
	struct nfs4_client *cl = d->st.client;
	bool known;

	pthread_mutex_lock(&cl->lock);
	d->recalled = true;
	known = d->given && !d->queued;
	if (known) {
		nfs4_deleg_count_recalled(d);
		nfs4_recall_enqueue(d);
	}
	pthread_mutex_unlock(&cl->lock);
	if (known)
		recall_pump(cl);
}

void nfs4_recall_own(struct nfs4_deleg *d)
{
	recall_deleg(&d->vfs);
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

const struct vfs_deleg_ops nfs4_recall_ops = { .recall = recall_deleg,
					       .tell = nfs4_dir_notify_told };

/* A client of the list that this round has not visited, with a reference; NULL: none. */
static struct nfs4_client *next_client(struct nfs4_recall_list *list)
{
	struct nfs4_recall_queue *rs;
	struct nfs4_client *cl = NULL;

	pthread_mutex_lock(&list->lock);
	rs = TAILQ_FIRST(&list->clients);
	if (rs && rs->round != list->round) {
		rs->round = list->round;
		TAILQ_REMOVE(&list->clients, rs, link);
		TAILQ_INSERT_TAIL(&list->clients, rs, link);
		cl = rs->client;
		nfs4_client_ref(cl);
	}
	pthread_mutex_unlock(&list->lock);
	return cl;
}

/* Under the client's lock. */
static bool is_overdue(const struct nfs4_deleg *d)
{
	const struct nfs4_server *srv = d->st.client->srv;
	uint64_t seconds = srv->cfg.lease_seconds;

	d->st.client->holdings->recalls.looks++;
	if (d->vfs.within_s > 0 && d->vfs.within_s < seconds)
		seconds = d->vfs.within_s;
	return nfs4_clients_now(srv) >= d->recalled_at + seconds;
}

/* Moves what was not returned in time to the front, in one walk. False: there is nothing. */
static bool find_overdue(struct nfs4_client *cl)
{
	struct nfs4_recall_queue *rs = &cl->holdings->recalls;
	struct nfs4_deleg *d, *next;
	bool found = false;

	pthread_mutex_lock(&cl->lock);
	for (d = TAILQ_FIRST(&rs->all); d; d = next) {
		next = TAILQ_NEXT(d, recall_link);
		if (!is_overdue(d))
			continue;
		TAILQ_REMOVE(&rs->all, d, recall_link);
		TAILQ_INSERT_HEAD(&rs->all, d, recall_link);
		found = true;
	}
	pthread_mutex_unlock(&cl->lock);
	return found;
}

/* The one at the front with a reference, if it was not returned in time; NULL: none is left there. */
static struct nfs4_deleg *first_overdue(struct nfs4_client *cl)
{
	struct nfs4_deleg *d;

	pthread_mutex_lock(&cl->lock);
	d = TAILQ_FIRST(&cl->holdings->recalls.all);
	if (d && !is_overdue(d))
		d = NULL;
	if (d)
		nfs4_state_ref(&d->st);
	pthread_mutex_unlock(&cl->lock);
	return d;
}

static void log_revoked(struct nfs4_client *cl, unsigned n)
{
	static const struct rn_log_event event = { .id = RN_ID_DELEGATIONS_REVOKED };
	unsigned left_out;

	if (!rn_log_limit_pass(&cl->srv->recalls->revoked, rn_now_ns(), &left_out))
		return;
	rn_log_event(cl->srv->cfg.log, RN_NOTICE, &event,
		     "client %llx has not returned %u delegations in time: they are revoked",
		     (unsigned long long)cl->clientid, n);
	if (left_out)
		rn_notice(cl->srv->cfg.log, "%u more such clients are not named", left_out);
}

/* Revokes what is overdue. It is on disk first that the client has lost a delegation: otherwise it
 * could reclaim after a restart what others have changed since. */
static void revoke_overdue(struct nfs4_client *cl)
{
	struct nfs4_deleg *d;
	unsigned n = 0;

	if (!find_overdue(cl) || !nfs4_record_add(cl->srv, &cl->record, NFS4_RECORD_DELEG_LOST))
		return;
	/* Each one leaves the front, here or with the thread that ends it meanwhile. */
	while ((d = first_overdue(cl))) {
		/* Clients of minor version 0 cannot free its stateid, which is unknown from now on,
		 * as in nfsd. */
		if (cl->sessions)
			nfs4_deleg_revoke(d, NFS4ERR_DELEG_REVOKED);
		else
			nfs4_deleg_end(d);
		n++;
		nfs4_state_unref(&d->st);
	}
	if (n > 0)
		log_revoked(cl, n);
}

static void tick_client(struct nfs4_client *cl)
{
	if (!nfs4_client_is_alive(cl)) {
		nfs4_client_expire_courtesy(cl->srv, cl);
		return;
	}
	revoke_overdue(cl);
	recall_pump(cl);
}

void nfs4_recalls_tick(struct nfs4_server *srv)
{
	struct nfs4_recall_list *list = srv->recalls;
	struct nfs4_client *cl;

	pthread_mutex_lock(&list->lock);
	list->round++;
	pthread_mutex_unlock(&list->lock);
	while ((cl = next_client(list))) {
		tick_client(cl);
		nfs4_client_put(cl);
	}
}

/* Clients keep delegations that nobody wants, so those of an export that is drained are recalled. */

#define RECALLS_MAX 5000u /* at a call */
#define PIECES 1000u	  /* of the walk, between two looks at what is drained */

struct drain_walk {
	struct nfs4_server *srv;
	uint32_t *id; /* exports that are drained, by their ids */
	size_t n, room;
	unsigned recalls;
};

static bool drain_recall_add_export(void *arg, struct vfs_export *exp)
{
	struct drain_walk *r = arg;
	const size_t room = r->n < r->room ? r->room : 2 * r->room + 16;
	uint32_t *more;

	if (!vfs_export_is_draining(exp))
		return true;
	more = room == r->room ? r->id : realloc(r->id, room * sizeof(r->id[0]));
	if (!more)
		return false;
	r->id = more;
	r->room = room;
	r->id[r->n++] = vfs_export_id(exp);
	return true;
}

static int drain_recall_compare_ids(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static bool drain_recall_deleg(void *arg, const struct nfs4_view_state *st)
{
	struct drain_walk *r = arg;

	if (st->recalled || st->revoked ||
	    !bsearch(&st->export_id, r->id, r->n, sizeof(r->id[0]), drain_recall_compare_ids))
		return true;
	nfs4_recall_delegation(r->srv, st->id);
	return ++r->recalls < RECALLS_MAX;
}

void nfs4_drain_tick(struct nfs4_server *srv)
{
	struct drain_walk r = { .srv = srv };
	const struct nfs4_view_query q = { .kind = NFS4_VIEW_DELEGATIONS,
					   .show = drain_recall_deleg,
					   .arg = &r };
	struct nfs4_view_cursor at = { 0 };

	if (atomic_load(&srv->drain) == NFS4_DRAIN_NONE)
		return;
	srv->cfg.exports.each(srv->cfg.exports.ctx, drain_recall_add_export, &r);
	if (r.n > 0)
		qsort(r.id, r.n, sizeof(r.id[0]), drain_recall_compare_ids);
	while (r.n > 0 && r.recalls < RECALLS_MAX && atomic_load(&srv->drain) != NFS4_DRAIN_NONE &&
	       !nfs4_view(srv, &q, &at, PIECES))
		;
	free(r.id);
}
