/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/handle_cache.h"
#include "vfs/hold/file.h"
#include "vfs/hold/lease.h"
#include "vfs/hold/open_guard.h"
#include "vfs/hold/unlinked.h"
#include "vfs/meta/dir_change.h"
#include "vfs/mount_table.h"
#include "vfs/names/entry_change.h"
#include "vfs/names/node_open.h"
#include "vfs/node/cache.h"
#include "vfs/node/uncommitted.h"

#define IDLE_SECONDS 10u /* vfs_config.idle_seconds by default */

static void set_defaults(struct vfs_config *cfg)
{
	if (cfg->idle_seconds == 0)
		cfg->idle_seconds = IDLE_SECONDS;
	if (cfg->max_locks == 0)
		cfg->max_locks = VFS_MAX_LOCKS;
	if (cfg->lock_wait_seconds == 0)
		cfg->lock_wait_seconds = VFS_LOCK_WAIT_SECONDS;
	if (cfg->deleg_quiet_seconds == 0)
		cfg->deleg_quiet_seconds = VFS_DELEG_QUIET_SECONDS;
	if (cfg->max_leases == 0)
		cfg->max_leases = cfg->max_fds / VFS_PART_PRECAUTION;
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

static bool vfs_make_parts(struct vfs *vfs)
{
	vfs->cache = vfs_cache_new();
	vfs->changes = vfs_changes_new(vfs->cfg.shared);
	vfs->dir_changes = vfs_dir_changes_new();
	vfs->entry_orders = vfs_entry_orders_new();
	vfs->files = vfs_files_new();
	vfs->flusher = vfs_flusher_new();
	vfs->leases = vfs_leases_new();
	vfs->guards = vfs_guards_new();
	return vfs->cache && vfs->changes && vfs->dir_changes && vfs->entry_orders && vfs->files &&
	       vfs->flusher && vfs->leases && vfs->guards;
}

static void free_parts(struct vfs *vfs)
{
	vfs_guards_free(vfs->guards);
	vfs_leases_free(vfs->leases);
	vfs_flusher_free(vfs->flusher);
	vfs_handle_cache_free(vfs->handles);
	vfs_files_free(vfs->files);
	vfs_entry_orders_free(vfs->entry_orders);
	vfs_dir_changes_free(vfs->dir_changes);
	vfs_changes_free(vfs->changes);
	vfs_cache_free(vfs->cache);
}

size_t vfs_memory(size_t whole)
{
	return vfs_handle_cache_memory(whole);
}

int vfs_new(const struct vfs_config *cfg, struct vfs **out)
{
	struct vfs *vfs;

	if (sodium_init() < 0)
		return -EIO;
	vfs = calloc(1, sizeof(*vfs));
	if (!vfs)
		return -ENOMEM;
	if (!vfs_make_parts(vfs)) {
		free_parts(vfs);
		free(vfs);
		return -ENOMEM;
	}
	vfs->cfg = *cfg;
	vfs->handles = vfs_handle_cache_new(cfg->budget); /* none: handles are read each time */
	vfs->ahead = vfs_ahead_new(cfg->helpers, cfg->budget);
	vfs->evict = vfs_cache_evict;
	set_defaults(&vfs->cfg);
	derive_create_key(vfs);
	/* Handles without a MAC are the peer's choice: a key of our own keeps it from filling one
	 * bucket. */
	randombytes_buf(vfs->hash_key, sizeof(vfs->hash_key));
	pthread_mutex_init(&vfs->exports_lock, NULL);
	pthread_mutex_init(&vfs->table_lock, NULL);
	vfs->table_watch = vfs_mount_table_watch();
	atomic_init(&vfs->table_generation, 1);
	pthread_mutex_init(&vfs->verifiers_lock, NULL);
	vfs_dir_watches_init(&vfs->dir_watches);
	*out = vfs;
	return 0;
}

void vfs_set_fds(struct vfs *vfs, unsigned max_fds, unsigned most, unsigned leases)
{
	vfs->cfg.max_fds = max_fds;
	vfs->cfg.max_fds_most = most;
	vfs->cfg.max_leases = leases;
}

void vfs_free(struct vfs *vfs)
{
	if (!vfs)
		return;
	vfs->stopping = true;
	vfs_ahead_free(vfs->ahead);
	vfs_cache_close_idle(vfs, INT64_MAX);
	pthread_mutex_destroy(&vfs->exports_lock);
	pthread_mutex_destroy(&vfs->table_lock);
	if (vfs->table_watch >= 0)
		close(vfs->table_watch);
	pthread_mutex_destroy(&vfs->verifiers_lock);
	vfs_dir_watches_fini(&vfs->dir_watches);
	free_parts(vfs);
	sodium_memzero(vfs->create_key, sizeof(vfs->create_key));
	sodium_memzero(&vfs->cfg, sizeof(vfs->cfg));
	free(vfs);
}

void vfs_reap(struct vfs *vfs)
{
	int64_t before = (int64_t)rn_now_coarse_seconds() - vfs->cfg.idle_seconds;
	struct vfs_export *exp;

	vfs_cache_close_idle(vfs, before);
	vfs_mirror_mend(vfs);
	vfs_cache_sweep(vfs);
	vfs_cache_flush_idle(vfs, before);
	pthread_mutex_lock(&vfs->exports_lock);
	LIST_FOREACH (exp, &vfs->exports, link) {
		if (exp->crossmnt)
			vfs_mounts_close_idle(exp, before);
	}
	pthread_mutex_unlock(&vfs->exports_lock);
	vfs_dir_watches_read(&vfs->dir_watches);
}

void vfs_forget_export(struct vfs *vfs, uint32_t export_id)
{
	vfs_cache_drop_export(vfs, export_id);
}

void vfs_mounts_changed(struct vfs *vfs, const struct vfs_mount_table *t)
{
	struct vfs_mount_list gone = TAILQ_HEAD_INITIALIZER(gone);
	struct vfs_mount *mnt;

	vfs_mounts_generation(vfs);
	vfs_mounts_take_gone(vfs, t, &gone);
	/* Without the locks: a node may have the last reference of its export. */
	while ((mnt = TAILQ_FIRST(&gone)) != NULL) {
		TAILQ_REMOVE(&gone, mnt, link);
		vfs_cache_drop_mount(vfs, mnt);
		vfs_mount_put(mnt);
	}
}

void vfs_stats(struct vfs *vfs, struct vfs_stats *out)
{
	*out = (struct vfs_stats){
		.fds = (uint64_t)atomic_load(&vfs->fds) + vfs_lease_usage(vfs).used,
		.stale = atomic_load(&vfs->stale),
		.bad_handles = atomic_load(&vfs->bad_handles),
	};
	vfs_cache_stats(vfs, out);
	if (vfs->handles)
		vfs_handle_cache_stats(vfs->handles, &out->handles_known, &out->handles_read);
}
