/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of eight entries a bucket. Two neighbouring inode numbers share a bucket, as the files of a
 * directory often follow each other by their numbers, too: so they share cache lines.
 */
#include "vfs/fs/handle_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "vfs/fs/change.h"
#include "vfs/fs/handle.h"

#define WAYS 8u
#define LOCKS 256u
#define NEIGHBOURS 2u /* inode numbers that share a bucket */
#define PERIOD 64     /* seconds: an entry that was not found for longer gives way */
/* Listings of a folder that does not fit would have each name drive out another one that is asked for later. So of names that find
 * no room one in so many gets it. */
#define ONE_IN 8u
#define FILLED_PART 8u		     /* fraction of the entries that are many */
#define BUDGET_PART 64u		     /* fraction of the budget */
#define BYTES_MIN ((size_t)1 << 20)  /* without a budget */
#define BYTES_MAX ((size_t)64 << 20) /* two million files */

struct entry {
	uint64_t ino;
	int64_t ctime;
	uint32_t mount; /* 0: a free entry */
	uint32_t volume, generation;
	uint16_t type;
	uint16_t used; /* period in which it was last found or made */
};

/* The locks do not share cache lines. */
struct stripe {
	_Alignas(64) pthread_mutex_t lock;
	uint64_t found, missed;
	unsigned crowded; /* inodes that found no free entry */
	uint64_t filled;  /* entries; of the first stripe only */
};

struct vfs_handle_cache {
	struct stripe stripe[LOCKS];
	struct rn_budget *budget; /* NULL: not counted */
	size_t bytes;
	uint64_t nbuckets; /* a power of two */
	struct entry (*bucket)[WAYS];
};

/* The largest power of two of bytes that the budget allows. */
size_t vfs_handle_cache_memory(size_t whole)
{
	size_t bytes = BYTES_MIN;

	while (bytes < BYTES_MAX && bytes * 2 <= whole / BUDGET_PART)
		bytes *= 2;
	return bytes;
}

/* 0: the budget does not have so much left. */
static size_t take_bytes(struct rn_budget *budget)
{
	const size_t bytes = vfs_handle_cache_memory(budget ? budget->max : 0);

	if (!budget)
		return bytes;
	return rn_budget_take(budget, bytes) ? bytes : 0;
}

/* Memory that is given page by page as it is used; large pages, since every search goes to another
 * place. */
static void *map_zeros(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* The first touch of a huge page clears 2 MiB: up to 6 ms in a virtual machine, on an event thread, and memory that few files
	 * have no use for. */
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

/* Under the lock of the stripe, which has one more entry. A table of many entries is put into huge pages by the kernel, in time. */
static void note_filled(const struct vfs_handle_cache *c, struct stripe *s)
{
	if (s == c->stripe && ++s->filled == c->nbuckets * WAYS / LOCKS / FILLED_PART)
		madvise(c->bucket, c->bytes, MADV_HUGEPAGE);
}

struct vfs_handle_cache *vfs_handle_cache_new(struct rn_budget *budget)
{
	const size_t bytes = take_bytes(budget);
	struct vfs_handle_cache *c = NULL;

	if (bytes > 0)
		c = aligned_alloc(_Alignof(struct vfs_handle_cache), sizeof(*c));
	if (!c) {
		if (budget)
			rn_budget_give(budget, bytes);
		return NULL;
	}
	memset(c, 0, sizeof(*c));
	c->budget = budget;
	c->bytes = bytes;
	c->nbuckets = bytes / sizeof(c->bucket[0]);
	c->bucket = map_zeros(bytes);
	for (unsigned i = 0; i < LOCKS; i++)
		pthread_mutex_init(&c->stripe[i].lock, NULL);
	if (!c->bucket) {
		vfs_handle_cache_free(c);
		return NULL;
	}
	return c;
}

void vfs_handle_cache_free(struct vfs_handle_cache *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&c->stripe[i].lock);
	if (c->budget)
		rn_budget_give(c->budget, c->bytes);
	if (c->bucket)
		munmap(c->bucket, c->bytes);
	free(c);
}

static uint64_t mix(uint64_t v)
{
	v *= 0x9e3779b97f4a7c15u;
	return v ^ v >> 32;
}

/* All bits count: ext4 puts the files of a large directory into groups of inodes at distances that
 * are powers of two. */
