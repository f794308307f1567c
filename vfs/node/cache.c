/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes hang in shards by the hash of mount and handle; each shard has its lock and its lists of
 * unreferenced nodes. A node is found and referenced under its shard's lock, and put back there.
 * The thread that drops the last reference of a node which is out of the cache, or that takes an
 * unreferenced node out of it, frees it, after the lock is released: closing may wait for the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/dir_watch.h"
#include "vfs/node/cache.h"
#include "vfs/node/hooks.h"
#include "vfs/node/node.h"
#include "vfs/node/uncommitted.h"

#define MARKED_SECONDS 600 /* beyond other nodes' time: an unused directory with a mark */
#define WRITTEN_SECONDS 2  /* unused, then descriptors for writing go */
#define SWEEP_NODES 256u   /* that a sweep looks at under a shard's lock */
#define SWEEP_ASKED 32u	   /* of them: those that it asks the table of files about */
#define SHARDS 64u
#define BUCKETS 1024u /* per shard */

LIST_HEAD(node_list, vfs_node);
TAILQ_HEAD(node_lru, vfs_node);

struct shard {
	pthread_mutex_t lock;
	struct node_list bucket[BUCKETS];
	/* Nodes without a reference, oldest first: those that can be closed, and those that have
	 * uncommitted data. */
	struct node_lru lru, unsynced;
};

struct vfs_cache {
	struct shard shard[SHARDS];
	_Atomic unsigned evict_next; /* the shard that is asked next for an eviction */
	_Atomic uint64_t nodes, hits, misses, evictions;
};

struct vfs_cache *vfs_cache_new(void)
{
	struct vfs_cache *c = calloc(1, sizeof(*c));

	for (unsigned i = 0; c && i < SHARDS; i++) {
		pthread_mutex_init(&c->shard[i].lock, NULL);
		TAILQ_INIT(&c->shard[i].lru);
		TAILQ_INIT(&c->shard[i].unsynced);
	}
	return c;
}

void vfs_cache_free(struct vfs_cache *c)
{
	for (unsigned i = 0; c && i < SHARDS; i++)
		pthread_mutex_destroy(&c->shard[i].lock);
	free(c);
}

static uint64_t node_hash_of(const struct vfs *vfs, const struct vfs_fh *fh)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, fh->data, fh->len, vfs->hash_key);
	return h;
}

static struct shard *node_shard_of(struct vfs *vfs, uint64_t hash)
{
	return &vfs->cache->shard[hash % SHARDS];
}

static struct node_list *node_bucket_of(struct shard *s, uint64_t hash)
{
	return &s->bucket[hash / SHARDS % BUCKETS];
}

/* Under the shard's lock: the list of an unreferenced node of the cache. */
static struct node_lru *idle_list(struct shard *s, const struct vfs_node *n)
{
	return vfs_uncommitted_any(n) ? &s->unsynced : &s->lru;
}

/* Under the shard's lock. The hash is under a secret key and of the MAC as well, and compared
 * first: how long this takes tells nothing of another handle's MAC. */
static struct vfs_node *look_for(struct shard *s, uint64_t hash, const struct vfs_mount *mnt,
				 const struct vfs_fh *fh)
{
	struct vfs_node *n;

	LIST_FOREACH (n, node_bucket_of(s, hash), bucket_link) {
		if (n->hash == hash && n->mnt == mnt && n->fh.len == fh->len &&
		    memcmp(n->fh.data, fh->data, fh->len) == 0)
			break;
	}
	return n;
}

/* Like look_for(), with a reference. */
static struct vfs_node *node_find_locked(struct shard *s, uint64_t hash,
					 const struct vfs_mount *mnt, const struct vfs_fh *fh)
{
	struct vfs_node *n = look_for(s, hash, mnt, fh);

	if (n && n->refs++ == 0)
		TAILQ_REMOVE(idle_list(s, n), n, lru_link);
	return n;
}

struct vfs_node *vfs_cache_find(struct vfs *vfs, struct vfs_mount *mnt, const struct vfs_fh *fh)
{
	uint64_t hash = node_hash_of(vfs, fh);
	struct shard *s = node_shard_of(vfs, hash);
	struct vfs_node *n;

	pthread_mutex_lock(&s->lock);
	n = node_find_locked(s, hash, mnt, fh);
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_add_explicit(n ? &vfs->cache->hits : &vfs->cache->misses, 1,
				  memory_order_relaxed);
	return n;
}

