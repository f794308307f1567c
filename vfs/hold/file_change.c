/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/file_change.h"

#include <errno.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/vfs_worker.h"

unsigned vfs_file_slot(const struct vfs_fh *fh)
{
	uint32_t len;
	const uint8_t *part = vfs_handle_file_part(fh, &len);

	return (unsigned)(vfs_handle_part_hash(part, len) % VFS_CHANGE_SLOTS);
}

#define SECOND INT64_C(1000000000)
/* Longer than the tick of the kernel's clock of ctimes. */
#define FRESH_NS (20 * 1000 * 1000)

static bool file_change_is_fresh(int64_t ctime, int64_t now)
{
	return ctime > now - FRESH_NS && ctime < now + FRESH_NS;
}

/* The first change of a slot begins. A fine ctime that was told before, within this tick of the clock, is no ctime of it: the
 * kernel gives another one after a look. */
static void begin_times(struct vfs *vfs, unsigned slot)
{
	struct vfs_change_times *t = &vfs->files->change_times[slot];
	const int64_t now = (int64_t)rn_wall_coarse_ns(), told = atomic_load(&t->told);

	atomic_store(&t->since, told >= now && file_change_is_fresh(told, now) ? told + 1 : now);
}

/* A file's ctime as one number: two that are equal are the same file's. */
static uint64_t ctime_of_file(const struct vfs_fh *fh, int64_t ctime)
{
	uint32_t len;
	const uint8_t *part = vfs_handle_file_part(fh, &len);

	return vfs_handle_part_hash(part, len) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)ctime;
}

/* A fine ctime that was told of a file is that of no change that begins later. While one begins, since may be that of the slot's
 * last changes still, or older than a look that has just ended: so what was told is asked first. */
bool vfs_file_change_unfinished(const struct vfs_mount *mnt, const struct vfs_fh *fh, int64_t ctime)
{
	const unsigned slot = vfs_file_slot(fh);
	struct vfs_files *files = mnt->exp->vfs->files;
	struct vfs_change_times *t = &files->change_times[slot];
	const uint64_t final = mnt->changes ? 0 : ctime_of_file(fh, ctime);

	if (atomic_load(&files->changing[slot]) != 0) {
		const int64_t since = atomic_load(&t->since);

		return ctime >= (ctime % SECOND ? since : since / SECOND * SECOND) &&
		       (mnt->changes || atomic_load(&t->final) != final);
	}
	if (mnt->changes)
		return false;
	atomic_store(&t->final, final);
	if (ctime > atomic_load(&t->told))
		atomic_store(&t->told, ctime);
	return false;
}

/* Bit of a slot: the one change under way there must be the only one. */
#define ALONE (1u << 31)

static int count_alone(struct vfs *vfs, const struct vfs_fh *fh, struct vfs_file_change *c)
{
	const unsigned slot = vfs_file_slot(fh);
	_Atomic uint32_t *count = &vfs->files->changing[slot];
	uint32_t none = 0;

	*c = (struct vfs_file_change){ .by = ALONE + 1 };
	if (!atomic_compare_exchange_strong(count, &none, c->by))
		return -RN_ESOON;
	begin_times(vfs, slot);
	c->count = count;
	return 0;
}

int vfs_file_change_count(struct vfs *vfs, const struct vfs_fh *fh, struct vfs_file_change *c)
{
	const unsigned slot = vfs_file_slot(fh);
	uint32_t others;

	*c = (struct vfs_file_change){ .count = &vfs->files->changing[slot], .by = 1 };
	others = atomic_fetch_add(c->count, c->by);
	if (others == 0)
		begin_times(vfs, slot);
	if (!(others & ALONE))
		return 0;
	vfs_file_change_end(c);
	return -RN_ESOON;
}

static int file_change_check_delegs(struct vfs_ctx *ctx, struct vfs_node *n, unsigned notify_kinds)
{
	const struct vfs_file_use u = { .client = ctx->client,
					.use = VFS_USE_WRITE,
					.notify_kinds = notify_kinds };
	struct vfs_file *f;
	int rc;

	if (!vfs_deleg_any(ctx->vfs))
		return 0;
	f = vfs_file_find(n);
	rc = n->type == S_IFREG ? vfs_deleg_check_unknown(ctx->vfs, f) : 0;
	if (rc == 0)
		rc = vfs_deleg_ask(f, &u);
	vfs_file_put(f);
	return rc;
}

static int file_change_begin_notified(struct vfs_ctx *ctx, struct vfs_node *n,
				      unsigned notify_kinds, struct vfs_file_change *c)
{
	int rc;

	c->count = NULL;
	if (n->type != S_IFREG && n->type != S_IFDIR)
		return 0;
	rc = vfs_file_change_count(ctx->vfs, &n->fh, c);
	if (rc != 0)
		return rc;
	rc = file_change_check_delegs(ctx, n, notify_kinds);
	if (rc != 0)
		vfs_file_change_end(c);
	return rc;
}

int vfs_file_change_begin(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c)
{
	return file_change_begin_notified(ctx, n, 0, c);
}

int vfs_dir_attrs_begin(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c)
{
	return file_change_begin_notified(ctx, n, VFS_NOTIFY_ATTRS, c);
}

int vfs_file_change_begin_alone(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c)
{
	int rc = count_alone(ctx->vfs, &n->fh, c);

	if (rc == 0)
		rc = file_change_check_delegs(ctx, n, 0);
	if (rc != 0)
		vfs_file_change_end(c);
	return rc;
}

void vfs_file_change_end(struct vfs_file_change *c)
{
	if (c->count)
		atomic_fetch_sub(c->count, c->by);
	c->count = NULL;
}
