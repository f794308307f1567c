/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of a client's states: by stateid, and by {owner, file}, with the counts and the charges of memory that
 * change with them. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/nfs4_layout.h"
#include "nfs4/state/state.h"

struct nfs4_totals {
	_Atomic uint64_t of[NFS4_TOTALS];
};

int nfs4_totals_new(struct nfs4_server *srv)
{
	srv->totals = calloc(1, sizeof(*srv->totals));
	return srv->totals ? 0 : -ENOMEM;
}

void nfs4_totals_free(struct nfs4_totals *s)
{
	free(s);
}

void nfs4_totals_held(struct nfs4_totals *s, struct nfs4_held *out)
{
	out->owners = atomic_load(&s->of[NFS4_TOTAL_OWNERS]);
	out->opens = atomic_load(&s->of[NFS4_TOTAL_OPENS]);
	out->locks = atomic_load(&s->of[NFS4_TOTAL_LOCKS]);
	out->delegations = atomic_load(&s->of[NFS4_TOTAL_DELEGS]);
	out->layouts = atomic_load(&s->of[NFS4_TOTAL_LAYOUTS]);
}

void nfs4_totals_count(struct nfs4_server *srv, enum nfs4_total what, int by)
{
	atomic_fetch_add_explicit(&srv->totals->of[what], (uint64_t)(int64_t)by,
				  memory_order_relaxed);
}

bool nfs4_state_charge(struct nfs4_client *cl, size_t bytes)
{
	return nfs4_host_take(cl->host, bytes, NFS4_TO_HOLD);
}

void nfs4_state_discharge(struct nfs4_client *cl, size_t bytes)
{
	nfs4_host_give(cl->host, bytes);
}

/* Brings nfs4_holdings.live up to date after a change of the lock. */
static void nfs4_lock_count(struct nfs4_lock *lock)
{
	const bool counts = atomic_load(&lock->held) && !lock->st.gone && !lock->st.revoked;

	lock->st.client->holdings->live.locks += (uint32_t)counts - (uint32_t)lock->counted;
	lock->counted = counts;
}

bool nfs4_ranges_fit(struct nfs4_lock *lock)
{
	return nfs4_host_fits(lock->st.client->host, 2 * (size_t)NFS4_RANGE_COST, NFS4_TO_HOLD);
}

/* Charges existing ranges as far as the budget goes: LOCKU, which may split a range, must not fail
 * for lack of memory. */
void nfs4_ranges_changed(struct nfs4_lock *lock)
{
	struct nfs4_client *cl = lock->st.client;

	lock->held = vfs_lock_held(&lock->ranges);
	pthread_mutex_lock(&cl->lock);
	nfs4_lock_count(lock);
	while (!lock->st.gone && lock->charged < lock->ranges.count &&
	       nfs4_state_charge(cl, NFS4_RANGE_COST))
		lock->charged++;
	if (lock->charged > lock->ranges.count) {
		nfs4_state_discharge(cl, (lock->charged - lock->ranges.count) *
						 (size_t)NFS4_RANGE_COST);
		lock->charged = lock->ranges.count;
	}
	pthread_mutex_unlock(&cl->lock);
}

int nfs4_state_no_memory(const struct nfs4_compound *c)
{
	return c->minor == 0 ? NFS4ERR_RESOURCE : NFS4ERR_DELAY;
}

#define CHUNK 256u /* entries */
#define GEN_BITS 12
#define GEN_MASK ((1u << GEN_BITS) - 1)
#define STATES_MAX ((1u << 20) - 1) /* per client */
#define NONE STATES_MAX

/* An entry in use is the pointer to its state, which is even. A free entry holds its next
 * generation and the number of the next free entry. */
static uint64_t free_entry(uint32_t next, uint32_t gen)
{
	return ((uint64_t)next << GEN_BITS | (gen & GEN_MASK)) << 1 | 1;
}

static bool stateid_entry_is_free(uint64_t entry)
{
	return entry & 1;
}

