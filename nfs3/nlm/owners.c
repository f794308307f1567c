/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nlm/owners.h"

#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/host.h"
#include "lib/util.h"
#include "nfs3/nlm/nlm_grant.h"
#include "nsm/nsm.h"
#include "vfs/vfs_image.h"

struct nlm_memory_host {
	struct rn_host_entry of; /* in the table */
	size_t used;		 /* not 0 */
};

void nlm_memory_init(struct nlm_memory *r, size_t max)
{
	*r = (struct nlm_memory){ .max = max };
	rn_host_table_init(&r->hosts);
}

static struct nlm_memory_host *nlm_memory_find(const struct nlm_memory *r,
					       const struct rpc_address *addr)
{
	struct rn_host_entry *e;
	struct rn_host host;

	rn_host_of_mapped(addr->bytes, addr->scope, &host);
	e = rn_host_find(&r->hosts, &host);
	return e ? rn_container_of(e, struct nlm_memory_host, of) : NULL;
}

static bool nlm_memory_fits_bytes(const struct nlm_memory *r, size_t has, size_t bytes)
{
	const size_t for_all = r->max - r->max / 4, after = r->used + bytes;

	if (has + bytes <= r->max / 1024)
		return after <= r->max;
	return after <= for_all && has + bytes <= for_all - after;
}

size_t nlm_memory_has(const struct nlm_memory *r, const struct rpc_address *addr)
{
	const struct nlm_memory_host *h = nlm_memory_find(r, addr);

	return h ? h->used : 0;
}

bool nlm_memory_fits(const struct nlm_memory *r, const struct rpc_address *addr, size_t bytes)
{
	return nlm_memory_fits_bytes(r, nlm_memory_has(r, addr), bytes);
}

bool nlm_memory_take(struct nlm_memory *r, const struct rpc_address *addr, size_t bytes)
{
	struct nlm_memory_host *h = nlm_memory_find(r, addr);

	if (!nlm_memory_fits_bytes(r, h ? h->used : 0, bytes))
		return false;
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return false;
		rn_host_of_mapped(addr->bytes, addr->scope, &h->of.host);
		rn_host_add(&r->hosts, &h->of);
	}
	h->used += bytes;
	r->used += bytes;
	return true;
}

void nlm_memory_change(struct nlm_memory *r, const struct rpc_address *addr, size_t take,
		       size_t give)
{
	struct nlm_memory_host *h = nlm_memory_find(r, addr);

	h->used += take - give;
	r->used += take - give;
	if (h->used > 0)
		return;
	rn_host_remove(&h->of);
	free(h);
}

static struct nlm_owner *of_holder(struct vfs_holder *h)
{
	return rn_container_of(h, struct nlm_owner, holder);
}

void nlm_owner_put(struct nlm_owner *o)
{
	if (atomic_fetch_sub(&o->refs, 1) != 1)
		return;
	rn_lock_fini(&o->busy);
	free(o);
}

static void nlm_owner_holder_ref(struct vfs_holder *h)
{
	atomic_fetch_add(&of_holder(h)->refs, 1);
}

static void nlm_owner_holder_put(struct vfs_holder *h)
{
	nlm_owner_put(of_holder(h));
}

static const struct vfs_holder_ops holder_ops = { .ref = nlm_owner_holder_ref,
						  .put = nlm_owner_holder_put };

const struct nlm_owner *nlm_owner_of(const struct vfs_holder *h)
{
	return h && h->ops == &holder_ops ? rn_container_of(h, struct nlm_owner, holder) : NULL;
}

struct nlm_owners *nlm_owners_new(struct nsm *nsm)
{
	struct nlm_owners *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->nsm = nsm;
	pthread_mutex_init(&t->lock, NULL);
	randombytes_buf(t->key, sizeof(t->key));
	nlm_memory_init(&t->memory, NLM_MEMORY_MAX);
	return t;
}

static size_t nlm_owner_size_of(const struct nlm_owner *o)
{
	return sizeof(*o) + o->oh_len + o->caller_len + o->fh_len + NLM_FILE_COST;
}

/* With the lock held; the caller holds o->busy. */
static void nlm_owner_charge(struct nlm_owners *t, struct nlm_owner *o, uint32_t ranges)
{
	nlm_memory_change(&t->memory, &o->addr, ranges * (size_t)NLM_RANGE_COST,
			  o->charged * (size_t)NLM_RANGE_COST);
	o->charged = ranges;
}