void vfs_cache_peek_fd(struct vfs *vfs, const struct vfs_mount *mnt, const struct vfs_fh *fh,
		       void (*peek)(void *arg, int fd), void *arg)
{
	const uint64_t hash = node_hash_of(vfs, fh);
	struct shard *s = node_shard_of(vfs, hash);
	const struct vfs_node *n;

	pthread_mutex_lock(&s->lock);
	n = look_for(s, hash, mnt, fh);
	if (n)
		peek(arg, n->path_fd);
	pthread_mutex_unlock(&s->lock);
}

/* The node is in no list and nobody has a reference. False: its descriptor lives on. */
static bool node_free(struct vfs_node *n)
{
	struct vfs *vfs = n->vfs;
	const bool inherited = vfs_unlinked_leave_fd(n);

	vfs_dir_streams_close(n);
	if (atomic_load(&n->watched))
		vfs_dir_watch_unmark(n->mnt->watch, n->path_fd);
	for (unsigned i = 0; i < VFS_FD_KINDS; i++)
		vfs_fd_close(vfs, n->data_fd[i]);
	if (!inherited)
		vfs_fd_close(vfs, n->path_fd);
	pthread_mutex_destroy(&n->open_lock);
	vfs_uncommitted_fini(n);
	vfs_mount_put(n->mnt);
	vfs_export_put(n->exp);
	free(n);
	atomic_fetch_sub(&vfs->cache->nodes, 1);
	return !inherited;
}

static struct vfs_node *node_new(struct vfs *vfs, const struct vfs_node_parts *parts)
{
	struct vfs_node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->vfs = vfs;
	n->exp = parts->exp;
	n->mnt = parts->mnt;
	n->fh = *parts->fh;
	n->type = parts->type;
	n->dev = parts->dev;
	n->ino = parts->ino;
	atomic_init(&n->link, parts->link);
	n->path_fd = parts->path_fd;
	vfs_uncommitted_init(&n->uncommitted);
	n->hash = node_hash_of(vfs, &n->fh);
	n->refs = 1;
	n->hashed = true;
	for (unsigned i = 0; i < VFS_FD_KINDS; i++)
		atomic_init(&n->data_fd[i], -1);
	pthread_mutex_init(&n->open_lock, NULL);
	vfs_export_ref(n->exp);
	vfs_mount_ref(n->mnt);
	atomic_fetch_add(&vfs->cache->nodes, 1);
	return n;
}

int vfs_cache_add(struct vfs *vfs, const struct vfs_node_parts *parts, struct vfs_node **out)
{
	struct vfs_node *fresh = node_new(vfs, parts);
	struct shard *s;
	struct vfs_node *n;

	if (!fresh) {
		vfs_fd_close(vfs, parts->path_fd);
		return -ENOMEM;
	}
	s = node_shard_of(vfs, fresh->hash);
	pthread_mutex_lock(&s->lock);
	n = node_find_locked(s, fresh->hash, parts->mnt, parts->fh);
	if (!n) {
		LIST_INSERT_HEAD(node_bucket_of(s, fresh->hash), fresh, bucket_link);
		n = fresh;
	}
	pthread_mutex_unlock(&s->lock);
	if (n != fresh)
		node_free(fresh);
	*out = n;
	return 0;
}

void vfs_node_ref(struct vfs_node *n)
{
	struct shard *s = node_shard_of(n->vfs, n->hash);

	pthread_mutex_lock(&s->lock);
	n->refs++;
	pthread_mutex_unlock(&s->lock);
}

enum put { KEPT, FREE, FLUSH };

/* Drops a reference, but for FLUSH: then it is the flush's. */
static enum put node_put_locked(struct shard *s, struct vfs_node *n)
{
	if (n->refs == 1 && !n->hashed && vfs_uncommitted_must_flush(n))
		return FLUSH;
	if (--n->refs > 0)
		return KEPT;
	if (!n->hashed)
		return FREE;
	n->used_at = (int64_t)rn_now_coarse_seconds();
	TAILQ_INSERT_TAIL(idle_list(s, n), n, lru_link);
	return KEPT;
}