static uint32_t stateid_entry_next(uint64_t entry)
{
	return (uint32_t)(entry >> (GEN_BITS + 1));
}

static uint32_t gen_of(uint64_t entry)
{
	return (uint32_t)(entry >> 1) & GEN_MASK;
}

static uint64_t *entry_at(const struct nfs4_holdings *held, uint32_t i)
{
	return &held->chunks[i / CHUNK][i % CHUNK];
}

void nfs4_stateids_init(struct nfs4_holdings *held)
{
	held->free_first = NONE;
	held->free_last = NONE;
}

static size_t directory_size(uint32_t nchunks)
{
	return nchunks * sizeof(uint64_t *);
}

/* All entries must be free. */
static void nfs4_stateids_fini(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;

	for (uint32_t i = 0; i < held->nchunks; i++)
		free(held->chunks[i]);
	nfs4_state_discharge(cl, held->nchunks * (CHUNK * sizeof(uint64_t) + sizeof(uint64_t *)));
	free(held->chunks);
	held->chunks = NULL;
	held->nchunks = 0;
	nfs4_stateids_init(held);
}

static void append_free(struct nfs4_holdings *held, uint32_t i, uint32_t gen)
{
	uint64_t *last;

	*entry_at(held, i) = free_entry(NONE, gen);
	if (held->free_last == NONE) {
		held->free_first = i;
	} else {
		last = entry_at(held, held->free_last);
		*last = free_entry(i, gen_of(*last));
	}
	held->free_last = i;
}

/* Adds a chunk. The array of chunks doubles, so that growing has a constant cost per chunk. */
static int stateid_add_chunk(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;
	const uint32_t n = held->nchunks;
	uint64_t **chunks = held->chunks, *chunk;
	size_t cost = CHUNK * sizeof(uint64_t) + sizeof(uint64_t *);

	if ((n + 1) * CHUNK > STATES_MAX)
		return -ENOSPC;
	if (!nfs4_state_charge(cl, cost))
		return -ENOMEM;
	if ((n & (n - 1)) == 0)
		chunks = realloc(held->chunks, directory_size(n > 0 ? 2 * n : 1));
	chunk = chunks ? calloc(CHUNK, sizeof(uint64_t)) : NULL;
	if (chunks)
		held->chunks = chunks;
	if (!chunk) {
		nfs4_state_discharge(cl, cost);
		return -ENOMEM;
	}
	held->chunks[n] = chunk;
	held->nchunks++;
	for (uint32_t i = 0; i < CHUNK; i++)
		append_free(held, n * CHUNK + i, 1);
	return 0;
}

/* Sets st->id. 0, -ENOMEM, or -ENOSPC if the client has the maximum. */
static int nfs4_stateid_take(struct nfs4_client *cl, struct nfs4_state *st)
{
	struct nfs4_holdings *held = cl->holdings;
	int rc = held->free_first == NONE ? stateid_add_chunk(cl) : 0;
	uint64_t *entry;
	uint32_t i;

	if (rc != 0)
		return rc;
	i = held->free_first;
	entry = entry_at(held, i);
	held->free_first = stateid_entry_next(*entry);
	if (held->free_first == NONE)
		held->free_last = NONE;
	st->id = i << GEN_BITS | gen_of(*entry);
	st->tag = nfs4_stateid_tag(cl->srv, cl->number, st->id);
	*entry = (uint64_t)(uintptr_t)st;
	return 0;
}

/*
 * The table in an image: two bytes for each entry, the generation of its state, or of the next one, and a bit for a state. An entry
 * whose state has not come yet is free, and in no list of free ones.
 */
#define SAVED_USED 0x8000u

void nfs4_stateids_put(const struct nfs4_holdings *held, uint8_t *out)
{
	for (uint32_t i = 0; i < nfs4_stateid_entries(held); i++) {
		const struct nfs4_state *st = nfs4_stateid_at(held, i);
		const uint32_t v =
			st ? (st->id & GEN_MASK) | SAVED_USED : gen_of(*entry_at(held, i));

		out[2 * i] = (uint8_t)(v >> 8);
		out[2 * i + 1] = (uint8_t)v;
	}
}

