/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums of calls (rpc/sum.h), and the duplicate request cache. An entry is in progress (in its bucket only), or finished: then it is in the shard's
 * list, oldest first, too, and its memory counts as its host's. Entries in progress are no more than the requests that
 * the transports take in. A shard's lock is taken with no other held; duplicates are woken outside it.
 */
#include "rpc/drc.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/clock.h"
#include "lib/quota.h"
#include "lib/util.h"
#include "rpc/address.h"
#include "rpc/principal.h"
#include "rpc/program.h"
#include "rpc/request.h"
#include "rpc/sum.h"

void rpc_sum_draw(struct rpc_sum_secret *secret)
{
	randombytes_buf(secret->bytes, sizeof(secret->bytes));
}

void rpc_sum_begin(struct rpc_sum *s, const struct rpc_sum_secret *secret)
{
	XXH3_128bits_reset_withSecret(&s->state, secret->bytes, sizeof(secret->bytes));
}

void rpc_sum_add(struct rpc_sum *s, const void *bytes, size_t len)
{
	if (len > 0)
		XXH3_128bits_update(&s->state, bytes, len);
}

size_t rpc_sum_add_segments(struct rpc_sum *s, const struct rpc_seg *seg, unsigned n, size_t skip,
			    size_t most)
{
	static const uint8_t zeros[4];
	size_t left = most;

	for (unsigned i = 0; i < n && left > 0; i++) {
		const size_t head = rn_min(skip, seg[i].len), len = rn_min(seg[i].len - head, left);
		const size_t pad = rn_min(seg[i].placed ? rn_xdr_pad(seg[i].len) : 0, left - len);

		skip -= head;
		left -= len + pad;
		rpc_sum_add(s, seg[i].base + head, len);
		rpc_sum_add(s, zeros, pad);
	}
	return most - left;
}

struct rpc_sum_value rpc_sum_end(const struct rpc_sum *s)
{
	const XXH128_hash_t h = XXH3_128bits_digest(&s->state);

	return (struct rpc_sum_value){ h.low64, h.high64 };
}

#define DRC_SHARDS_MAX 16
#define DRC_SHARD_MIN 64 /* least entries of a shard: fewer are not worth its lock */
#define DRC_AGE_NS (DRC_AGE_SECONDS * 1000000000ull)
/* old entries that a new one clears away: more than one, so that the number falls */
#define DRC_EXPIRE_BATCH 4
/* Marks a port of UDP, which is another's than that of TCP with the same number. */
#define DATAGRAMS (1u << 16)

/* Compared as bytes: no padding. */
struct drc_key {
	struct rpc_address addr;
	/* 0 where clients come from another port when they reconnect; DATAGRAMS besides. */
	uint32_t port;
	uint32_t xid, prog, vers, proc;
	uint64_t args_len;
	struct rpc_sum_value sum;
};
_Static_assert(sizeof(struct drc_key) == 64, "no padding");

/* A call that waits for the first one; on its stack. */
struct duplicate {
	LIST_ENTRY(duplicate) link;
	uint64_t conn_id;
	bool ended; /* the first one has; it is in no list any more */
};

struct drc_entry {
	TAILQ_ENTRY(drc_entry) age; /* in finished */
	LIST_ENTRY(drc_entry) link; /* in a bucket */
	struct rn_quota_item place; /* once it is finished */
	struct drc_shard *shard;
	struct drc_key key;
	struct rpc_cred cred;		/* identity of the caller */
	uint64_t conn_id;		/* connection it came on */
	uint64_t done_ns;		/* time of the answer, ns */
	LIST_HEAD(, duplicate) waiting; /* for the end of the first call */
	uint8_t *reply;			/* NULL while in progress */
	uint32_t reply_len;
};
LIST_HEAD(entry_list, drc_entry);
TAILQ_HEAD(age_list, drc_entry);