bool nlm_owner_has_room(struct nlm_owners *t, const struct nlm_owner *o)
{
	bool memory;

	pthread_mutex_lock(&t->lock);
	memory = nlm_memory_fits(&t->memory, &o->addr, 2 * (size_t)NLM_RANGE_COST);
	pthread_mutex_unlock(&t->lock);
	return memory;
}

/* The caller holds o->busy, and o is used no more. */
static void unlink_owner(struct nlm_owners *t, struct nlm_owner *o)
{
	pthread_mutex_lock(&t->lock);
	LIST_REMOVE(o, link);
	o->linked = false;
	nlm_owner_charge(t, o, 0);
	nlm_memory_change(&t->memory, &o->addr, 0, nlm_owner_size_of(o));
	pthread_mutex_unlock(&t->lock);
	if (o->host && o->held)
		nsm_host_put(t->nsm, o->host);
	else if (o->host)
		nsm_host_drop(t->nsm, o->host);
	o->host = NULL;
	nlm_grants_settle(o, 0, 0);
	vfs_lock_owner_end(&o->locks);
	vfs_share_close(&o->share);
	nlm_owner_put(o); /* the table's reference */
}

void nlm_owners_free(struct nlm_owners *t)
{
	struct nlm_owner *o;

	if (!t)
		return;
	for (unsigned i = 0; i < NLM_BUCKETS; i++) {
		while ((o = LIST_FIRST(&t->bucket[i])) != NULL)
			unlink_owner(t, o);
	}
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static void hash_more(const struct nlm_owners *t, uint64_t *hash, const void *data, size_t len)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, data, len, t->key);
	*hash = *hash * 0x9e3779b97f4a7c15u ^ h;
}

static void hash_key(const struct nlm_owners *t, struct nlm_owner_key *k)
{
	hash_more(t, &k->hash, &k->addr, sizeof(k->addr));
	hash_more(t, &k->hash, &k->svid, sizeof(k->svid));
	hash_more(t, &k->hash, k->oh.data, k->oh.len);
	hash_more(t, &k->hash, k->caller.data, k->caller.len);
	k->hash |= 1;
}

void nlm_owner_key(const struct nlm_owners *t, const struct sockaddr *peer,
		   const struct nlm_lock_args *a, struct nlm_owner_key *out)
{
	*out = (struct nlm_owner_key){
		.svid = a->svid, .oh = a->oh, .caller = a->caller, .fh = &a->fh
	};
	rpc_address_of((const struct sockaddr_storage *)peer, &out->addr);
	hash_key(t, out);
}

void nlm_owner_key_of_share(const struct nlm_owners *t, struct nlm_owner_key *k)
{
	static const uint8_t share = 1;

	k->shares = true;
	hash_more(t, &k->hash, &share, sizeof(share));
	k->hash |= 1;
}

void nlm_owner_drop(struct nlm_owner *o)
{
	vfs_lock_drop_all(&o->locks);
	if (o->share.file)
		vfs_share_change(&o->share, VFS_SHARE_NONE, VFS_SHARE_NONE, NULL);
}

static bool nlm_owner_holds(const struct nlm_owner *o)
{
	return vfs_lock_held(&o->locks) || o->share.access || o->share.deny;
}

static bool is_caller(const struct nlm_owner *o, const struct rpc_address *addr,
		      const struct nlm_bytes *caller)
{
	return rpc_address_equal(&o->addr, addr) && o->caller_len == caller->len &&
	       memcmp(o->bytes + o->oh_len, caller->data, caller->len) == 0;
}

static bool nlm_owner_matches(const struct nlm_owner *o, const struct nlm_owner_key *k,
			      const struct vfs_file *f)
{
	return o->hash == k->hash && o->locks.file == f && o->svid == k->svid &&
	       o->shares == k->shares && o->oh_len == k->oh.len &&
	       memcmp(o->bytes, k->oh.data, k->oh.len) == 0 && is_caller(o, &k->addr, &k->caller);
}

