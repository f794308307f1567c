/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/file_change.h"

#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_table.h"

unsigned vfs_file_slot(const struct vfs_fh *fh)
{
	uint32_t len;
	const uint8_t *part = vfs_handle_file_part(fh, &len);

	return (unsigned)(vfs_handle_part_hash(part, len) % VFS_CHANGE_SLOTS);
}

void vfs_file_change_count(struct vfs *vfs, const struct vfs_fh *fh, struct vfs_file_change *c)
{
	c->count = &vfs->files->changing[vfs_file_slot(fh)];
	atomic_fetch_add(c->count, 1);
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
	vfs_file_change_count(ctx->vfs, &n->fh, c);
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

void vfs_file_change_end(struct vfs_file_change *c)
{
	if (c->count)
		atomic_fetch_sub(c->count, 1);
	c->count = NULL;
}