struct drc_shard {
	pthread_mutex_t lock;
	struct entry_list *buckets;
	uint64_t bucket_mask;
	struct age_list finished;
	struct rn_quota quota;
	size_t least_cost;	       /* of an entry, so that there are no more than max_entries */
	uint64_t reach_ns, reached_ns; /* least age at which an entry made room of late, and when */
	struct drc_stats stats;	       /* all but .evicted and .reach_seconds */
};

struct drc {
	unsigned nshards; /* a power of two */
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct rpc_sum_secret secret;
	uint64_t (*now)(void);
	struct drc_shard shards[DRC_SHARDS_MAX];
};

static int shard_init(struct drc_shard *s, size_t max_entries, size_t max_bytes)
{
	size_t nbuckets = 1;

	while (nbuckets < max_entries)
		nbuckets <<= 1;
	s->buckets = calloc(nbuckets, sizeof(*s->buckets));
	if (!s->buckets)
		return -1;
	s->bucket_mask = nbuckets - 1;
	s->least_cost = max_bytes / max_entries;
	s->reach_ns = DRC_AGE_NS;
	TAILQ_INIT(&s->finished);
	rn_quota_init(&s->quota, max_bytes, 0);
	return 0;
}

struct drc *drc_new(size_t max_entries, size_t max_bytes)
{
	if (max_entries == 0 || max_entries > SIZE_MAX / 4 || sodium_init() < 0)
		return NULL;
	struct drc *drc = calloc(1, sizeof(*drc));
	if (!drc)
		return NULL;
	drc->nshards = 1;
	while (drc->nshards < DRC_SHARDS_MAX && max_entries / drc->nshards >= 2 * DRC_SHARD_MIN)
		drc->nshards *= 2;
	drc->now = rn_now_ns;
	crypto_shorthash_keygen(drc->hash_key);
	rpc_sum_draw(&drc->secret);
	for (unsigned i = 0; i < drc->nshards; i++)
		pthread_mutex_init(&drc->shards[i].lock, NULL);
	for (unsigned i = 0; i < drc->nshards; i++) {
		if (shard_init(&drc->shards[i], max_entries / drc->nshards,
			       max_bytes / drc->nshards) < 0) {
			drc_free(drc);
			return NULL;
		}
	}
	return drc;
}

void drc_set_clock(struct drc *drc, uint64_t (*now)(void))
{
	drc->now = now;
}

/* Frees an entry without a reply. Under the shard's lock. */
static void drc_entry_drop(struct drc_entry *e)
{
	LIST_REMOVE(e, link);
	e->shard->stats.entries--;
	rpc_principal_put(e->cred.principal);
	free(e);
}

/* Frees a finished entry. Under the shard's lock. */
static void drc_entry_forget(struct drc_entry *e)
{
	struct drc_shard *s = e->shard;

	TAILQ_REMOVE(&s->finished, e, age);
	rn_quota_remove(&s->quota, &e->place);
	s->stats.bytes -= sizeof(*e) + e->reply_len;
	free(e->reply);
	drc_entry_drop(e);
}

void drc_free(struct drc *drc)
{
	if (!drc)
		return;
	for (unsigned i = 0; i < drc->nshards; i++) {
		struct drc_shard *s = &drc->shards[i];
		struct drc_entry *e;

		while (s->buckets && (e = TAILQ_FIRST(&s->finished)))
			drc_entry_forget(e);
		rn_quota_fini(&s->quota);
		free(s->buckets);
		pthread_mutex_destroy(&s->lock);
	}
	free(drc);
}

static void make_key(const struct drc *drc, const struct rpc_request *req, struct drc_key *k)
{
	struct rpc_sum sum;

	memset(k, 0, sizeof(*k));
	rpc_address_of(&req->conn->peer, &k->addr);
	if (req->conn->ops->keeps_port)
		k->port = rpc_address_port(&req->conn->peer);
	if (req->conn->ops->datagrams)
		k->port |= DATAGRAMS;
	k->xid = req->call.xid;
	k->prog = req->call.prog;
	k->vers = req->call.vers;
	k->proc = req->call.proc;
	rpc_sum_begin(&sum, &drc->secret);
	k->args_len = rpc_sum_add_segments(&sum, req->seg, req->nseg, req->args_at, SIZE_MAX);
	k->sum = rpc_sum_end(&sum);
}