static struct nlm_owner *owner_new(const struct nlm_owner_key *k, struct vfs_file *f,
				   uint32_t export_id)
{
	struct nlm_owner *o = calloc(1, sizeof(*o) + k->oh.len + k->caller.len + k->fh->len);

	if (!o)
		return NULL;
	o->holder.ops = &holder_ops;
	atomic_init(&o->refs, 2); /* the table's reference and the caller's */
	rn_lock_init(&o->busy);
	o->hash = k->hash;
	o->addr = k->addr;
	o->svid = k->svid;
	o->shares = k->shares;
	o->export_id = export_id;
	o->oh_len = (uint16_t)k->oh.len;
	o->caller_len = (uint16_t)k->caller.len;
	o->fh_len = (uint16_t)k->fh->len;
	memcpy(o->bytes, k->oh.data, k->oh.len);
	memcpy(o->bytes + k->oh.len, k->caller.data, k->caller.len);
	memcpy(o->bytes + k->oh.len + k->caller.len, k->fh->data, k->fh->len);
	vfs_lock_owner_init(&o->locks, f, &o->holder);
	return o;
}

/* One that is in no table yet. */
static void owner_free(struct nlm_owner *o)
{
	vfs_lock_owner_end(&o->locks);
	rn_lock_fini(&o->busy);
	free(o);
}

/* With the lock held. An owner in the table, with a reference for the caller. NULL: no memory. */
static struct nlm_owner *nlm_owner_make(struct nlm_owners *t, const struct nlm_owner_key *k,
					struct vfs_file *f, uint32_t export_id)
{
	struct nlm_owner *o = owner_new(k, f, export_id);

	if (o && !nlm_memory_take(&t->memory, &o->addr, nlm_owner_size_of(o))) {
		owner_free(o);
		o = NULL;
	}
	if (!o)
		return NULL;
	LIST_INSERT_HEAD(&t->bucket[k->hash / 2 % NLM_BUCKETS], o, link);
	o->linked = true;
	o->serial = ++t->last_serial * NLM_BUCKETS + k->hash / 2 % NLM_BUCKETS;
	return o;
}

struct nlm_owner *nlm_owners_find(struct nlm_owners *t, const struct nlm_owner_key *k,
				  struct vfs_file *f, const struct vfs_export *create)
{
	struct nlm_owner_list *bucket = &t->bucket[k->hash / 2 % NLM_BUCKETS];
	struct nlm_owner *o;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (o, bucket, link) {
		if (nlm_owner_matches(o, k, f))
			break;
	}
	if (o) {
		atomic_fetch_add(&o->refs, 1);
	} else if (create) {
		o = nlm_owner_make(t, k, f, vfs_export_id(create));
	}
	pthread_mutex_unlock(&t->lock);
	return o;
}

/* Holds the file open, which still exists. */
static int hold_open(struct nfs3_op *op, struct nlm_owner *o)
{
	const struct vfs_share_request r = { .holder = &o->holder };
	struct vfs_attr attr;
	int rc = vfs_getattr(&op->ctx, op->node[0], &attr);

	if (rc == 0)
		rc = vfs_share_open(&op->ctx, op->node[0], &o->share, &r, NULL);
	if (rc == 0)
		vfs_share_advise(&o->share);
	return rc;
}

int nlm_owner_enter(struct nlm_owners *t, struct nfs3_op *op, const struct nlm_owner_key *k,
		    bool create, struct nlm_owner **out)
{
	struct vfs_file *f;
	struct nlm_owner *o;
	int rc = vfs_file_get(&op->ctx, op->node[0], &f);

	*out = NULL;
	if (rc != 0)
		return rc;
	for (;;) {
		o = nlm_owners_find(t, k, f, create ? op->ctx.exp : NULL);
		if (!o)
			break;
		rn_lock_take(&o->busy);
		if (o->linked)
			break;
		rn_lock_give(&o->busy); /* removed from the table meanwhile */
		nlm_owner_put(o);
	}
	vfs_file_put(f);
	if (!o)
		return create ? -ENOLCK : 0;
	if (!o->share.file)
		rc = hold_open(op, o);
	if (rc != 0)
		nlm_owner_leave(t, o);
	else
		*out = o;
	return rc;
}

void nlm_owner_leave(struct nlm_owners *t, struct nlm_owner *o)
{
	if (!o)
		return;
	if (o->linked && !nlm_owner_holds(o)) {
		unlink_owner(t, o);
	} else if (o->linked) {
		o->held = true;
		pthread_mutex_lock(&t->lock);
		nlm_owner_charge(t, o, o->locks.count);
		pthread_mutex_unlock(&t->lock);
	}
	rn_lock_give(&o->busy);
	nlm_owner_put(o);
}