int nfs4_stateids_load(struct nfs4_client *cl, const uint8_t *in, uint32_t entries)
{
	struct nfs4_holdings *held = cl->holdings;
	int rc = held->nchunks > 0 || entries % CHUNK != 0 ? -EPROTO : 0;

	while (rc == 0 && nfs4_stateid_entries(held) < entries)
		rc = stateid_add_chunk(cl);
	if (rc != 0)
		return rc;
	nfs4_stateids_init(held);
	for (uint32_t i = 0; i < entries; i++) {
		const uint32_t v = (uint32_t)in[2 * i] << 8 | in[2 * i + 1];

		if (v & SAVED_USED)
			*entry_at(held, i) = free_entry(NONE, v & GEN_MASK);
		else
			append_free(held, i, v & GEN_MASK);
	}
	return 0;
}

/* Gives st its entry of the program before. -EPROTO: that is another's, or there is none. */
static int nfs4_stateid_return(struct nfs4_client *cl, struct nfs4_state *st, uint32_t id)
{
	struct nfs4_holdings *held = cl->holdings;
	const uint32_t i = id >> GEN_BITS;

	if (i >= nfs4_stateid_entries(held) || nfs4_stateid_at(held, i) ||
	    gen_of(*entry_at(held, i)) != (id & GEN_MASK))
		return -EPROTO;
	st->id = id;
	st->tag = nfs4_stateid_tag(cl->srv, cl->number, id);
	*entry_at(held, i) = (uint64_t)(uintptr_t)st;
	return 0;
}

static void nfs4_stateid_free(struct nfs4_holdings *held, uint32_t id)
{
	append_free(held, id >> GEN_BITS, (id & GEN_MASK) + 1);
}

uint32_t nfs4_stateid_entries(const struct nfs4_holdings *held)
{
	return held->nchunks * CHUNK;
}

struct nfs4_state *nfs4_stateid_at(const struct nfs4_holdings *held, uint32_t entry)
{
	const uint64_t value = *entry_at(held, entry);

	/* NOLINT: the pointer that stateid_take stored */
	return stateid_entry_is_free(value) ? NULL : (struct nfs4_state *)(uintptr_t)value;
}

struct nfs4_state *nfs4_stateid_find(const struct nfs4_holdings *held, uint32_t id)
{
	const uint32_t i = id >> GEN_BITS;
	struct nfs4_state *st = i < nfs4_stateid_entries(held) ? nfs4_stateid_at(held, i) : NULL;

	return st && st->id == id ? st : NULL;
}

#define BUCKETS_MIN 16u

static uint32_t nfs4_state_bucket_of(const struct nfs4_holdings *held, const struct nfs4_owner *o,
				     const struct vfs_file *f)
{
	uint64_t h = nfs4_mix((uintptr_t)o) ^ (uintptr_t)f;

	return (uint32_t)nfs4_mix(h) & (held->state_buckets - 1);
}

static struct nfs4_state *find_by_file(struct nfs4_client *cl, const struct nfs4_owner *o,
				       const struct vfs_file *f, bool layout)
{
	struct nfs4_holdings *held = cl->holdings;
	struct nfs4_state *st;

	if (held->state_buckets == 0)
		return NULL;
	st = held->state_hash[nfs4_state_bucket_of(held, o, f)];
	while (st && (st->owner != o || st->file != f || (st->kind == NFS4_STATE_LAYOUT) != layout))
		st = st->hash_next;
	return st;
}

struct nfs4_state *nfs4_state_by_file(struct nfs4_client *cl, const struct nfs4_owner *o,
				      const struct vfs_file *f)
{
	return find_by_file(cl, o, f, false);
}

struct nfs4_state *nfs4_layout_by_file(struct nfs4_client *cl, const struct vfs_file *f)
{
	return find_by_file(cl, NULL, f, true);
}