static uint64_t key_hash(const struct drc *drc, const struct drc_key *k)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)k, sizeof(*k), drc->hash_key);
	return h;
}

/* Datagrams have a shard of their own, as anybody can send them in another's name: they evict no other calls. */
static struct drc_shard *drc_shard_of(struct drc *drc, const struct drc_key *k, uint64_t hash)
{
	const unsigned last = drc->nshards - 1;

	if (last == 0 || k->port & DATAGRAMS)
		return &drc->shards[last];
	return &drc->shards[(hash >> 56) % last];
}

/* Under the lock. */
static void expire(struct drc_shard *s, struct drc_entry *e)
{
	drc_entry_forget(e);
	s->stats.expired++;
}

static bool drc_entry_is_old(const struct drc_entry *e, uint64_t now)
{
	return now > e->done_ns + DRC_AGE_NS;
}

/* Under the lock. */
static void expire_some(struct drc_shard *s, uint64_t now)
{
	struct drc_entry *e;

	for (unsigned i = 0; i < DRC_EXPIRE_BATCH; i++) {
		e = TAILQ_FIRST(&s->finished);
		if (!e || !drc_entry_is_old(e, now))
			return;
		expire(s, e);
	}
}

/* Under the lock: counts a duplicate of a call that is running. True: it may wait. */
static bool drc_entry_may_wait(struct drc_entry *e, const struct rpc_request *req)
{
	const struct duplicate *d;
	unsigned n = 0;

	e->shard->stats.in_progress++;
	if (!req->server->waits || req->conn->id == e->conn_id)
		return false;
	LIST_FOREACH (d, &e->waiting, link)
		if (++n == DRC_WAITING_MAX || d->conn_id == req->conn->id)
			return false;
	return true;
}

/* Under the lock, which it gives back. The entry may be gone when it returns. False: the client has. */
static bool await_first(struct drc_entry *e, struct rpc_request *req)
{
	struct duplicate d = { .conn_id = req->conn->id };
	pthread_mutex_t *lock = &e->shard->lock;
	int rc;

	LIST_INSERT_HEAD(&e->waiting, &d, link);
	rc = rpc_wait(req, RN_WAIT_CALL, e, 0, lock);
	if (rc == 0)
		return true;
	pthread_mutex_lock(lock);
	if (!d.ended)
		LIST_REMOVE(&d, link);
	pthread_mutex_unlock(lock);
	return false;
}

/* Under the lock. */
static enum drc_verdict drc_entry_insert(struct drc_shard *s, struct entry_list *bucket,
					 const struct drc_key *k, struct rpc_request *req)
{
	s->stats.misses++;
	struct drc_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return DRC_UNCACHED;
	e->shard = s;
	e->key = *k;
	e->cred = req->call.cred;
	rpc_principal_ref(e->cred.principal);
	e->conn_id = req->conn->id;
	LIST_INSERT_HEAD(bucket, e, link);
	s->stats.entries++;
	s->stats.running++;
	req->drc = e;
	return DRC_NEW;
}

static bool same_caller(const struct rpc_cred *a, const struct rpc_cred *b)
{
	/* A reply that went under TLS, or under integrity or privacy, never goes with less. */
	if (a->flavor != b->flavor || a->sec != b->sec || a->protection != b->protection ||
	    !rpc_principal_is(a->principal, b->principal))
		return false;
	/* The user that a principal is mapped to may have changed since the first call: the name decides. */
	if (a->principal)
		return true;
	return a->uid == b->uid && a->gid == b->gid && a->ngids == b->ngids &&
	       memcmp(a->gids, b->gids, a->ngids * sizeof(a->gids[0])) == 0;
}

