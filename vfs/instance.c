/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/hold/file.h"
#include "vfs/mount_table.h"
#include "vfs/node/cache.h"

int64_t vfs_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec;
}

static void set_defaults(struct vfs_config *cfg)
{
	if (cfg->idle_seconds == 0)
		cfg->idle_seconds = VFS_IDLE_SECONDS;
	if (cfg->max_locks == 0)
		cfg->max_locks = VFS_MAX_LOCKS;
	if (cfg->lock_wait_seconds == 0)
		cfg->lock_wait_seconds = VFS_LOCK_WAIT_SECONDS;
}

int64_t vfs_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Apart from the key of handles: no mark is ever the MAC of anything. */
static void derive_create_key(struct vfs *vfs)
{
	uint8_t label[] = "ringnfs exclusive create 0";

	for (unsigned i = 0; i < 2; i++) {
		label[sizeof(label) - 2] = (uint8_t)('0' + i);
		crypto_shorthash(vfs->create_key + i * crypto_shorthash_BYTES, label, sizeof(label),
				 vfs->cfg.secret);
	}
}

int vfs_new(const struct vfs_config *cfg, struct vfs **out)
{
	struct vfs *vfs;

	if (sodium_init() < 0)
		return -EIO;
	vfs = calloc(1, sizeof(*vfs));
	if (!vfs)
		return -ENOMEM;
	vfs->changes = vfs_changes_new();
	vfs->files = vfs->changes ? vfs_files_new() : NULL;
	if (!vfs->files) {
		vfs_changes_free(vfs->changes);
		free(vfs);
		return -ENOMEM;
	}
	vfs->cfg = *cfg;
	set_defaults(&vfs->cfg);
	derive_create_key(vfs);
	/* Handles without a MAC are the peer's choice: a key of our own keeps it from filling one
	 * bucket. */
	randombytes_buf(vfs->hash_key, sizeof(vfs->hash_key));
	for (unsigned i = 0; i < VFS_SHARDS; i++) {
		pthread_mutex_init(&vfs->shard[i].lock, NULL);
		TAILQ_INIT(&vfs->shard[i].lru);
		TAILQ_INIT(&vfs->shard[i].unsynced);
	}
	pthread_mutex_init(&vfs->exports_lock, NULL);
	pthread_mutex_init(&vfs->table_lock, NULL);
	vfs->table_watch = vfs_mount_table_watch();
	pthread_mutex_init(&vfs->verifiers_lock, NULL);
	vfs_flusher_init(&vfs->flusher);
	*out = vfs;
	return 0;
}

void vfs_set_fds(struct vfs *vfs, unsigned max_fds, unsigned most)
{
	vfs->cfg.max_fds = max_fds;
	vfs->cfg.max_fds_most = most;
}

void vfs_free(struct vfs *vfs)
{
	if (!vfs)
		return;
	vfs->stopping = true;
	vfs_cache_close_idle(vfs, INT64_MAX);
	for (unsigned i = 0; i < VFS_SHARDS; i++)
		pthread_mutex_destroy(&vfs->shard[i].lock);
	pthread_mutex_destroy(&vfs->exports_lock);
	pthread_mutex_destroy(&vfs->table_lock);
	if (vfs->table_watch >= 0)
		close(vfs->table_watch);
	pthread_mutex_destroy(&vfs->verifiers_lock);
	vfs_flusher_fini(&vfs->flusher);
	vfs_files_free(vfs->files);
	vfs_changes_free(vfs->changes);
	sodium_memzero(vfs->create_key, sizeof(vfs->create_key));
	sodium_memzero(&vfs->cfg, sizeof(vfs->cfg));
	free(vfs);
}

void vfs_reap(struct vfs *vfs)
{
	int64_t before = vfs_now() - vfs->cfg.idle_seconds;
	struct vfs_export *exp;

	vfs_cache_close_idle(vfs, before);
	vfs_cache_flush_idle(vfs, before);
	pthread_mutex_lock(&vfs->exports_lock);
	LIST_FOREACH (exp, &vfs->exports, link) {
		if (exp->crossmnt)
			vfs_mounts_close_idle(exp, before);
	}
	pthread_mutex_unlock(&vfs->exports_lock);
}

void vfs_forget_export(struct vfs *vfs, uint32_t export_id)
{
	vfs_cache_drop_export(vfs, export_id);
}

void vfs_stats(struct vfs *vfs, struct vfs_stats *out)
{
	uint64_t idle = vfs_cache_idle(vfs);
	uint64_t nodes = atomic_load(&vfs->nodes);

	*out = (struct vfs_stats){
		.nodes = nodes,
		.nodes_in_use = nodes > idle ? nodes - idle : 0,
		.fds = (uint64_t)atomic_load(&vfs->fds),
		.hits = atomic_load(&vfs->hits),
		.misses = atomic_load(&vfs->misses),
		.evictions = atomic_load(&vfs->evictions),
		.stale = atomic_load(&vfs->stale),
		.bad_handles = atomic_load(&vfs->bad_handles),
	};
}
