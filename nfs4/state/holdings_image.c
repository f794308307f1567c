/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's holdings in the image of the state: the generations of its stateids, its owners, opens, locks with their ranges, and waiters for locks. A state
 * names its owner by the number of that among the owners before it, and its file by the file's number. States that were revoked come last, as
 * in the client's list.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/object.h"
#include "nfs4/state/holdings.h"
#include "nfs4/state/lock_waiter.h"
#include "nfs4/state/owner.h"
#include "nfs4/state/state.h"
#include "vfs/vfs_image.h"

struct saved_stateids {
	struct image_bytes generations;
	uint64_t revoked_age; /* seconds since the last revocation */
	bool hears_of_devices;
};
static const struct image_field stateids_fields[] = {
	IMAGE_BYTES(1, struct saved_stateids, generations),
	IMAGE_NUMBER(2, struct saved_stateids, revoked_age),
	IMAGE_NUMBER(3, struct saved_stateids, hears_of_devices),
};
static const struct image_kind stateids_kind = { NFS4_IMAGE_STATEIDS,
						 rn_array_size(stateids_fields), stateids_fields };

struct saved_owner {
	uint8_t kind; /* enum nfs4_owner_kind */
	struct image_bytes name;
	bool unconfirmed, seq_known;
	uint32_t seqid, age;
	bool replays;
	uint32_t opnum, status;
	uint64_t sum;
	struct nfs4_reply_exports exports;
	struct image_bytes fh, body;
};
static const struct image_field saved_owner_fields[] = {
	IMAGE_NUMBER(1, struct saved_owner, kind),
	IMAGE_BYTES(2, struct saved_owner, name),
	IMAGE_NUMBER(3, struct saved_owner, unconfirmed),
	IMAGE_NUMBER(4, struct saved_owner, seq_known),
	IMAGE_NUMBER(5, struct saved_owner, seqid),
	IMAGE_NUMBER(6, struct saved_owner, age),
	IMAGE_NUMBER(7, struct saved_owner, replays),
	IMAGE_NUMBER(8, struct saved_owner, opnum),
	IMAGE_NUMBER(9, struct saved_owner, status),
	IMAGE_NUMBER(10, struct saved_owner, sum),
	IMAGE_FIXED(11, struct saved_owner, exports),
	IMAGE_BYTES(12, struct saved_owner, fh),
	IMAGE_BYTES(13, struct saved_owner, body),
};
static const struct image_kind saved_owner_kind = { NFS4_IMAGE_OWNER,
						    rn_array_size(saved_owner_fields),
						    saved_owner_fields };

/* Members that opens and locks have in common. */
struct saved_state {
	uint32_t id, seqid, revoked, owner, file;
	uint64_t age;
};
#define STATE_FIELDS(type)                                                                         \
	IMAGE_NUMBER(1, type, st.id), IMAGE_NUMBER(2, type, st.seqid),                             \
		IMAGE_NUMBER(3, type, st.revoked), IMAGE_NUMBER(4, type, st.owner),                \
		IMAGE_NUMBER(5, type, st.age), IMAGE_NUMBER(6, type, st.file)

struct saved_open {
	struct saved_state st;
	bool shared, advisory, stateid_sent, kept, closed;
	uint8_t share_access, deny, access;
	uint64_t opener;
	uint16_t combinations;
	uint32_t export_id;
	struct image_bytes fh;
};
static const struct image_field saved_open_fields[] = {
	STATE_FIELDS(struct saved_open),
	IMAGE_NUMBER(10, struct saved_open, shared),
	IMAGE_NUMBER(11, struct saved_open, advisory),
	IMAGE_NUMBER(12, struct saved_open, stateid_sent),
	IMAGE_NUMBER(13, struct saved_open, kept),
	IMAGE_NUMBER(14, struct saved_open, closed),
	IMAGE_NUMBER(15, struct saved_open, share_access),
	IMAGE_NUMBER(16, struct saved_open, deny),
	IMAGE_NUMBER(17, struct saved_open, access),
	IMAGE_NUMBER(18, struct saved_open, opener),
	IMAGE_NUMBER(19, struct saved_open, combinations),
	IMAGE_NUMBER(20, struct saved_open, export_id),
	IMAGE_BYTES(21, struct saved_open, fh),
};
static const struct image_kind saved_open_kind = { NFS4_IMAGE_OPEN,
						   rn_array_size(saved_open_fields),
						   saved_open_fields };

struct saved_lock {
	struct saved_state st;
	uint32_t open; /* id in the open's stateid */
};
static const struct image_field saved_lock_fields[] = {
	STATE_FIELDS(struct saved_lock),
	IMAGE_NUMBER(10, struct saved_lock, open),
};
static const struct image_kind saved_lock_kind = { NFS4_IMAGE_LOCK,
						   rn_array_size(saved_lock_fields),
						   saved_lock_fields };