/* Under the lock: the entry of this call, unless it is too old. */
static struct drc_entry *drc_entry_find(struct drc_shard *s, const struct entry_list *bucket,
					const struct drc_key *k, const struct rpc_cred *cred,
					uint64_t now)
{
	struct drc_entry *e;

	LIST_FOREACH (e, bucket, link) {
		if (memcmp(&e->key, k, sizeof(*k)) == 0 && same_caller(&e->cred, cred))
			break;
	}
	if (!e || !e->reply || !drc_entry_is_old(e, now))
		return e;
	expire(s, e);
	return NULL;
}

enum drc_verdict drc_lookup(struct drc *drc, struct rpc_request *req)
{
	enum drc_verdict verdict;
	struct drc_entry *e;
	struct drc_key k;

	make_key(drc, req, &k);
	const uint64_t hash = key_hash(drc, &k);
	struct drc_shard *s = drc_shard_of(drc, &k, hash);
	struct entry_list *bucket = &s->buckets[hash & s->bucket_mask];

	for (;;) {
		const uint64_t now = drc->now();

		pthread_mutex_lock(&s->lock);
		e = drc_entry_find(s, bucket, &k, &req->call.cred, now);
		expire_some(s, now);
		if (!e || e->reply || !drc_entry_may_wait(e, req))
			break;
		if (!await_first(e, req))
			return DRC_IN_PROGRESS;
	}
	if (!e) {
		verdict = drc_entry_insert(s, bucket, &k, req);
	} else if (!e->reply) {
		verdict = DRC_IN_PROGRESS;
	} else {
		xdr_out_rewind(&req->out, 0);
		xdr_put_fixed(&req->out, e->reply, e->reply_len);
		s->stats.hits++;
		verdict = DRC_REPLAY;
	}
	pthread_mutex_unlock(&s->lock);
	return verdict;
}

/* Makes room for a reply of that host. Under the lock. */
static void drc_make_room(struct drc_shard *s, const struct rn_host *host, bool admitted,
			  size_t cost, uint64_t now)
{
	struct rn_quota_item *old;

	while ((old = rn_quota_in_the_way(&s->quota, host, admitted, cost)) != NULL) {
		struct drc_entry *e = rn_container_of(old, struct drc_entry, place);
		const uint64_t age = now - e->done_ns;

		if (age < s->reach_ns || now > s->reached_ns + DRC_AGE_NS) {
			s->reach_ns = rn_min(age, DRC_AGE_NS);
			s->reached_ns = now;
		}
		drc_entry_forget(e);
	}
}

/* Under the lock. Keeps a copy of the reply, given at that time, within the shard's bounds; false if it cannot be kept. */
static bool drc_entry_keep(struct drc_entry *e, const uint8_t *reply, size_t len, bool admitted,
			   uint64_t now)
{
	const size_t cost = rn_max(sizeof(*e) + len, e->shard->least_cost);
	struct drc_shard *s = e->shard;
	struct rn_host host;

	if (len == 0 || len > DRC_REPLY_MAX)
		return false;
	e->reply = malloc(len);
	if (!e->reply)
		return false;
	rn_host_of_mapped(e->key.addr.bytes, e->key.addr.scope, &host);
	drc_make_room(s, &host, admitted, cost, now);
	if (!rn_quota_add(&s->quota, &host, admitted, &e->place, cost)) {
		free(e->reply);
		return false;
	}
	memcpy(e->reply, reply, len);
	e->reply_len = (uint32_t)len;
	e->done_ns = now;
	s->stats.bytes += sizeof(*e) + len;
	TAILQ_INSERT_TAIL(&s->finished, e, age);
	return true;
}