static uint64_t handle_cache_bucket_of(const struct vfs_handle_cache *c,
				       const struct vfs_inode_key *key)
{
	const uint64_t other = (uint64_t)key->mount << 32 | key->volume;

	return mix(key->ino / NEIGHBOURS + mix(other)) & (c->nbuckets - 1);
}

/* The entry of the inode, whatever its ctime is; NULL: there is none. */
static struct entry *handle_cache_find(struct entry *bucket, const struct vfs_inode_key *key)
{
	for (unsigned i = 0; i < WAYS; i++) {
		if (bucket[i].ino == key->ino && bucket[i].mount == key->mount &&
		    bucket[i].volume == key->volume)
			return &bucket[i];
	}
	return NULL;
}

static uint16_t handle_cache_period(void)
{
	return (uint16_t)(rn_now_coarse_seconds() / PERIOD);
}

/* Under the stripe's lock. NULL: all entries are in use, and this inode is to do without. */
static struct entry *handle_cache_make_room(struct stripe *s, struct entry *bucket, uint64_t ino)
{
	const uint16_t now = handle_cache_period();
	struct entry *oldest = &bucket[ino % WAYS];

	for (unsigned i = 0; i < WAYS; i++) {
		if (bucket[i].mount == 0)
			return &bucket[i];
		if ((uint16_t)(now - bucket[i].used) > (uint16_t)(now - oldest->used))
			oldest = &bucket[i];
	}
	return (uint16_t)(now - oldest->used) > 1 || s->crowded++ % ONE_IN == 0 ? oldest : NULL;
}

void vfs_handle_cache_prefetch(const struct vfs_handle_cache *c, const struct vfs_inode_key *key)
{
	const struct entry *e = c->bucket[handle_cache_bucket_of(c, key)];

	/* Most are among the first. */
	__builtin_prefetch(e);
	__builtin_prefetch(e + 2);
}

bool vfs_handle_cache_find(struct vfs_handle_cache *c, const struct vfs_inode_key *key,
			   struct vfs_handle *out)
{
	const uint64_t b = handle_cache_bucket_of(c, key);
	struct stripe *s = &c->stripe[b % LOCKS];
	struct vfs_inode_handle parts;
	struct entry *e;
	bool found;

	pthread_mutex_lock(&s->lock);
	e = handle_cache_find(c->bucket[b], key);
	found = e && e->ctime == key->ctime;
	if (found) {
		parts = (struct vfs_inode_handle){ e->ino, e->volume, e->generation, e->type };
		e->used = handle_cache_period();
		s->found++;
	} else {
		s->missed++;
	}
	pthread_mutex_unlock(&s->lock);
	if (found)
		vfs_handle_join(&parts, out);
	return found;
}

void vfs_handle_cache_add(struct vfs_handle_cache *c, const struct vfs_inode_key *key,
			  const struct vfs_handle *h, int64_t clock)
{
	const uint64_t b = handle_cache_bucket_of(c, key);
	struct stripe *s = &c->stripe[b % LOCKS];
	struct vfs_inode_handle parts;
	struct entry *e;

	if (!vfs_ctime_is_over(key->ctime, clock) || !vfs_handle_split(h, &parts) ||
	    parts.ino != key->ino || parts.volume != key->volume || parts.type < 0 ||
	    parts.type > UINT16_MAX)
		return;
	pthread_mutex_lock(&s->lock);
	e = handle_cache_find(c->bucket[b], key);
	if (!e)
		e = handle_cache_make_room(s, c->bucket[b], key->ino);
	if (e && e->mount == 0)
		note_filled(c, s);
	if (e)
		*e = (struct entry){
			.ino = key->ino,
			.ctime = key->ctime,
			.mount = key->mount,
			.volume = key->volume,
			.generation = parts.generation,
			.type = (uint16_t)parts.type,
			.used = handle_cache_period(),
		};
	pthread_mutex_unlock(&s->lock);
}

void vfs_handle_cache_stats(struct vfs_handle_cache *c, uint64_t *found, uint64_t *missed)
{
	*found = *missed = 0;
	for (unsigned i = 0; i < LOCKS; i++) {
		pthread_mutex_lock(&c->stripe[i].lock);
		*found += c->stripe[i].found;
		*missed += c->stripe[i].missed;
		pthread_mutex_unlock(&c->stripe[i].lock);
	}
}
