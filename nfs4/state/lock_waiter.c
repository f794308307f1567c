/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/lock_waiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/owner.h"
#include "vfs/vfs_image.h"

enum waiter_state {
	WAITER_WAITS,  /* vfs/ has its notice */
	WAITER_CALLED, /* CB_NOTIFY_LOCK is under way */
	WAITER_AGAIN,  /* the waiter is to be told again */
};

struct nfs4_lock_waiter {
	struct vfs_lock_notice notice;
	struct nfs4_notify_lock note;
	_Atomic uint32_t refs;
	struct nfs4_client *client; /* a reference */
	struct vfs_file *file;	    /* a reference */
	uint64_t id;		    /* vfs_lock_request.waiter */
	uint32_t lock;		    /* its stateid's id, which the owner may have no more */
	uint32_t since;		    /* seconds of nfs4_clients_now() */
	uint32_t lapsed;	    /* nfs4_clients_lapsed() when the lock was refused */
	bool listed;		    /* in holdings.waiters; under the client's lock */
	enum waiter_state state;    /* changes only while it is listed; likewise */
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

/* A waiter whom the callback did not reach is told again; the list takes the callback's reference over. */
static void nfs4_lock_waiter_ended(struct nfs4_notify_lock *n, bool told)
{
	struct nfs4_lock_waiter *w = rn_container_of(n, struct nfs4_lock_waiter, note);
	bool again;

	pthread_mutex_lock(&w->client->lock);
	again = !told && w->listed;
	if (again)
		w->state = WAITER_AGAIN;
	else
		unlist_locked(w);
	pthread_mutex_unlock(&w->client->lock);
	if (!again)
		nfs4_lock_waiter_put(w);
}

static void nfs4_lock_waiter_tell(struct vfs_lock_notice *n)
{
	struct nfs4_lock_waiter *w = rn_container_of(n, struct nfs4_lock_waiter, notice);

	pthread_mutex_lock(&w->client->lock);
	if (w->listed)
		w->state = WAITER_CALLED;
	pthread_mutex_unlock(&w->client->lock);
	nfs4_notify_lock(w->client, &w->note);
}

static void nfs4_lock_waiter_end(struct vfs_lock_notice *n)
{
	struct nfs4_lock_waiter *w = rn_container_of(n, struct nfs4_lock_waiter, notice);

	pthread_mutex_lock(&w->client->lock);
	unlist_locked(w);
	pthread_mutex_unlock(&w->client->lock);
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

/* note: what the client is told. */
static struct nfs4_lock_waiter *waiter_new(struct nfs4_client *cl, struct vfs_file *f,
					   const struct nfs4_notify_lock *note)
{
	struct nfs4_lock_waiter *w;

	if (note->owner_len > NFS4_NOTIFY_OWNER_MAX)
		return NULL;
	w = calloc(1, sizeof(*w) + note->fh_len + note->owner_len);
	if (!w)
		return NULL;
	memcpy(w->bytes, note->fh, note->fh_len);
	memcpy(w->bytes + note->fh_len, note->owner, note->owner_len);
	w->notice.ops = &notice_ops;
	w->note = (struct nfs4_notify_lock){
		.fh = w->bytes,
		.fh_len = note->fh_len,
		.owner = w->bytes + note->fh_len,
		.owner_len = note->owner_len,
		.ended = nfs4_lock_waiter_ended,
	};
	atomic_init(&w->refs, 1);
	w->since = (uint32_t)nfs4_clients_now(cl->srv);
	w->lapsed = nfs4_clients_lapsed(cl->srv);
	w->client = cl;
	w->file = f;
	if (!nfs4_lock_waiter_enlist(w)) {
		free(w);
		return NULL;
	}
	nfs4_client_ref(w->client);
	vfs_file_ref(w->file);
	return w;
}

static struct nfs4_lock_waiter *waiter_of_call(const struct nfs4_compound *c,
					       const struct nfs4_lock *lock, uint64_t id, bool held)
{
	const struct nfs4_owner *o = lock->st.owner;
	const struct nfs4_notify_lock note = { .fh = c->current.fh.data,
					       .fh_len = c->current.fh.len,
					       .owner = o->name,
					       .owner_len = o->len };
	struct nfs4_lock_waiter *w = waiter_new(c->client, lock->st.file, &note);

	if (!w)
		return NULL;
	w->id = id;
	w->lock = lock->st.id;
	w->notice.owner = &lock->ranges;
	w->notice.held_by_client = held;
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
		w = waiter_of_call(c, lock, r->waiter, held);
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
		if (w->state == WAITER_AGAIN)
			nfs4_lock_waiter_put(w);
		else if (w->state == WAITER_WAITS)
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
		if (w->state == WAITER_CALLED ||
		    (w->state == WAITER_WAITS && w->notice.held_by_client && w->lapsed == lapsed))
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
	again = w->listed && w->state == WAITER_AGAIN;
	if (again)
		w->state = WAITER_CALLED;
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

/* Waiters in the image of the state (lib/image.h), behind their client's locks. One who is being told is told again. */

struct saved_lock_waiter {
	uint32_t file; /* vfs_file_number() */
	struct image_bytes fh, owner;
	uint64_t id;
	uint32_t lock;
	bool held, again;
	bool old; /* the lock was refused before the last lease that ran out */
	uint64_t age;
};
static const struct image_field lock_waiter_fields[] = {
	IMAGE_NUMBER(1, struct saved_lock_waiter, file),
	IMAGE_BYTES(3, struct saved_lock_waiter, fh),
	IMAGE_BYTES(4, struct saved_lock_waiter, owner),
	IMAGE_NUMBER(5, struct saved_lock_waiter, id),
	IMAGE_NUMBER(6, struct saved_lock_waiter, lock),
	IMAGE_NUMBER(7, struct saved_lock_waiter, held),
	IMAGE_NUMBER(8, struct saved_lock_waiter, again),
	IMAGE_NUMBER(9, struct saved_lock_waiter, old),
	IMAGE_NUMBER(10, struct saved_lock_waiter, age),
};
static const struct image_kind lock_waiter_kind = { NFS4_IMAGE_WAITER,
						    rn_array_size(lock_waiter_fields),
						    lock_waiter_fields };

void nfs4_lock_waiters_save(struct nfs4_client *cl, struct image_writer *w)
{
	const uint32_t now = (uint32_t)nfs4_clients_now(cl->srv);
	const struct nfs4_lock_waiter *at;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (at, &cl->holdings->waiters, link) {
		const struct saved_lock_waiter s = {
			.file = vfs_file_number(at->file),
			.fh = { at->note.fh, at->note.fh_len },
			.owner = { at->note.owner, at->note.owner_len },
			.id = at->id,
			.lock = at->lock,
			.held = at->notice.held_by_client,
			.again = at->state != WAITER_WAITS,
			.old = at->lapsed != nfs4_clients_lapsed(cl->srv),
			.age = now - at->since,
		};

		image_put(w, &lock_waiter_kind, &s);
	}
	pthread_mutex_unlock(&cl->lock);
}

/* The owner's lock of the file; NULL: it has none. */
static const struct vfs_lock_owner *own_ranges(struct nfs4_client *cl, const struct vfs_file *f,
					       const struct saved_lock_waiter *s)
{
	struct nfs4_state *st = nfs4_stateid_find(cl->holdings, s->lock);

	return st && st->kind == NFS4_STATE_LOCK && st->file == f &&
			       st->owner->len == s->owner.len &&
			       memcmp(st->owner->name, s->owner.at, s->owner.len) == 0
		       ? &nfs4_as_lock(st)->ranges
		       : NULL;
}

/* Takes the caller's reference over. */
static int enter_waiter(struct nfs4_lock_waiter *w, const struct saved_lock_waiter *s)
{
	int rc = 0;

	w->id = s->id;
	w->lock = s->lock;
	w->since -= (uint32_t)s->age;
	w->lapsed -= s->old;
	w->notice.owner = own_ranges(w->client, w->file, s);
	w->notice.held_by_client = s->held;
	if (s->again)
		w->state = WAITER_AGAIN;
	else
		rc = vfs_lock_load_notice(w->file, w->id, &w->notice);
	if (rc)
		nfs4_lock_waiter_end(&w->notice);
	return rc;
}

int nfs4_lock_waiter_load(struct nfs4_client *cl, struct image_at *at)
{
	struct saved_lock_waiter s = { .id = 0 };
	struct nfs4_lock_waiter *w;
	struct vfs_file *f;
	int rc = image_get(at, &lock_waiter_kind, &s);

	if (rc != 0 || !s.fh.at || s.fh.len > sizeof(((struct vfs_fh *)0)->data) || !s.owner.at ||
	    s.owner.len > NFS4_NOTIFY_OWNER_MAX)
		return -EPROTO;
	f = vfs_file_by_number(cl->srv->cfg.vfs, s.file);
	if (!f)
		return -EPROTO;
	w = waiter_new(cl, f,
		       &(struct nfs4_notify_lock){ .fh = s.fh.at,
						   .fh_len = s.fh.len,
						   .owner = s.owner.at,
						   .owner_len = s.owner.len });
	vfs_file_put(f);
	return w ? enter_waiter(w, &s) : -ENOMEM;
}