void nlm_owner_monitor(struct nlm_owners *t, struct nlm_owner *o, struct nsm_host *host,
		       uint32_t state)
{
	if (!host)
		return;
	if (o->host)
		nsm_host_drop(t->nsm, host);
	else
		o->host = host;
	o->state = state;
}

struct freeing {
	struct nlm_owners *t;
	const struct nlm_freed *freed;
	struct rpc_address addr;
};

/* The least export id above last below which the client has locks, or UINT64_MAX. */
static uint64_t next_export(const struct freeing *w, int64_t last)
{
	uint64_t least = UINT64_MAX;
	struct nlm_owner *o;

	for (unsigned i = 0; i < NLM_BUCKETS; i++) {
		pthread_mutex_lock(&w->t->lock);
		LIST_FOREACH (o, &w->t->bucket[i], link) {
			if (o->export_id > last && o->export_id < least &&
			    is_caller(o, &w->addr, w->freed->caller))
				least = o->export_id;
		}
		pthread_mutex_unlock(&w->t->lock);
	}
	return least;
}

/* A reference to one of the client's owners in a bucket, or NULL. */
static struct nlm_owner *nlm_owners_one_of_client(const struct freeing *w, unsigned bucket,
						  uint32_t export_id)
{
	struct nlm_owner *o;

	pthread_mutex_lock(&w->t->lock);
	LIST_FOREACH (o, &w->t->bucket[bucket], link) {
		if (o->export_id == export_id && is_caller(o, &w->addr, w->freed->caller))
			break;
	}
	if (o)
		atomic_fetch_add(&o->refs, 1);
	pthread_mutex_unlock(&w->t->lock);
	return o;
}

static void drop_below(const struct freeing *w, uint32_t export_id)
{
	struct nlm_owner *o;

	for (unsigned i = 0; i < NLM_BUCKETS; i++) {
		while ((o = nlm_owners_one_of_client(w, i, export_id)) != NULL) {
			rn_lock_take(&o->busy);
			if (o->linked)
				nlm_owner_drop(o);
			nlm_owner_leave(w->t, o);
		}
	}
}

void nlm_owners_drop_client(struct nlm_owners *t, const struct nlm_freed *freed)
{
	struct freeing w = { .t = t, .freed = freed };
	int64_t last = -1;
	uint64_t id;

	rpc_address_of((const struct sockaddr_storage *)freed->peer, &w.addr);
	while ((id = next_export(&w, last)) != UINT64_MAX) {
		if (freed->may_free(freed->arg, (uint32_t)id))
			drop_below(&w, (uint32_t)id);
		last = (int64_t)id;
	}
}

/* A reference to the owner with the least serial number above *last that belongs to the host, or NULL. */
static struct nlm_owner *next_of_host(struct nlm_owners *t, unsigned bucket,
				      const struct nsm_reboot *r, uint64_t *last)
{
	const struct nlm_bytes caller = { r->name, r->name_len };
	struct nlm_owner *o, *least = NULL;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (o, &t->bucket[bucket], link) {
		if (o->serial > *last && (!least || o->serial < least->serial) &&
		    is_caller(o, r->addr, &caller))
			least = o;
	}
	if (least) {
		atomic_fetch_add(&least->refs, 1);
		*last = least->serial;
	}
	pthread_mutex_unlock(&t->lock);
	return least;
}

bool nlm_owners_drop_rebooted(struct nlm_owners *t, const struct nsm_reboot *r)
{
	struct nlm_owner *o;
	bool all = true;

	for (unsigned i = 0; i < NLM_BUCKETS; i++) {
		uint64_t last = 0;

		while ((o = next_of_host(t, i, r, &last)) != NULL) {
			if (!rn_lock_try(&o->busy)) {
				all = false;
				nlm_owner_put(o);
				continue;
			}
			if (o->linked && o->host && o->state != r->state)
				nlm_owner_drop(o);
			nlm_owner_leave(t, o);
		}
	}
	return all;
}

/* A reference to an owner that this walk has not met and whose export may be lost. NULL: none is
 * left. */
static struct nlm_owner *next_below(struct nlm_owners *t, unsigned bucket,
				    const struct vfs_exports_lost *lost)
{
	struct nlm_owner *o;
	bool below = false;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (o, &t->bucket[bucket], link) {
		for (unsigned i = 0; i < lost->n && o->round != t->round; i++)
			below |= lost->ids[i] == o->export_id;
		o->round = t->round;
		if (below)
			break;
	}
	if (o)
		atomic_fetch_add(&o->refs, 1);
	pthread_mutex_unlock(&t->lock);
	return o;
}