struct nfs4_lock *nfs4_lock_find(struct nfs4_client *cl, const struct nfs4_owner *o,
				 const struct vfs_file *f)
{
	struct nfs4_state *st;

	pthread_mutex_lock(&cl->lock);
	st = nfs4_state_by_file(cl, o, f);
	if (st)
		nfs4_state_ref(st);
	pthread_mutex_unlock(&cl->lock);
	return st ? nfs4_as_lock(st) : NULL;
}

static void hash_insert(struct nfs4_holdings *held, struct nfs4_state *st)
{
	struct nfs4_state **at = &held->state_hash[nfs4_state_bucket_of(held, st->owner, st->file)];

	st->hash_next = *at;
	*at = st;
}

static void hash_remove(struct nfs4_holdings *held, struct nfs4_state *st)
{
	struct nfs4_state **at = &held->state_hash[nfs4_state_bucket_of(held, st->owner, st->file)];

	while (*at != st)
		at = &(*at)->hash_next;
	*at = st->hash_next;
}

/* Doubles the buckets when there are as many states; without memory the chains grow. */
static int nfs4_state_table_grow(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;
	uint32_t n = held->state_buckets > 0 ? 2 * held->state_buckets : BUCKETS_MIN;
	struct nfs4_state **fresh, **old = held->state_hash, *st;

	if (!nfs4_state_charge(cl, (n - held->state_buckets) * sizeof(*fresh)))
		return held->state_buckets > 0 ? 0 : -ENOMEM;
	fresh = calloc(n, sizeof(*fresh));
	if (!fresh) {
		nfs4_state_discharge(cl, (n - held->state_buckets) * sizeof(*fresh));
		return held->state_buckets > 0 ? 0 : -ENOMEM;
	}
	held->state_hash = fresh;
	held->state_buckets = n;
	TAILQ_FOREACH (st, &held->states, link) {
		if (!st->revoked)
			hash_insert(held, st);
	}
	free(old);
	return 0;
}

static size_t cost_of(struct nfs4_state *st)
{
	if (st->kind == NFS4_STATE_LOCK)
		return sizeof(struct nfs4_lock);
	if (st->kind == NFS4_STATE_DELEG)
		return sizeof(struct nfs4_deleg) + nfs4_as_deleg(st)->fh_len + NFS4_FILE_COST;
	if (st->kind == NFS4_STATE_LAYOUT)
		return sizeof(struct nfs4_layout) + nfs4_as_layout(st)->fh_len + NFS4_FILE_COST;
	return sizeof(struct nfs4_open) + nfs4_as_open(st)->fh_len + NFS4_FILE_COST;
}

static void nfs4_state_count(struct nfs4_client *cl, const struct nfs4_state *st, int by)
{
	struct nfs4_holdings *held = cl->holdings;

	switch ((enum nfs4_state_kind)st->kind) {
	case NFS4_STATE_OPEN:
		held->opens += (uint32_t)by;
		nfs4_totals_count(cl->srv, NFS4_TOTAL_OPENS, by);
		break;
	case NFS4_STATE_LOCK:
		held->locks += (uint32_t)by;
		nfs4_totals_count(cl->srv, NFS4_TOTAL_LOCKS, by);
		break;
	case NFS4_STATE_LAYOUT:
		held->layouts += (uint32_t)by;
		nfs4_totals_count(cl->srv, NFS4_TOTAL_LAYOUTS, by);
		break;
	default:
		held->delegs += (uint32_t)by;
		nfs4_totals_count(cl->srv, NFS4_TOTAL_DELEGS, by);
	}
}

/* Like nfs4_state_count(), for states that are not revoked. nfs4_lock_count() counts those of locks. */
static void count_live(struct nfs4_holdings *held, const struct nfs4_state *st, int by)
{
	if (st->kind == NFS4_STATE_OPEN)
		held->live.opens += (uint32_t)by;
	else if (st->kind == NFS4_STATE_DELEG)
		held->live.delegs += (uint32_t)by;
}