static const struct image_field saved_range_fields[] = {
	IMAGE_NUMBER(1, struct vfs_locked_range, start),
	IMAGE_NUMBER(2, struct vfs_locked_range, end),
	IMAGE_NUMBER(3, struct vfs_locked_range, type),
};
static const struct image_kind saved_range_kind = { NFS4_IMAGE_RANGE,
						    rn_array_size(saved_range_fields),
						    saved_range_fields };

/* Seconds of nfs4_clients_now() since then. */
static uint64_t age_of(const struct nfs4_client *cl, uint32_t since)
{
	return (uint32_t)nfs4_clients_now(cl->srv) - since;
}

static uint32_t since_by_age(const struct nfs4_client *cl, uint64_t age)
{
	return (uint32_t)(nfs4_clients_now(cl->srv) - age);
}

static void save_owner(struct image_writer *w, struct nfs4_owner *o, uint32_t number)
{
	const struct nfs4_replay *r = o->replay && o->replay->opnum ? o->replay : NULL;
	struct saved_owner s = {
		.kind = o->kind,
		.name = { o->name, o->len },
		.unconfirmed = o->unconfirmed,
		.seq_known = o->seq_known,
		.seqid = o->seqid,
		.age = (uint32_t)age_of(o->client, o->since),
		.replays = r != NULL,
	};

	o->number = number;
	if (r) {
		s.opnum = r->opnum;
		s.status = r->status;
		s.sum = r->sum;
		s.exports = r->exports;
		s.fh = (struct image_bytes){ r->fh.data, r->fh.len };
		s.body = (struct image_bytes){ r->body, r->len };
	}
	image_put(w, &saved_owner_kind, &s);
}

static struct saved_state save_state(const struct nfs4_state *st)
{
	return (struct saved_state){
		.id = st->id,
		.seqid = st->seqid,
		.revoked = st->revoked,
		.owner = st->owner->number,
		.age = age_of(st->client, st->since),
		.file = vfs_file_number(st->file),
	};
}

static void save_open(struct image_writer *w, struct nfs4_open *open)
{
	const struct saved_open s = {
		.st = save_state(&open->st),
		.shared = open->share.file != NULL,
		.advisory = open->share.advisory,
		.stateid_sent = open->stateid_sent,
		.kept = open->st.owner->kept == open,
		.closed = open->st.gone,
		.share_access = open->share.access,
		.deny = open->share.deny,
		.access = atomic_load(&open->access),
		.opener = atomic_load(&open->opener),
		.combinations = open->combinations,
		.export_id = open->export_id,
		.fh = { open->fh, open->fh_len },
	};

	image_put(w, &saved_open_kind, &s);
}

static void save_range(void *w, const struct vfs_locked_range *r)
{
	image_put(w, &saved_range_kind, r);
}

static void save_lock(struct image_writer *w, const struct nfs4_lock *lock)
{
	const struct saved_lock s = { .st = save_state(&lock->st), .open = lock->open->st.id };

	image_put(w, &saved_lock_kind, &s);
	vfs_lock_each(&lock->ranges, save_range, w);
}

static void save_states(struct image_writer *w, const struct nfs4_holdings *held,
			enum nfs4_state_kind kind, bool revoked)
{
	struct nfs4_state *st;

	TAILQ_FOREACH (st, &held->states, link) {
		if (st->kind != kind || (st->revoked != 0) != revoked)
			continue;
		if (kind == NFS4_STATE_OPEN)
			save_open(w, nfs4_as_open(st));
		else
			save_lock(w, nfs4_as_lock(st));
	}
}

static void save_stateids(struct image_writer *w, const struct nfs4_client *cl)
{
	const uint32_t entries = nfs4_stateid_entries(cl->holdings);
	uint8_t *generations = malloc(2 * (size_t)entries + 1);
	struct saved_stateids s = {
		.revoked_age = age_of(cl, cl->holdings->revoked_at),
		.hears_of_devices = atomic_load(&cl->holdings->hears_of_devices),
	};

	if (generations) {
		nfs4_stateids_put(cl->holdings, generations);
		s.generations = (struct image_bytes){ generations, 2 * entries };
	}
	image_put(w, &stateids_kind, &s);
	free(generations);
}

