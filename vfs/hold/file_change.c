/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/file_change.h"

#include <errno.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_table.h"
#include "vfs/worker.h"

unsigned vfs_file_slot(const struct vfs_fh *fh)
{
	uint32_t len;
	const uint8_t *part = vfs_handle_file_part(fh, &len);

	return (unsigned)(vfs_handle_part_hash(part, len) % VFS_CHANGE_SLOTS);
}

/* Bit of a slot: the one change under way there must be the only one. */
#define ALONE (1u << 31)

static int count_alone(struct vfs *vfs, const struct vfs_fh *fh, struct vfs_file_change *c)
{
	_Atomic uint32_t *slot = &vfs->files->changing[vfs_file_slot(fh)];
	uint32_t none = 0;

	*c = (struct vfs_file_change){ .by = ALONE + 1 };
	if (!atomic_compare_exchange_strong(slot, &none, c->by))
		return -EAGAIN;
	c->count = slot;
	return 0;
}

int vfs_file_change_count(struct vfs *vfs, const struct vfs_fh *fh, struct vfs_file_change *c)
{
	*c = (struct vfs_file_change){ .count = &vfs->files->changing[vfs_file_slot(fh)], .by = 1 };
	if (!(atomic_fetch_add(c->count, c->by) & ALONE))
		return 0;
	vfs_file_change_end(c);
	return -EAGAIN;
}

static int check(struct vfs_ctx *ctx, struct vfs_node *n, unsigned news)
{
	const struct vfs_file_use u = { .client = ctx->client, .use = VFS_USE_WRITE, .news = news };
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

static int begin(struct vfs_ctx *ctx, struct vfs_node *n, unsigned news, struct vfs_file_change *c)
{
	int rc;

	c->count = NULL;
	if (n->type != S_IFREG && n->type != S_IFDIR)
		return 0;
	rc = vfs_file_change_count(ctx->vfs, &n->fh, c);
	if (rc != 0)
		return vfs_worker_is_prompt(ctx->w) ? vfs_worker_decline(ctx->w) : rc;
	rc = check(ctx, n, news);
	if (rc != 0)
		vfs_file_change_end(c);
	return rc;
}

int vfs_file_change_begin(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c)
{
	return begin(ctx, n, 0, c);
}

int vfs_dir_attrs_begin(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c)
{
	return begin(ctx, n, VFS_NEWS_ATTRS, c);
}

int vfs_file_change_begin_alone(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file_change *c)
{
	int rc = count_alone(ctx->vfs, &n->fh, c);

	if (rc == 0)
		rc = check(ctx, n, 0);
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
