/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/lock_waiter.h"

#include <stdlib.h>
#include <string.h>

#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/owner.h"

struct nfs4_lock_waiter {
	struct vfs_lock_notice notice;
	struct nfs4_notify_lock note;
	_Atomic uint32_t refs;
	struct nfs4_client *client; /* a reference */
	struct vfs_file *file;	    /* a reference */
	uint64_t id;		    /* vfs_lock_request.waiter */
	uint32_t since;		    /* seconds of nfs4_clients_now() */
	uint32_t lapsed;	    /* nfs4_clients_lapsed() when the lock was refused */
	bool listed;		    /* in holdings.waiters; under the client's lock */
	bool again;		    /* listed to be told again: vfs/ has no notice; likewise */
	LIST_ENTRY(nfs4_lock_waiter) link;
	uint8_t bytes[]; /* filehandle, owner */
};

static size_t nfs4_lock_waiter_cost(const struct nfs4_lock_waiter *w)
{
	return sizeof(*w) + w->note.fh_len + w->note.owner_len;
}

static void ref(struct nfs4_lock_waiter *w)
{
	atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
}

static void nfs4_lock_waiter_put(struct nfs4_lock_waiter *w)
{
	struct nfs4_client *cl = w->client;

	if (atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) > 1)
		return;
	pthread_mutex_lock(&cl->lock);
	nfs4_state_discharge(cl, nfs4_lock_waiter_cost(w));
	pthread_mutex_unlock(&cl->lock);
	vfs_file_put(w->file);
	free(w);
	nfs4_client_put(cl);
}

/* Under the client's lock. */
static void unlist_locked(struct nfs4_lock_waiter *w)
{
	if (!w->listed)
		return;
	w->listed = false;
	LIST_REMOVE(w, link);
	w->client->holdings->nwaiters--;
}

static void nfs4_lock_waiter_unlist(struct nfs4_lock_waiter *w)
{
	pthread_mutex_lock(&w->client->lock);
	unlist_locked(w);
	pthread_mutex_unlock(&w->client->lock);
}

/* Lists a waiter whom the callback did not reach; the list takes the callback's reference over. False:
 * it may not wait on. */
static bool nfs4_lock_waiter_relist(struct nfs4_lock_waiter *w)
{
	struct nfs4_client *cl = w->client;
	struct nfs4_holdings *held = cl->holdings;

	pthread_mutex_lock(&cl->lock);
	w->listed = w->again = !held->dropped && held->nwaiters < NFS4_WAITERS_MAX;
	if (w->listed) {
		LIST_INSERT_HEAD(&held->waiters, w, link);
		held->nwaiters++;
	}
	pthread_mutex_unlock(&cl->lock);
	return w->again;
}

static void nfs4_lock_waiter_ended(struct nfs4_notify_lock *n, bool told)
{
	struct nfs4_lock_waiter *w = rn_container_of(n, struct nfs4_lock_waiter, note);

	if (told || !nfs4_lock_waiter_relist(w))
		nfs4_lock_waiter_put(w);
}

static void nfs4_lock_waiter_tell(struct vfs_lock_notice *n)
{
	struct nfs4_lock_waiter *w = rn_container_of(n, struct nfs4_lock_waiter, notice);

	nfs4_lock_waiter_unlist(w);
	nfs4_notify_lock(w->client, &w->note);
}

static void nfs4_lock_waiter_end(struct vfs_lock_notice *n)
{
	struct nfs4_lock_waiter *w = rn_container_of(n, struct nfs4_lock_waiter, notice);

	nfs4_lock_waiter_unlist(w);
	nfs4_lock_waiter_put(w);
}

static const struct vfs_lock_notice_ops notice_ops = { .tell = nfs4_lock_waiter_tell,
						       .end = nfs4_lock_waiter_end };

/* Lists the waiter and charges it to its client. False: it may not wait. */
static bool nfs4_lock_waiter_enlist(struct nfs4_lock_waiter *w)
{
	struct nfs4_client *cl = w->client;
	struct nfs4_holdings *held = cl->holdings;

	pthread_mutex_lock(&cl->lock);
	w->listed = !held->dropped && held->nwaiters < NFS4_WAITERS_MAX &&
		    nfs4_state_charge(cl, nfs4_lock_waiter_cost(w));
	if (w->listed) {
		LIST_INSERT_HEAD(&held->waiters, w, link);
		held->nwaiters++;
	}
	pthread_mutex_unlock(&cl->lock);
	return w->listed;
}

bool nfs4_locks_are_notified(const struct nfs4_compound *c)
{
	return c->minor > 0 && nfs4_cb_works(c->session);
}

