/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node is found and referenced under its shard's lock, and put back there. The thread that drops
 * the last reference of a node which is out of the cache, or that takes an unreferenced node out of
 * it, frees it, after the lock is released: closing may wait for the disk.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file.h"
#include "vfs/node/cache.h"
#include "vfs/node/dir_stream.h"

static uint64_t hash_of(const struct vfs *vfs, const struct vfs_fh *fh)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, fh->data, fh->len, vfs->hash_key);
	return h;
}

static struct vfs_shard *shard_of(struct vfs *vfs, uint64_t hash)
{
	return &vfs->shard[hash % VFS_SHARDS];
}

static struct vfs_node_list *bucket_of(struct vfs_shard *s, uint64_t hash)
{
	return &s->bucket[hash / VFS_SHARDS % VFS_BUCKETS];
}

/* Must it be flushed before it can be closed? Of a file that is gone nobody misses anything, and
 * after the end of this run every client sends again what it has not committed. Nobody else uses
 * the node. */
static bool must_flush(const struct vfs_node *n)
{
	return vfs_uncommitted_any(n) && !n->doomed && !n->vfs->stopping;
}

/* Under the shard's lock: the list of an unreferenced node of the cache. */
static struct vfs_node_lru *idle_list(struct vfs_shard *s, const struct vfs_node *n)
{
	return vfs_uncommitted_any(n) ? &s->unsynced : &s->lru;
}

/* Under the shard's lock. The hash is under a secret key and of the MAC as well, and compared first:
 * how long this takes tells nothing of another handle's MAC. */
static struct vfs_node *find_locked(struct vfs_shard *s, uint64_t hash, const struct vfs_mount *mnt,
				    const struct vfs_fh *fh)
{
	struct vfs_node *n;

	LIST_FOREACH (n, bucket_of(s, hash), bucket_link) {
		if (n->hash != hash || n->mnt != mnt || n->fh.len != fh->len ||
		    memcmp(n->fh.data, fh->data, fh->len) != 0)
			continue;
		if (n->refs++ == 0)
			TAILQ_REMOVE(idle_list(s, n), n, lru_link);
		return n;
	}
	return NULL;
}

struct vfs_node *vfs_cache_find(struct vfs *vfs, struct vfs_mount *mnt, const struct vfs_fh *fh)
{
	uint64_t hash = hash_of(vfs, fh);
	struct vfs_shard *s = shard_of(vfs, hash);
	struct vfs_node *n;

	pthread_mutex_lock(&s->lock);
	n = find_locked(s, hash, mnt, fh);
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_add_explicit(n ? &vfs->hits : &vfs->misses, 1, memory_order_relaxed);
	return n;
}

/* The node is in no list and nobody has a reference. False: its descriptor lives on. */
static bool node_free(struct vfs_node *n)
{
	const bool inherited = vfs_file_inherit(n);
	struct vfs *vfs = n->vfs;

	vfs_dir_streams_close(n);
	for (unsigned i = 0; i < VFS_FD_KINDS; i++)
		vfs_fd_close(vfs, n->data_fd[i]);
	if (!inherited)
		vfs_fd_close(vfs, n->path_fd);
	pthread_mutex_destroy(&n->open_lock);
	vfs_uncommitted_fini(n);
	vfs_mount_put(n->mnt);
	vfs_export_put(n->exp);
	free(n);
	atomic_fetch_sub(&vfs->nodes, 1);
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
	atomic_init(&n->unlinked, parts->unlinked);
	n->path_fd = parts->path_fd;
	vfs_uncommitted_init(&n->uncommitted);
	n->hash = hash_of(vfs, &n->fh);
	n->refs = 1;
	n->hashed = true;
	for (unsigned i = 0; i < VFS_FD_KINDS; i++)
		atomic_init(&n->data_fd[i], -1);
	pthread_mutex_init(&n->open_lock, NULL);
	vfs_export_ref(n->exp);
	vfs_mount_ref(n->mnt);
	atomic_fetch_add(&vfs->nodes, 1);
	return n;
}

int vfs_cache_add(struct vfs *vfs, const struct vfs_node_parts *parts, struct vfs_node **out)
{
	struct vfs_node *fresh = node_new(vfs, parts);
	struct vfs_shard *s;
	struct vfs_node *n;

	if (!fresh) {
		vfs_fd_close(vfs, parts->path_fd);
		return -ENOMEM;
	}
	s = shard_of(vfs, fresh->hash);
	pthread_mutex_lock(&s->lock);
	n = find_locked(s, fresh->hash, parts->mnt, parts->fh);
	if (!n) {
		LIST_INSERT_HEAD(bucket_of(s, fresh->hash), fresh, bucket_link);
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
	struct vfs_shard *s = shard_of(n->vfs, n->hash);

	pthread_mutex_lock(&s->lock);
	n->refs++;
	pthread_mutex_unlock(&s->lock);
}

enum put { KEPT, FREE, FLUSH };

/* Drops a reference, but for FLUSH: then it is the flush's. */
static enum put put_locked(struct vfs_shard *s, struct vfs_node *n)
{
	if (n->refs == 1 && !n->hashed && must_flush(n))
		return FLUSH;
	if (--n->refs > 0)
		return KEPT;
	if (!n->hashed)
		return FREE;
	n->used_at = vfs_now();
	TAILQ_INSERT_TAIL(idle_list(s, n), n, lru_link);
	return KEPT;
}

void vfs_node_put(struct vfs_node *n)
{
	struct vfs_shard *s;
	enum put what;

	if (!n)
		return;
	/* Its space is to be free when the last one closes it, not when the cache is done with it.
	 */
	if (atomic_load_explicit(&n->unlinked, memory_order_relaxed) &&
	    !vfs_file_is_open(n->vfs, n->dev, &n->fh))
		vfs_node_doom(n);
	s = shard_of(n->vfs, n->hash);
	do {
		pthread_mutex_lock(&s->lock);
		what = put_locked(s, n);
		pthread_mutex_unlock(&s->lock);
	} while (what == FLUSH && vfs_flush(n));
	if (what == FREE)
		node_free(n);
}

/* Under the shard's lock: true if the caller must free the node. */
static bool unhash_locked(struct vfs_shard *s, struct vfs_node *n)
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
	struct vfs_shard *s = shard_of(n->vfs, n->hash);

	pthread_mutex_lock(&s->lock);
	unhash_locked(s, n); /* the caller's reference keeps it */
	n->doomed = true;
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_add_explicit(&n->vfs->stale, 1, memory_order_relaxed);
}