static bool nlm_owner_is_lost(const struct nlm_owner *o, const struct vfs_exports_lost *lost)
{
	struct sockaddr_storage addr;

	rn_address_unmap(o->addr.bytes, o->addr.scope, 0, &addr);
	return lost->lost(lost->ctx, o->export_id, (const struct sockaddr *)&addr);
}

/* Owners that have lost their export; their locks are dropped if drop is true. */
static uint64_t walk_lost(struct nlm_owners *t, const struct vfs_exports_lost *lost, bool drop)
{
	struct nlm_owner *o;
	uint64_t n = 0;

	pthread_mutex_lock(&t->lock);
	t->round++;
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 0; i < NLM_BUCKETS && lost->n > 0; i++) {
		while ((o = next_below(t, i, lost)) != NULL) {
			const bool gone = nlm_owner_is_lost(o, lost);

			rn_lock_take(&o->busy);
			if (gone && o->linked) {
				if (drop)
					nlm_owner_drop(o);
				n++;
			}
			nlm_owner_leave(t, o);
		}
	}
	return n;
}

uint64_t nlm_owners_revoke(struct nlm_owners *t, const struct vfs_exports_lost *lost)
{
	return walk_lost(t, lost, true);
}

uint64_t nlm_owners_count(struct nlm_owners *t, const struct vfs_exports_lost *lost)
{
	return walk_lost(t, lost, false);
}

/* Owners in the image of the state (lib/image.h): the key of their hashes, by which waiters for locks are known, then each, and behind it
 * its ranges. */

#define NLM_SECTION "nlm"

struct saved_nlm_owner {
	struct rpc_address addr;
	uint32_t svid, export_id, state;
	bool shares, on_record, opened;
	uint8_t access, deny;
	struct image_bytes oh, caller, fh;
	uint32_t file; /* vfs_file_number() */
};
static const struct image_field nlm_owner_fields[] = {
	IMAGE_FIXED(1, struct saved_nlm_owner, addr.bytes),
	IMAGE_NUMBER(2, struct saved_nlm_owner, addr.scope),
	IMAGE_NUMBER(3, struct saved_nlm_owner, svid),
	IMAGE_NUMBER(4, struct saved_nlm_owner, export_id),
	IMAGE_NUMBER(5, struct saved_nlm_owner, state),
	IMAGE_NUMBER(6, struct saved_nlm_owner, shares),
	IMAGE_NUMBER(7, struct saved_nlm_owner, on_record),
	IMAGE_NUMBER(8, struct saved_nlm_owner, opened),
	IMAGE_NUMBER(9, struct saved_nlm_owner, access),
	IMAGE_NUMBER(10, struct saved_nlm_owner, deny),
	IMAGE_BYTES(11, struct saved_nlm_owner, oh),
	IMAGE_BYTES(12, struct saved_nlm_owner, caller),
	IMAGE_BYTES(13, struct saved_nlm_owner, fh),
	IMAGE_NUMBER(14, struct saved_nlm_owner, file),
};
static const struct image_kind nlm_owner_kind = { 1, rn_array_size(nlm_owner_fields),
						  nlm_owner_fields };

static const struct image_field nlm_range_fields[] = {
	IMAGE_NUMBER(1, struct vfs_locked_range, start),
	IMAGE_NUMBER(2, struct vfs_locked_range, end),
	IMAGE_NUMBER(3, struct vfs_locked_range, type),
};
static const struct image_kind nlm_range_kind = { 2, rn_array_size(nlm_range_fields),
						  nlm_range_fields };

static const struct image_field nlm_key_fields[] = {
	IMAGE_FIXED(1, struct nlm_owners, key),
};
static const struct image_kind nlm_key_kind = { 3, rn_array_size(nlm_key_fields), nlm_key_fields };

static void nlm_save_range(void *w, const struct vfs_locked_range *r)
{
	image_put(w, &nlm_range_kind, r);
}

static void nlm_save_owner(struct image_writer *w, const struct nlm_owner *o)
{
	const struct saved_nlm_owner s = {
		.addr = o->addr,
		.svid = (uint32_t)o->svid,
		.export_id = o->export_id,
		.state = o->state,
		.shares = o->shares,
		.on_record = o->host != NULL,
		.opened = o->share.file != NULL,
		.access = o->share.access,
		.deny = o->share.deny,
		.oh = { o->bytes, o->oh_len },
		.caller = { o->bytes + o->oh_len, o->caller_len },
		.fh = { o->bytes + o->oh_len + o->caller_len, o->fh_len },
		.file = vfs_file_number(o->locks.file),
	};

	image_put(w, &nlm_owner_kind, &s);
	vfs_lock_each(&o->locks, nlm_save_range, w);
}