/* id: of the program before; NULL: a new one. */
static int nfs4_state_enter(struct nfs4_client *cl, struct nfs4_state *st, const uint32_t *id)
{
	struct nfs4_holdings *held = cl->holdings;
	int rc = 0;

	if (held->dropped)
		return -ESTALE;
	if (held->opens + held->locks + held->delegs + held->layouts >= held->state_buckets)
		rc = nfs4_state_table_grow(cl);
	if (rc == 0 && !nfs4_state_charge(cl, cost_of(st)))
		rc = -ENOMEM;
	if (rc != 0)
		return rc;
	rc = id ? nfs4_stateid_return(cl, st, *id) : nfs4_stateid_take(cl, st);
	if (rc != 0) {
		nfs4_state_discharge(cl, cost_of(st));
		return rc;
	}
	st->slotted = true;
	hash_insert(held, st);
	TAILQ_INSERT_TAIL(&held->states, st, link);
	if (st->kind == NFS4_STATE_LOCK) {
		LIST_INSERT_HEAD(&nfs4_as_lock(st)->open->locks, nfs4_as_lock(st), open_link);
		LIST_INSERT_HEAD(&st->owner->locks, nfs4_as_lock(st), owner_link);
	}
	if (st->owner)
		st->owner->states++;
	nfs4_state_ref(st);
	nfs4_state_count(cl, st, 1);
	count_live(held, st, 1);
	return 0;
}

int nfs4_state_add(struct nfs4_client *cl, struct nfs4_state *st)
{
	return nfs4_state_enter(cl, st, NULL);
}

int nfs4_state_return(struct nfs4_client *cl, struct nfs4_state *st, uint32_t id)
{
	return nfs4_state_enter(cl, st, &id);
}

void nfs4_state_remove(struct nfs4_client *cl, struct nfs4_state *st, bool keep)
{
	struct nfs4_holdings *held = cl->holdings;

	st->gone = true;
	if (st->revoked) {
		atomic_fetch_sub(&held->revoked[nfs4_revoked_by((int)st->revoked)], 1);
	} else {
		hash_remove(held, st);
		count_live(held, st, -1);
	}
	TAILQ_REMOVE(&held->states, st, link);
	if (st->kind == NFS4_STATE_LOCK) {
		nfs4_lock_count(nfs4_as_lock(st));
		LIST_REMOVE(nfs4_as_lock(st), open_link);
		LIST_REMOVE(nfs4_as_lock(st), owner_link);
		nfs4_state_discharge(cl, nfs4_as_lock(st)->charged * (size_t)NFS4_RANGE_COST);
	}
	if (st->owner)
		st->owner->states--;
	nfs4_state_count(cl, st, -1);
	if (!keep)
		nfs4_state_forget(cl, st);
}

void nfs4_state_revoke(struct nfs4_client *cl, struct nfs4_state *st, int status)
{
	struct nfs4_holdings *held = cl->holdings;

	if (st->revoked)
		return;
	hash_remove(held, st);
	TAILQ_REMOVE(&held->states, st, link); /* states that are not revoked come first */
	TAILQ_INSERT_TAIL(&held->states, st, link);
	st->revoked = (uint32_t)status;
	count_live(held, st, -1);
	if (st->kind == NFS4_STATE_LOCK)
		nfs4_lock_count(nfs4_as_lock(st));
	atomic_fetch_add(&held->revoked[nfs4_revoked_by(status)], 1);
}

void nfs4_states_empty(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;

	nfs4_stateids_fini(cl);
	nfs4_layout_troubles_free(cl);
	nfs4_state_discharge(cl, held->state_buckets * sizeof(*held->state_hash));
	free(held->state_hash);
	held->state_hash = NULL;
	held->state_buckets = 0;
}

void nfs4_state_forget(struct nfs4_client *cl, struct nfs4_state *st)
{
	if (!st->slotted)
		return;
	st->slotted = false;
	nfs4_stateid_free(cl->holdings, st->id);
	nfs4_state_discharge(cl, cost_of(st));
}