const struct vfs_fh *vfs_node_fh(const struct vfs_node *n)
{
	return &n->fh;
}

static void free_all(struct vfs_node_lru *dead)
{
	struct vfs_node *n;

	while ((n = TAILQ_FIRST(dead)) != NULL) {
		TAILQ_REMOVE(dead, n, lru_link);
		if (must_flush(n)) {
			n->refs = 1; /* out of the cache: nobody finds it */
			vfs_node_put(n);
		} else {
			node_free(n);
		}
	}
}

uint64_t vfs_cache_idle(struct vfs *vfs)
{
	const struct vfs_node *n;
	uint64_t idle = 0;

	for (unsigned i = 0; i < VFS_SHARDS; i++) {
		struct vfs_shard *s = &vfs->shard[i];

		pthread_mutex_lock(&s->lock);
		TAILQ_FOREACH (n, &s->lru, lru_link)
			idle++;
		TAILQ_FOREACH (n, &s->unsynced, lru_link)
			idle++;
		pthread_mutex_unlock(&s->lock);
	}
	return idle;
}

/* Nodes of the shard that were last used before, as far as their exports may: to list, with a
 * reference each. */
static void take_unsynced(struct vfs_shard *s, int64_t before, struct vfs_node_lru *list)
{
	struct vfs_node *n, *next;

	pthread_mutex_lock(&s->lock);
	for (n = TAILQ_FIRST(&s->unsynced); n && n->used_at < before; n = next) {
		next = TAILQ_NEXT(n, lru_link);
		if (!vfs_flush_may(n))
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
	struct vfs_node_lru list = TAILQ_HEAD_INITIALIZER(list);
	struct vfs_node *n;

	if (atomic_load(&vfs->uncommitted) == 0)
		return;
	for (unsigned i = 0; i < VFS_SHARDS; i++)
		take_unsynced(&vfs->shard[i], before, &list);
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
	for (unsigned i = 0; i < 2 * VFS_SHARDS; i++) {
		struct vfs_shard *s =
			&vfs->shard[atomic_fetch_add(&vfs->evict_next, 1) % VFS_SHARDS];
		struct vfs_node *n;

		pthread_mutex_lock(&s->lock);
		n = TAILQ_FIRST(&s->lru);
		if (n)
			unhash_locked(s, n);
		pthread_mutex_unlock(&s->lock);
		if (!n)
			continue;
		atomic_fetch_add_explicit(&vfs->evictions, 1, memory_order_relaxed);
		if (node_free(n))
			return true;
	}
	/* All that is left cannot be closed before it is flushed: not waited for. */
	vfs_cache_flush_idle(vfs, INT64_MAX);
	return false;
}

void vfs_cache_close_idle(struct vfs *vfs, int64_t before)
{
	for (unsigned i = 0; i < VFS_SHARDS; i++) {
		struct vfs_shard *s = &vfs->shard[i];
		struct vfs_node_lru dead = TAILQ_HEAD_INITIALIZER(dead);
		struct vfs_node *n;

		pthread_mutex_lock(&s->lock);
		while ((n = TAILQ_FIRST(&s->lru)) != NULL && n->used_at < before) {
			unhash_locked(s, n);
			TAILQ_INSERT_TAIL(&dead, n, lru_link);
		}
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

static bool is_dropped(const struct vfs_node *n, const struct drop *d)
{
	return d->mnt ? n->mnt == d->mnt : n->exp->id == d->export_id;
}

static void drop_from_shard(struct vfs_shard *s, const struct drop *d)
{
	struct vfs_node_lru dead = TAILQ_HEAD_INITIALIZER(dead);
	struct vfs_node *n, *next;

	pthread_mutex_lock(&s->lock);
	for (unsigned b = 0; b < VFS_BUCKETS; b++) {
		for (n = LIST_FIRST(&s->bucket[b]); n; n = next) {
			next = LIST_NEXT(n, bucket_link);
			if (is_dropped(n, d) && unhash_locked(s, n))
				TAILQ_INSERT_TAIL(&dead, n, lru_link);
		}
	}
	pthread_mutex_unlock(&s->lock);
	free_all(&dead);
}

void vfs_cache_drop_export(struct vfs *vfs, uint32_t export_id)
{
	const struct drop d = { .export_id = export_id };

	for (unsigned i = 0; i < VFS_SHARDS; i++)
		drop_from_shard(&vfs->shard[i], &d);
}

void vfs_cache_drop_mount(struct vfs *vfs, const struct vfs_mount *mnt)
{
	const struct drop d = { .mnt = mnt };

	for (unsigned i = 0; i < VFS_SHARDS; i++)
		drop_from_shard(&vfs->shard[i], &d);
}