void vfs_node_put(struct vfs_node *n)
{
	struct shard *s;
	enum put what;

	if (!n)
		return;
	/* The file's space becomes free when the last client closes it, not when the cache drops the node.
	 */
	if (vfs_node_link(n) == VFS_UNLINKED_OPEN && !vfs_file_keeps_inode(n->vfs, n->dev, &n->fh))
		vfs_node_doom(n);
	s = node_shard_of(n->vfs, n->hash);
	do {
		pthread_mutex_lock(&s->lock);
		what = node_put_locked(s, n);
		pthread_mutex_unlock(&s->lock);
	} while (what == FLUSH && vfs_flush(n));
	if (what == FREE)
		node_free(n);
}

/* Under the shard's lock: true if the caller must free the node. */
static bool unhash_locked(struct shard *s, struct vfs_node *n)
{
	if (n->hashed) {
		LIST_REMOVE(n, bucket_link);
		n->hashed = false;
		if (n->refs == 0)
			TAILQ_REMOVE(idle_list(s, n), n, lru_link);
	}
	return n->refs == 0;
}

void vfs_node_doom(struct vfs_node *n)
{
	struct shard *s = node_shard_of(n->vfs, n->hash);

	pthread_mutex_lock(&s->lock);
	unhash_locked(s, n); /* the caller's reference keeps it */
	atomic_store_explicit(&n->link, VFS_GONE, memory_order_relaxed);
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_add_explicit(&n->vfs->stale, 1, memory_order_relaxed);
}

static void free_all(struct node_lru *dead)
{
	struct vfs_node *n;

	while ((n = TAILQ_FIRST(dead)) != NULL) {
		TAILQ_REMOVE(dead, n, lru_link);
		if (vfs_uncommitted_must_flush(n)) {
			n->refs = 1; /* out of the cache: nobody finds it */
			vfs_node_put(n);
		} else {
			node_free(n);
		}
	}
}

void vfs_cache_close_data(struct vfs_node *n, unsigned kinds)
{
	struct shard *s = node_shard_of(n->vfs, n->hash);
	int fd[VFS_FD_KINDS];
	bool unused;

	/* Whoever comes next finds the node under the lock, and opens them again. */
	pthread_mutex_lock(&s->lock);
	unused = n->refs == 1 && !vfs_uncommitted_any(n);
	for (unsigned i = 0; i < VFS_FD_KINDS; i++)
		fd[i] = unused && (kinds >> i & 1) ? atomic_exchange(&n->data_fd[i], -1) : -1;
	if (fd[VFS_FD_READ] >= 0)
		atomic_store(&n->advised_by, 0);
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < VFS_FD_KINDS; i++)
		vfs_fd_close(n->vfs, fd[i]);
}

void vfs_cache_close_written(struct vfs_node *n)
{
	vfs_cache_close_data(n, 1u << VFS_FD_WRITE | 1u << VFS_FD_WRITE_DIRECT);
}

/* The last link is gone, by a local process. The inode is in memory, so nothing is waited for. */
static bool was_removed(const struct vfs_node *n)
{
	struct statx sx;

	return n->type == S_IFREG && n->mnt->fs.local && vfs_node_link(n) == VFS_LINKED &&
	       statx(n->path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &sx) == 0 &&
	       sx.stx_nlink == 0;
}

static bool node_is_written(const struct vfs_node *n)
{
	return atomic_load(&n->data_fd[VFS_FD_WRITE]) >= 0 ||
	       atomic_load(&n->data_fd[VFS_FD_WRITE_DIRECT]) >= 0;
}

/* An unreferenced node with descriptors for writing, or of a removed file that was open. */
struct asked {
	uint64_t hash, dev;
	const struct vfs_mount *mnt; /* to compare */
	struct vfs_fh fh;
	int64_t used_at;
	bool removed;
};

/* Nodes that a sweep has found in a shard. */
struct found {
	int64_t now;
	struct node_lru removed; /* with a reference each */
	struct asked asked[SWEEP_ASKED];
	unsigned nasked;
};

static bool must_ask(const struct vfs_node *n, bool synced, int64_t now)
{
	return vfs_node_link(n) == VFS_UNLINKED_OPEN ||
	       (synced && node_is_written(n) && n->used_at <= now - WRITTEN_SECONDS);
}