void nlm_owners_save(struct nlm_owners *t, struct image_writer *w)
{
	struct nlm_owner *o;

	image_begin(w, NLM_SECTION);
	image_put(w, &nlm_key_kind, t);
	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < NLM_BUCKETS; i++) {
		LIST_FOREACH (o, &t->bucket[i], link)
			nlm_save_owner(w, o);
	}
	pthread_mutex_unlock(&t->lock);
}

static void load_share(struct nlm_owner *o, struct vfs_file *f, const struct saved_nlm_owner *s)
{
	const struct vfs_share_request r = { .holder = &o->holder,
					     .access = s->access,
					     .deny = s->deny };

	if (s->opened)
		vfs_share_load(f, &o->share, &r, NULL, true);
}

static int load_host(struct nlm_owners *t, struct nlm_owner *o, const struct saved_nlm_owner *s)
{
	const struct nsm_peer peer = { .addr = s->addr,
				       .name = s->caller.at,
				       .name_len = s->caller.len };
	struct nsm_host *host;

	if (!s->on_record || !t->nsm)
		return 0;
	const int rc = nsm_host_resume(t->nsm, &peer, &host);

	if (rc == 0)
		nlm_owner_monitor(t, o, host, s->state);
	return rc;
}

/* The owner has a reference for the caller. */
static int nlm_load_owner(struct nlm_owners *t, struct vfs *vfs, struct image_at *at,
			  struct nlm_owner **out)
{
	struct saved_nlm_owner s = { .shares = false };
	struct nlm_owner_key k = { .hash = 0 };
	struct vfs_fh fh = { .len = 0 };
	struct vfs_file *f;
	int rc = image_get(at, &nlm_owner_kind, &s);

	if (rc != 0 || !s.oh.at || !s.caller.at || !s.fh.at || s.oh.len > UINT16_MAX ||
	    s.caller.len > NSM_NAME_MAX || s.fh.len > sizeof(fh.data))
		return -EPROTO;
	fh.len = s.fh.len;
	memcpy(fh.data, s.fh.at, s.fh.len);
	k.addr = s.addr;
	k.svid = (int32_t)s.svid;
	k.oh = (struct nlm_bytes){ s.oh.at, s.oh.len };
	k.caller = (struct nlm_bytes){ s.caller.at, s.caller.len };
	k.fh = &fh;
	hash_key(t, &k);
	if (s.shares)
		nlm_owner_key_of_share(t, &k);
	f = vfs_file_by_number(vfs, s.file);
	if (!f)
		return -EPROTO;
	pthread_mutex_lock(&t->lock);
	*out = nlm_owner_make(t, &k, f, s.export_id);
	pthread_mutex_unlock(&t->lock);
	if (*out) {
		load_share(*out, f, &s);
		rc = load_host(t, *out, &s);
		(*out)->held = true;
	}
	vfs_file_put(f);
	return *out ? rc : -ENOMEM;
}

static int nlm_load_range(struct nlm_owners *t, struct nlm_owner *o, struct image_at *at)
{
	struct vfs_locked_range r = { .start = 1 };
	int rc = image_get(at, &nlm_range_kind, &r);

	if (rc != 0 || !o)
		return -EPROTO;
	rc = vfs_lock_load(&o->locks, &r);
	pthread_mutex_lock(&t->lock);
	nlm_owner_charge(t, o, o->locks.count);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

int nlm_owners_load(struct nlm_owners *t, struct vfs *vfs, struct image_reader *image)
{
	struct nlm_owner *o = NULL;
	struct image_at at;
	int rc = 0;

	if (!image_enter(image, NLM_SECTION, &at))
		return 0;
	rc = image_get(&at, &nlm_key_kind, t);
	while (rc == 0 && image_next(&at)) {
		if (image_next(&at) == nlm_range_kind.kind) {
			rc = nlm_load_range(t, o, &at);
			continue;
		}
		if (o)
			nlm_owner_put(o);
		o = NULL;
		rc = nlm_load_owner(t, vfs, &at, &o);
	}
	if (o)
		nlm_owner_put(o);
	return rc;
}
