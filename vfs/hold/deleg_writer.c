/* SPDX-License-Identifier: BSD-2-Clause */
/* The holder of a write delegation, for others who ask for the file's attributes. */
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file_table.h"

/* Under the file's lock. */
static struct vfs_deleg *deleg_find_writer(const struct vfs_deleg_list *list, const void *client)
{
	struct vfs_deleg *d;

	LIST_FOREACH (d, list, link) {
		if (d->type == VFS_DELEG_WRITE && d->client != client)
			break;
	}
	return d;
}

void vfs_deleg_writer(struct vfs_ctx *ctx, struct vfs_node *n,
		      void (*found)(void *arg, struct vfs_deleg *d), void *arg)
{
	struct vfs_deleg *d = NULL;
	struct vfs_file *f;

	if (n->type != S_IFREG || atomic_load(&ctx->vfs->files->delegs_writing) == 0)
		return;
	f = vfs_file_find(n);
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	/* While there is one to write there is no other, so the lists are short. */
	if (f->delegs.writing) {
		d = deleg_find_writer(&f->delegs.given, ctx->client);
		d = d ? d : deleg_find_writer(&f->delegs.recalled, ctx->client);
	}
	if (d)
		found(arg, d);
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
}
