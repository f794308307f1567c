/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/names/entry_change.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file_change.h"
#include "vfs/hold/file_table.h"
#include "vfs/meta/permission.h"
#include "vfs/node/node.h"
#include "vfs/worker/acting.h"

static bool conflicts(const struct vfs_ctx *ctx, struct vfs_file *f)
{
	const struct vfs_file_use u = { .client = ctx->client, .use = VFS_USE_WRITE };
	bool found;

	pthread_mutex_lock(&f->lock);
	found = vfs_deleg_conflicts(f, &u);
	pthread_mutex_unlock(&f->lock);
	return found;
}

/* Would the change fail, as far as can be seen beforehand? */
static int look(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		enum vfs_entry entry)
{
	int rc = vfs_access_check(ctx, dir, W_OK | X_OK);
	struct stat st;
	bool there;

	if (rc == 0)
		rc = vfs_act_as_caller(ctx);
	if (rc != 0 || entry == VFS_ENTRY_ANY)
		return rc;
	there = fstatat(dir->path_fd, name->s, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0;
	if (entry == VFS_ENTRY_NEW)
		return there ? -EEXIST : 0;
	return there ? 0 : -errno;
}

static int check(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		 enum vfs_entry entry)
{
	struct vfs_file *f = vfs_deleg_any(ctx->vfs) ? vfs_file_find(dir) : NULL;
	int rc = 0;

	if (f && conflicts(ctx, f)) {
		rc = look(ctx, dir, name, entry);
		if (rc == 0)
			rc = vfs_deleg_check_file(ctx, f, VFS_USE_WRITE);
	}
	vfs_file_put(f);
	return rc;
}

int vfs_entry_change_begin(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
			   enum vfs_entry entry, struct vfs_file_change *out)
{
	int rc;

	vfs_file_change_count(ctx->vfs, &dir->fh, out);
	rc = check(ctx, dir, name, entry);
	if (rc != 0)
		vfs_file_change_end(out);
	return rc;
}