static bool drc_entry_store(struct drc_entry *e, const struct rpc_request *req, uint64_t now)
{
	const struct xdr_out *out = &req->out;

	return !out->overflow && out->nbulks == 0 &&
	       drc_entry_keep(e, out->base, out->used,
			      rpc_conn_admission(req->conn) == RPC_ADMITTED, now);
}

static void drc_entry_finish(const struct drc *drc, struct rpc_request *req, bool answered)
{
	struct drc_entry *e = req->drc;

	if (!e)
		return;
	const uint64_t now = drc->now();
	req->drc = NULL;
	struct drc_shard *s = e->shard;
	struct duplicate *d;

	pthread_mutex_lock(&s->lock);
	const bool awaited = !LIST_EMPTY(&e->waiting);

	LIST_FOREACH (d, &e->waiting, link)
		d->ended = true;
	LIST_INIT(&e->waiting);
	s->stats.running--;
	if (!answered || !drc_entry_store(e, req, now))
		drc_entry_drop(e);
	pthread_mutex_unlock(&s->lock);
	if (awaited)
		rpc_wake(req->server->waits, e); /* as an address */
}

void drc_done(struct drc *drc, struct rpc_request *req)
{
	drc_entry_finish(drc, req, true);
}

void drc_abandon(struct drc *drc, struct rpc_request *req)
{
	drc_entry_finish(drc, req, false);
}

void drc_stats(struct drc *drc, struct drc_stats *out)
{
	const uint64_t now = drc->now();

	memset(out, 0, sizeof(*out));
	out->reach_seconds = DRC_AGE_SECONDS;
	for (unsigned i = 0; i < drc->nshards; i++) {
		struct drc_shard *s = &drc->shards[i];

		pthread_mutex_lock(&s->lock);
		if (s->quota.pushed_out > 0 && now <= s->reached_ns + DRC_AGE_NS)
			out->reach_seconds =
				rn_min(out->reach_seconds, s->reach_ns / RN_NS_PER_SECOND);
		out->entries += s->stats.entries;
		out->running += s->stats.running;
		out->bytes += s->stats.bytes;
		out->hits += s->stats.hits;
		out->in_progress += s->stats.in_progress;
		out->misses += s->stats.misses;
		out->evicted += s->quota.pushed_out;
		out->expired += s->stats.expired;
		pthread_mutex_unlock(&s->lock);
	}
}

#define DRC_SECTION "duplicates"

struct saved_drc {
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct rpc_sum_secret secret;
};
static const struct image_field saved_drc_fields[] = {
	IMAGE_FIXED(1, struct saved_drc, hash_key),
	IMAGE_FIXED(2, struct saved_drc, secret),
};
static const struct image_kind saved_drc_kind = { 1, 2, saved_drc_fields };

struct saved_reply {
	struct drc_key key;
	struct rpc_cred cred;
	uint8_t flavor, sec, protection;
	uint64_t age_ns;
	struct image_bytes principal, reply;
};
static const struct image_field saved_reply_fields[] = {
	IMAGE_FIXED(1, struct saved_reply, key.addr.bytes),
	IMAGE_NUMBER(2, struct saved_reply, key.addr.scope),
	IMAGE_NUMBER(3, struct saved_reply, key.port),
	IMAGE_NUMBER(4, struct saved_reply, key.xid),
	IMAGE_NUMBER(5, struct saved_reply, key.prog),
	IMAGE_NUMBER(6, struct saved_reply, key.vers),
	IMAGE_NUMBER(7, struct saved_reply, key.proc),
	IMAGE_NUMBER(8, struct saved_reply, key.args_len),
	IMAGE_NUMBER(9, struct saved_reply, key.sum.low),
	IMAGE_NUMBER(10, struct saved_reply, key.sum.high),
	IMAGE_NUMBER(11, struct saved_reply, flavor),
	IMAGE_NUMBER(12, struct saved_reply, sec),
	IMAGE_NUMBER(13, struct saved_reply, protection),
	IMAGE_NUMBER(14, struct saved_reply, cred.uid),
	IMAGE_NUMBER(15, struct saved_reply, cred.gid),
	IMAGE_NUMBER(16, struct saved_reply, cred.ngids),
	IMAGE_FIXED(17, struct saved_reply, cred.gids),
	IMAGE_BYTES(18, struct saved_reply, principal),
	IMAGE_NUMBER(19, struct saved_reply, age_ns),
	IMAGE_BYTES(20, struct saved_reply, reply),
};
static const struct image_kind saved_reply_kind = { 2, rn_array_size(saved_reply_fields),
						    saved_reply_fields };