void nfs4_holdings_save(struct nfs4_client *cl, struct image_writer *w)
{
	const struct nfs4_holdings *held = cl->holdings;
	uint32_t number = 0;
	struct nfs4_owner *o;

	if (held->dropped)
		return;
	save_stateids(w, cl);
	for (uint32_t i = 0; i < held->owner_buckets; i++)
		for (o = held->owner_hash[i]; o; o = o->hash_next)
			save_owner(w, o, number++);
	for (int revoked = 0; revoked < 2; revoked++) {
		save_states(w, held, NFS4_STATE_OPEN, revoked);
		save_states(w, held, NFS4_STATE_LOCK, revoked);
	}
	for (uint32_t i = 0; i < held->owner_buckets; i++)
		for (o = held->owner_hash[i]; o; o = o->hash_next)
			if (o->kept && o->kept->st.gone)
				save_open(w, o->kept);
	nfs4_lock_waiters_save(cl, w);
}

/* The next program. */

static int load_stateids(struct nfs4_client *cl, struct image_at *at)
{
	struct saved_stateids s = { .revoked_age = 0 };
	const int rc = image_get(at, &stateids_kind, &s);

	if (rc != 0 || !s.generations.at)
		return rc ? rc : -ENOMEM;
	cl->holdings->revoked_at = since_by_age(cl, s.revoked_age);
	atomic_init(&cl->holdings->hears_of_devices, s.hears_of_devices);
	return nfs4_stateids_load(cl, s.generations.at, s.generations.len / 2);
}

static int note_owner(struct nfs4_loading *l, struct nfs4_owner *o)
{
	if (l->nowners == l->owners_size) {
		const uint32_t size = 2 * l->owners_size + 16;
		struct nfs4_owner **more =
			reallocarray(l->owner, size, sizeof(struct nfs4_owner *));

		if (!more)
			return -ENOMEM;
		l->owner = more;
		l->owners_size = size;
	}
	l->owner[l->nowners++] = o;
	return 0;
}

static int load_replay(struct nfs4_owner *o, const struct saved_owner *s)
{
	struct nfs4_replay *r;

	if (s->body.len > UINT16_MAX || s->fh.len > sizeof(r->fh.data) ||
	    s->exports.n > NFS4_REPLY_EXPORTS_MOST + 1)
		return -EPROTO;
	r = nfs4_replay_for(o, s->body.len);
	if (!r)
		return 0; /* goes on without the kept reply, as whenever memory is short */
	r->opnum = s->opnum;
	r->status = s->status;
	r->sum = s->sum;
	r->exports = s->exports;
	r->len = s->body.len;
	r->fh.len = s->fh.len;
	if (s->fh.len)
		memcpy(r->fh.data, s->fh.at, s->fh.len);
	if (s->body.len)
		memcpy(r->body, s->body.at, s->body.len);
	return 0;
}

static int load_owner(struct nfs4_loading *l, struct image_at *at)
{
	struct saved_owner s = { 0 };
	int rc = image_get(at, &saved_owner_kind, &s);

	if (rc != 0 || !s.name.at || s.name.len > NFS4_OPAQUE_LIMIT || s.kind > NFS4_LOCK_OWNER)
		return -EPROTO;
	const struct nfs4_owner_name name = { (enum nfs4_owner_kind)s.kind, s.name.at, s.name.len };
	struct nfs4_owner *o =
		nfs4_owner_load(l->client, &name, s.unconfirmed, since_by_age(l->client, s.age));

	if (!o)
		return -ENOMEM;
	rc = note_owner(l, o);
	o->seq_known = s.seq_known;
	o->seqid = s.seqid;
	return rc == 0 && s.replays ? load_replay(o, &s) : rc;
}

/* The owner and the file of a state; the file with a reference. */
static int find_owner_and_file(const struct nfs4_loading *l, const struct saved_state *s,
			       enum nfs4_owner_kind kind, struct nfs4_owner **o,
			       struct vfs_file **f)
{
	if (s->owner >= l->nowners || l->owner[s->owner]->kind != kind)
		return -EPROTO;
	*o = l->owner[s->owner];
	*f = vfs_file_by_number(l->client->srv->cfg.vfs, s->file);
	return *f ? 0 : -EPROTO;
}

/* Adds the state, without references of the caller's; or frees it. */
static int enter_state(struct nfs4_client *cl, struct nfs4_state *st, const struct saved_state *s)
{
	int rc;

	st->seqid = s->seqid;
	st->since = since_by_age(cl, s->age);
	pthread_mutex_lock(&cl->lock);
	rc = nfs4_state_return(cl, st, s->id);
	if (rc == 0 && s->revoked)
		nfs4_state_revoke(cl, st, (int)s->revoked);
	pthread_mutex_unlock(&cl->lock);
	nfs4_state_unref(st);
	return rc;
}

