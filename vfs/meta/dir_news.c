/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/meta/dir_news.h"

#include <sys/stat.h>

#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"

/* Of two changes at the same time, the second to come here looks at both. */
static void dir_news_tell_attrs(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f)
{
	struct vfs_dir_news news = { .what = VFS_NEWS_ATTRS, .client = ctx->client };
	struct vfs_attr attr;

	vfs_news_begin(f, NULL);
	if (vfs_getattr(ctx, n, &attr) == 0)
		news.dir = &attr;
	vfs_news_tell(f, &news);
	vfs_news_end(f, NULL);
}

void vfs_dir_tell_attrs(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct vfs_file *f = NULL;

	if (n->type == S_IFDIR && vfs_deleg_any(ctx->vfs))
		f = vfs_file_find(n);
	if (vfs_news_asked(f) & VFS_NEWS_ATTRS)
		dir_news_tell_attrs(ctx, n, f);
	vfs_file_put(f);
}