static void save_reply(struct image_writer *w, const struct drc_entry *e, uint64_t now)
{
	const struct rpc_principal *name = e->cred.principal;
	struct saved_reply r = {
		.key = e->key,
		.cred = e->cred,
		.flavor = (uint8_t)e->cred.flavor,
		.sec = (uint8_t)e->cred.sec,
		.protection = (uint8_t)e->cred.protection,
		.age_ns = now - e->done_ns,
		.reply = { e->reply, e->reply_len },
	};

	if (name)
		r.principal =
			(struct image_bytes){ (const uint8_t *)name->name, (uint32_t)name->len };
	image_put(w, &saved_reply_kind, &r);
}

void drc_save(struct drc *drc, struct image_writer *w)
{
	const uint64_t now = drc->now();
	struct saved_drc whole = { .secret = drc->secret };
	struct drc_entry *e;

	memcpy(whole.hash_key, drc->hash_key, sizeof(whole.hash_key));
	image_begin(w, DRC_SECTION);
	image_put(w, &saved_drc_kind, &whole);
	explicit_bzero(&whole, sizeof(whole));
	for (unsigned i = 0; i < drc->nshards; i++) {
		pthread_mutex_lock(&drc->shards[i].lock);
		TAILQ_FOREACH (e, &drc->shards[i].finished, age)
			save_reply(w, e, now);
		pthread_mutex_unlock(&drc->shards[i].lock);
	}
}

/* Adds the reply, if there is room for it and for its caller's name. */
static void load_reply(struct drc *drc, const struct saved_reply *r)
{
	const uint64_t now = drc->now(), hash = key_hash(drc, &r->key);
	struct drc_shard *s = drc_shard_of(drc, &r->key, hash);
	struct drc_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return;
	e->shard = s;
	e->key = r->key;
	e->cred = r->cred;
	if (r->principal.at)
		e->cred.principal =
			rpc_principal_new((const char *)r->principal.at, r->principal.len);
	pthread_mutex_lock(&s->lock);
	LIST_INSERT_HEAD(&s->buckets[hash & s->bucket_mask], e, link);
	s->stats.entries++;
	if ((r->principal.at && !e->cred.principal) ||
	    !drc_entry_keep(e, r->reply.at, r->reply.len, true, now - rn_min(now, r->age_ns)))
		drc_entry_drop(e);
	pthread_mutex_unlock(&s->lock);
}

int drc_load(struct drc *drc, struct image_reader *image)
{
	struct saved_drc whole;
	struct image_at at;

	if (!image_enter(image, DRC_SECTION, &at))
		return 0;
	if (image_get(&at, &saved_drc_kind, &whole) < 0)
		return -EPROTO;
	memcpy(drc->hash_key, whole.hash_key, sizeof(whole.hash_key));
	drc->secret = whole.secret;
	explicit_bzero(&whole, sizeof(whole));
	while (image_next(&at)) {
		struct saved_reply r;

		memset(&r, 0, sizeof(r));
		if (image_get(&at, &saved_reply_kind, &r) < 0 ||
		    r.cred.ngids > RPC_AUTH_SYS_GIDS_MAX)
			return -EPROTO;
		r.cred.flavor = r.flavor;
		r.cred.sec = r.sec;
		r.cred.protection = r.protection;
		r.cred.principal = NULL;
		load_reply(drc, &r);
	}
	return 0;
}