static struct nfs4_lock_waiter *waiter_new(struct nfs4_compound *c, const struct nfs4_lock *lock,
					   uint64_t id, bool held)
{
	const struct nfs4_owner *o = lock->st.owner;
	const struct vfs_fh *fh = &c->current.fh;
	struct nfs4_lock_waiter *w;

	if (o->len > NFS4_NOTIFY_OWNER_MAX)
		return NULL;
	w = calloc(1, sizeof(*w) + fh->len + o->len);
	if (!w)
		return NULL;
	memcpy(w->bytes, fh->data, fh->len);
	memcpy(w->bytes + fh->len, o->name, o->len);
	w->notice.ops = &notice_ops;
	w->notice.owner = &lock->ranges;
	w->notice.held_by_client = held;
	w->note = (struct nfs4_notify_lock){
		.fh = w->bytes,
		.fh_len = fh->len,
		.owner = w->bytes + fh->len,
		.owner_len = o->len,
		.ended = nfs4_lock_waiter_ended,
	};
	atomic_init(&w->refs, 1);
	w->id = id;
	w->since = (uint32_t)nfs4_clients_now(c->server);
	w->lapsed = nfs4_clients_lapsed(c->server);
	w->client = c->client;
	w->file = lock->st.file;
	if (!nfs4_lock_waiter_enlist(w)) {
		free(w);
		return NULL;
	}
	nfs4_client_ref(w->client);
	vfs_file_ref(w->file);
	return w;
}

static bool nfs4_lock_waiter_is_dropped(struct nfs4_client *cl)
{
	bool dropped;

	pthread_mutex_lock(&cl->lock);
	dropped = cl->holdings->dropped;
	pthread_mutex_unlock(&cl->lock);
	return dropped;
}

void nfs4_lock_wait(struct nfs4_compound *c, const struct nfs4_lock *lock,
		    const struct vfs_lock_request *r, bool held)
{
	struct nfs4_lock_waiter *w = NULL;

	if (r->waiter != 0 && nfs4_locks_are_notified(c))
		w = waiter_new(c, lock, r->waiter, held);
	if (w)
		ref(w);
	vfs_lock_remember_waiter(lock->st.file, r, w ? &w->notice : NULL);
	if (!w)
		return;
	/* The walk of nfs4_lock_waiters_drop may have met it before vfs/ knew it. */
	if (nfs4_lock_waiter_is_dropped(c->client))
		vfs_lock_forget_waiter(w->file, w->id);
	nfs4_lock_waiter_put(w);
}

/* A listed waiter, taken off the list, with a reference; else NULL. old: only one that has waited
 * for longer than that many seconds. */
static struct nfs4_lock_waiter *nfs4_lock_waiter_take(struct nfs4_client *cl, const uint32_t *old)
{
	const uint32_t now = (uint32_t)nfs4_clients_now(cl->srv);
	struct nfs4_lock_waiter *w;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (w, &cl->holdings->waiters, link) {
		if (!old || now - w->since > *old)
			break;
	}
	if (w) {
		ref(w);
		unlist_locked(w);
	}
	pthread_mutex_unlock(&cl->lock);
	return w;
}

static void nfs4_lock_waiter_forget(struct nfs4_client *cl, const uint32_t *old)
{
	struct nfs4_lock_waiter *w;

	while ((w = nfs4_lock_waiter_take(cl, old))) {
		if (w->again)
			nfs4_lock_waiter_put(w);
		else
			vfs_lock_forget_waiter(w->file, w->id);
		nfs4_lock_waiter_put(w);
	}
}

void nfs4_lock_waiters_drop(struct nfs4_client *cl)
{
	nfs4_lock_waiter_forget(cl, NULL);
}

#define AT_ONCE 64u

/*
 * Waiters that vfs/ does not tell, with a reference each. A client whose lease runs out keeps its
 * locks until somebody asks for them, so all have to ask again who were refused before one ran out.
 */
static unsigned find_untold(struct nfs4_client *cl, struct nfs4_lock_waiter *found[AT_ONCE])
{
	const uint32_t lapsed = nfs4_clients_lapsed(cl->srv);
	struct nfs4_lock_waiter *w;
	unsigned n = 0;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (w, &cl->holdings->waiters, link) {
		if (n == AT_ONCE)
			break;
		if (w->notice.held_by_client && w->lapsed == lapsed && !w->again)
			continue;
		ref(w);
		found[n++] = w;
	}
	pthread_mutex_unlock(&cl->lock);
	return n;
}

/* True if the waiter is to be told again; then the caller has the list's reference. */
static bool nfs4_lock_waiter_take_again(struct nfs4_lock_waiter *w)
{
	bool again;

	pthread_mutex_lock(&w->client->lock);
	again = w->listed && w->again;
	if (again) {
		unlist_locked(w);
		w->again = false;
	}
	pthread_mutex_unlock(&w->client->lock);
	return again;
}

void nfs4_lock_waiters_tick(struct nfs4_client *cl)
{
	struct nfs4_lock_waiter *found[AT_ONCE];
	const uint32_t lease = cl->srv->cfg.lease_seconds;
	unsigned n;

	nfs4_lock_waiter_forget(cl, &lease);
	n = find_untold(cl, found);
	for (unsigned i = 0; i < n; i++) {
		if (nfs4_lock_waiter_take_again(found[i]))
			nfs4_notify_lock(cl, &found[i]->note);
		else
			vfs_lock_tell_waiter(found[i]->file, found[i]->id);
		nfs4_lock_waiter_put(found[i]);
	}
}