/* Under the shard's lock. */
static void sweep_list(struct node_lru *list, bool synced, struct found *f)
{
	struct vfs_node *n, *next;
	unsigned looked = 0;

	for (n = TAILQ_FIRST(list); n && n->used_at < f->now && looked++ < SWEEP_NODES; n = next) {
		next = TAILQ_NEXT(n, lru_link);
		if (was_removed(n)) {
			TAILQ_REMOVE(list, n, lru_link);
			n->refs = 1;
			TAILQ_INSERT_TAIL(&f->removed, n, lru_link);
		} else if (f->nasked < SWEEP_ASKED && must_ask(n, synced, f->now)) {
			f->asked[f->nasked++] =
				(struct asked){ .hash = n->hash,
						.dev = n->dev,
						.mnt = n->mnt,
						.fh = n->fh,
						.used_at = n->used_at,
						.removed = vfs_node_link(n) == VFS_UNLINKED_OPEN };
		}
	}
}

/* With a reference, unless somebody has used it since it was found. */
static struct vfs_node *node_find_unused(struct shard *s, const struct asked *a)
{
	struct vfs_node *n;

	pthread_mutex_lock(&s->lock);
	n = look_for(s, a->hash, a->mnt, &a->fh);
	if (n && n->refs == 0 && n->used_at == a->used_at)
		n = node_find_locked(s, a->hash, a->mnt, &a->fh);
	else
		n = NULL;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void sweep_asked(struct vfs *vfs, const struct asked *a)
{
	struct vfs_node *n;

	if (a->removed ? vfs_file_keeps_inode(vfs, a->dev, &a->fh)
		       : vfs_file_is_open_to_write(vfs, a->dev, &a->fh))
		return;
	n = node_find_unused(node_shard_of(vfs, a->hash), a);
	if (n && !a->removed)
		vfs_cache_close_written(n);
	vfs_node_put(n);
}

void vfs_cache_sweep(struct vfs *vfs)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &vfs->cache->shard[i];
		struct found f = { .now = (int64_t)rn_now_coarse_seconds(), .nasked = 0 };
		struct vfs_node *n;

		TAILQ_INIT(&f.removed);
		pthread_mutex_lock(&s->lock);
		sweep_list(&s->lru, true, &f);
		sweep_list(&s->unsynced, false, &f);
		pthread_mutex_unlock(&s->lock);
		while ((n = TAILQ_FIRST(&f.removed)) != NULL) {
			TAILQ_REMOVE(&f.removed, n, lru_link);
			vfs_node_drop_removed(n);
		}
		for (unsigned k = 0; k < f.nasked; k++)
			sweep_asked(vfs, &f.asked[k]);
	}
}

static uint64_t count_idle(struct vfs *vfs)
{
	const struct vfs_node *n;
	uint64_t idle = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &vfs->cache->shard[i];

		pthread_mutex_lock(&s->lock);
		TAILQ_FOREACH (n, &s->lru, lru_link)
			idle++;
		TAILQ_FOREACH (n, &s->unsynced, lru_link)
			idle++;
		pthread_mutex_unlock(&s->lock);
	}
	return idle;
}

void vfs_cache_stats(struct vfs *vfs, struct vfs_stats *out)
{
	const struct vfs_cache *c = vfs->cache;
	uint64_t idle = count_idle(vfs);

	out->nodes = atomic_load(&c->nodes);
	out->nodes_in_use = out->nodes > idle ? out->nodes - idle : 0;
	out->hits = atomic_load(&c->hits);
	out->misses = atomic_load(&c->misses);
	out->evictions = atomic_load(&c->evictions);
}

/* Nodes of the shard that were last used before, as far as their exports may: to list, with a
 * reference each. */
static void take_unsynced(struct shard *s, int64_t before, struct node_lru *list)
{
	struct vfs_node *n, *next;

	pthread_mutex_lock(&s->lock);
	for (n = TAILQ_FIRST(&s->unsynced); n && n->used_at < before; n = next) {
		next = TAILQ_NEXT(n, lru_link);
		if (!vfs_uncommitted_may_flush(n))
			continue;
		TAILQ_REMOVE(&s->unsynced, n, lru_link);
		n->refs = 1;
		atomic_fetch_add(&n->exp->flushing, 1);
		TAILQ_INSERT_TAIL(list, n, lru_link);
	}
	pthread_mutex_unlock(&s->lock);
}

