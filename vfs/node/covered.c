/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/node/covered.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/mount_table.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

static int compare_covered(const void *a, const void *b)
{
	const struct vfs_covered *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino > y->ino ? 1 : -1;
	return (x->dev > y->dev) - (x->dev < y->dev);
}

/* Under covered_lock. A mount on top of another one covers nothing of the export's. False: no memory. */
static bool list_covered(struct vfs_export *exp)
{
	struct vfs_mount_table t;
	bool whole = true;

	if (vfs_mount_table_load(&t) != 0)
		return false;
	exp->ncovered = 0;
	for (size_t i = 0; i < t.n && whole; i++) {
		const struct vfs_mount_entry *e = &t.entry[i];
		struct vfs_covered *grown;

		if (e->parent != exp->place_mnt_id || !vfs_path_below(e->path, exp->real_path))
			continue;
		grown = reallocarray(exp->covered, exp->ncovered + 1, sizeof(*grown));
		whole = grown;
		if (!grown)
			break;
		exp->covered = grown;
		exp->covered[exp->ncovered++] = vfs_covered_by(e->path);
	}
	vfs_mount_table_free(&t);
	if (exp->ncovered > 0)
		qsort(exp->covered, exp->ncovered, sizeof(*exp->covered), compare_covered);
	return whole;
}

static bool is_listed(const struct vfs_export *exp)
{
	return atomic_load_explicit(&exp->covered_at, memory_order_acquire) ==
	       atomic_load_explicit(&exp->vfs->table_generation, memory_order_relaxed);
}

static void covered_lock_export(struct vfs_ctx *ctx, struct vfs_export *exp)
{
	if (vfs_worker_is_prompt(vfs_worker_of(ctx)) && is_listed(exp) &&
	    pthread_mutex_trylock(&exp->covered_lock) == 0)
		return;
	rn_fiber_move(ctx->fiber);
	pthread_mutex_lock(&exp->covered_lock);
}

static bool search(struct vfs_ctx *ctx, struct vfs_export *exp, const struct vfs_node *n)
{
	const struct vfs_covered key = { n->ino, n->dev };
	bool found;

	covered_lock_export(ctx, exp);
	if (!is_listed(exp) && vfs_act_as_root(ctx) == 0) {
		const uint64_t now = atomic_load(&exp->vfs->table_generation);

		if (list_covered(exp)) {
			atomic_store(&exp->any_covered, exp->ncovered > 0);
			atomic_store(&exp->covered_at, now);
		}
	}
	found = exp->ncovered > 0 &&
		bsearch(&key, exp->covered, exp->ncovered, sizeof(*exp->covered), compare_covered);
	pthread_mutex_unlock(&exp->covered_lock);
	return found;
}

bool vfs_node_is_covered(struct vfs_ctx *ctx, const struct vfs_node *n)
{
	struct vfs_export *exp = n->exp;

	if (n->mnt != exp->root_mnt ||
	    (is_listed(exp) && !atomic_load_explicit(&exp->any_covered, memory_order_relaxed)))
		return false;
	return search(ctx, exp, n);
}

int vfs_check_writable(struct vfs_ctx *ctx, const struct vfs_node *n)
{
	if (ctx->access.flags & VFS_RO)
		return -EROFS;
	/* The thread that follows mounts may not have seen the last one yet. */
	if (n->type == S_IFDIR)
		vfs_mounts_generation(ctx->vfs);
	return vfs_node_is_covered(ctx, n) ? -EACCES : 0;
}