/* An open that was closed last in minor version 0 is in no table, but its stateid still finds it. */
static void close_again(struct nfs4_client *cl, struct nfs4_open *open)
{
	pthread_mutex_lock(&cl->lock);
	nfs4_state_remove(cl, &open->st, true);
	pthread_mutex_unlock(&cl->lock);
}

static void keep_open(struct nfs4_open *open, bool closed)
{
	if (!closed)
		nfs4_state_ref(&open->st); /* a closed open passes the table's reference on */
	open->st.owner->kept = open;
}

static int load_open(struct nfs4_loading *l, struct image_at *at)
{
	struct saved_open s = { .opener = NFS4_OPENER_NONE };
	struct nfs4_object object = { .kind = NFS4_NOWHERE };
	struct nfs4_open *open;
	struct nfs4_owner *o;
	struct vfs_file *f;
	int rc = image_get(at, &saved_open_kind, &s);

	if (rc != 0 || s.fh.len > sizeof(object.fh.data) || (s.closed && !s.kept))
		return -EPROTO;
	rc = find_owner_and_file(l, &s.st, NFS4_OPEN_OWNER, &o, &f);
	if (rc != 0)
		return rc;
	object.export_id = s.export_id;
	object.fh.len = s.fh.len;
	if (s.fh.len)
		memcpy(object.fh.data, s.fh.at, s.fh.len);
	open = nfs4_open_new(o, f, &object);
	if (!open) {
		vfs_file_put(f);
		return -ENOMEM;
	}
	if (s.shared && !s.closed)
		vfs_share_load(f, &open->share,
			       &(struct vfs_share_request){ .holder = &o->holder,
							    .access = s.share_access,
							    .deny = s.deny },
			       l->client, s.advisory);
	vfs_file_put(f);
	atomic_init(&open->access, s.access);
	atomic_init(&open->opener, s.opener);
	open->combinations = s.combinations;
	open->stateid_sent = s.stateid_sent;
	rc = enter_state(l->client, &open->st, &s.st);
	if (rc == 0 && s.closed)
		close_again(l->client, open);
	if (rc == 0 && s.kept)
		keep_open(open, s.closed);
	return rc;
}

static int load_lock(struct nfs4_loading *l, struct image_at *at)
{
	struct saved_lock s = { .open = 0 };
	struct nfs4_state *open;
	struct nfs4_owner *o;
	struct vfs_file *f;
	int rc = image_get(at, &saved_lock_kind, &s);

	l->lock = NULL;
	if (rc == 0)
		rc = find_owner_and_file(l, &s.st, NFS4_LOCK_OWNER, &o, &f);
	if (rc != 0)
		return rc;
	open = nfs4_stateid_find(l->client->holdings, s.open);
	if (open && open->kind == NFS4_STATE_OPEN && open->file == f)
		l->lock = nfs4_lock_new(o, nfs4_as_open(open));
	vfs_file_put(f);
	if (!l->lock)
		return -EPROTO;
	rc = enter_state(l->client, &l->lock->st, &s.st);
	if (rc != 0)
		l->lock = NULL;
	return rc;
}

static int load_range(const struct nfs4_loading *l, struct image_at *at)
{
	struct vfs_locked_range r = { .start = 1 };
	int rc = image_get(at, &saved_range_kind, &r);

	if (rc != 0 || !l->lock)
		return -EPROTO;
	rc = vfs_lock_load(&l->lock->ranges, &r);
	if (rc == 0)
		nfs4_ranges_changed(l->lock);
	return rc;
}

int nfs4_holdings_load(struct nfs4_loading *l, struct image_at *at)
{
	switch (image_next(at)) {
	case NFS4_IMAGE_STATEIDS:
		return load_stateids(l->client, at);
	case NFS4_IMAGE_OWNER:
		return load_owner(l, at);
	case NFS4_IMAGE_OPEN:
		return load_open(l, at);
	case NFS4_IMAGE_LOCK:
		return load_lock(l, at);
	case NFS4_IMAGE_RANGE:
		return load_range(l, at);
	case NFS4_IMAGE_WAITER:
		return nfs4_lock_waiter_load(l->client, at);
	default:
		return image_skip(at);
	}
}

void nfs4_holdings_load_end(struct nfs4_loading *l)
{
	struct nfs4_dead_owners dead = { NULL, NULL };

	/* Owners without states only waited for a retransmission. */
	if (l->client)
		pthread_mutex_lock(&l->client->lock);
	for (uint32_t i = 0; i < l->nowners; i++)
		nfs4_owner_maybe_idle(l->owner[i], &dead);
	if (l->client)
		pthread_mutex_unlock(&l->client->lock);
	nfs4_bury(&dead);
	free(l->owner);
	l->owner = NULL;
	l->nowners = l->owners_size = 0;
	l->lock = NULL;
}