void vfs_cache_flush_idle(struct vfs *vfs, int64_t before)
{
	struct node_lru list = TAILQ_HEAD_INITIALIZER(list);
	struct vfs_node *n;

	if (atomic_load(&vfs->uncommitted) == 0)
		return;
	for (unsigned i = 0; i < SHARDS; i++)
		take_unsynced(&vfs->cache->shard[i], before, &list);
	while ((n = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, n, lru_link);
		atomic_fetch_sub(&n->exp->flushing, 1);
		if (vfs_flush(n))
			vfs_node_put(n);
	}
}

bool vfs_cache_evict(struct vfs *vfs)
{
	/* More than once around: what a node leaves to its file is not free. */
	for (unsigned i = 0; i < 2 * SHARDS; i++) {
		struct shard *s =
			&vfs->cache->shard[atomic_fetch_add(&vfs->cache->evict_next, 1) % SHARDS];
		struct vfs_node *n;

		pthread_mutex_lock(&s->lock);
		n = TAILQ_FIRST(&s->lru);
		if (n)
			unhash_locked(s, n);
		pthread_mutex_unlock(&s->lock);
		if (!n)
			continue;
		atomic_fetch_add_explicit(&vfs->cache->evictions, 1, memory_order_relaxed);
		if (node_free(n))
			return true;
	}
	/* All that is left cannot be closed before it is flushed: not waited for. */
	vfs_cache_flush_idle(vfs, INT64_MAX);
	return false;
}

/*
 * True if a directory is kept longer than other nodes: its mark (vfs/fs/dir_watch.h) goes with it,
 * and after that its next change cannot be told to be the only one. Then a client asks again for
 * each name that it knows there. Nodes below an export keep a mount busy, so they are not kept.
 */
static bool keeps_mark(const struct vfs_node *n, int64_t before)
{
	return atomic_load(&n->watched) && !n->mnt->path && n->used_at >= before - MARKED_SECONDS;
}

/* Under the shard's lock: those unused since before, to dead. */
static void node_take_idle(struct shard *s, int64_t before, struct node_lru *dead)
{
	struct vfs_node *n, *next;

	for (n = TAILQ_FIRST(&s->lru); n && n->used_at < before; n = next) {
		next = TAILQ_NEXT(n, lru_link);
		if (keeps_mark(n, before))
			continue;
		unhash_locked(s, n);
		TAILQ_INSERT_TAIL(dead, n, lru_link);
	}
}

void vfs_cache_close_idle(struct vfs *vfs, int64_t before)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &vfs->cache->shard[i];
		struct node_lru dead = TAILQ_HEAD_INITIALIZER(dead);
		struct vfs_node *n;

		pthread_mutex_lock(&s->lock);
		node_take_idle(s, before, &dead);
		while (vfs->stopping && (n = TAILQ_FIRST(&s->unsynced)) != NULL) {
			unhash_locked(s, n);
			TAILQ_INSERT_TAIL(&dead, n, lru_link);
		}
		pthread_mutex_unlock(&s->lock);
		free_all(&dead);
	}
}

struct drop {
	uint32_t export_id;
	const struct vfs_mount *mnt; /* NULL: all of the export */
};

static bool node_is_dropped(const struct vfs_node *n, const struct drop *d)
{
	return d->mnt ? n->mnt == d->mnt : n->exp->id == d->export_id;
}

static void drop_from_shard(struct shard *s, const struct drop *d)
{
	struct node_lru dead = TAILQ_HEAD_INITIALIZER(dead);
	struct vfs_node *n, *next;

	pthread_mutex_lock(&s->lock);
	for (unsigned b = 0; b < BUCKETS; b++) {
		for (n = LIST_FIRST(&s->bucket[b]); n; n = next) {
			next = LIST_NEXT(n, bucket_link);
			if (node_is_dropped(n, d) && unhash_locked(s, n))
				TAILQ_INSERT_TAIL(&dead, n, lru_link);
		}
	}
	pthread_mutex_unlock(&s->lock);
	free_all(&dead);
}

void vfs_cache_drop_export(struct vfs *vfs, uint32_t export_id)
{
	const struct drop d = { .export_id = export_id };

	for (unsigned i = 0; i < SHARDS; i++)
		drop_from_shard(&vfs->cache->shard[i], &d);
}

void vfs_cache_drop_mount(struct vfs *vfs, const struct vfs_mount *mnt)
{
	const struct drop d = { .mnt = mnt };

	for (unsigned i = 0; i < SHARDS; i++)
		drop_from_shard(&vfs->cache->shard[i], &d);
}
