/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/hold/file.h"
#include "vfs/names/node_open.h"
#include "vfs/node/cache.h"
#include "vfs/worker/acting.h"

uint32_t vfs_node_type(const struct vfs_node *n)
{
	return n->type;
}

bool vfs_node_is_root(const struct vfs_node *n)
{
	const struct vfs_fh *root = &n->exp->root_fh;

	return n->mnt == n->exp->root_mnt && n->fh.len == root->len &&
	       memcmp(n->fh.data, root->data, root->len) == 0;
}

int vfs_node_stat(struct vfs_node *n, struct statx *out)
{
	if (statx(n->path_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, out) != 0)
		return -errno;
	if (out->stx_nlink > 0 || vfs_file_keep(n))
		return 0;
	vfs_node_doom(n);
	return -ESTALE;
}

void vfs_node_changed(struct vfs_node *n)
{
	vfs_change_made(n->mnt->changes, n->dev, n->ino);
}

int vfs_dir_error(struct vfs_node *dir, int error)
{
	struct statx sx;

	return error == -ENOENT && vfs_node_stat(dir, &sx) == -ESTALE ? -ESTALE : error;
}

void vfs_node_drop_removed(struct vfs_node *n)
{
	struct statx sx;

	if (n)
		vfs_node_stat(n, &sx);
	vfs_node_put(n);
}

/* The mount and the file handle of what name is in dirfd, or of dirfd itself for "". */
static int identify(struct vfs_ctx *ctx, int dirfd, const char *name, struct vfs_mount **mnt,
		    struct vfs_fh *fh)
{
	struct vfs_handle h;
	uint64_t mnt_id;
	int rc = vfs_handle_of(dirfd, name, &h, &mnt_id);

	if (rc == -EOPNOTSUPP)
		return -EACCES; /* a mount in the export that has no handles: it is not shown */
	if (rc == 0 && mnt_id != ctx->exp->root_mnt->mnt_id)
		rc = vfs_act_as_root(
			ctx); /* submounts may lie behind directories closed to the caller */
	if (rc != 0)
		return rc;
	if (vfs_mount_by_mnt_id(ctx->exp, mnt_id, mnt) != 0)
		return -EACCES;
	h.export_id = ctx->exp->id;
	h.submount_id = (*mnt)->id;
	rc = vfs_handle_encode(&h, vfs_mount_mac(ctx->vfs, *mnt), fh);
	if (rc != 0)
		vfs_mount_put(*mnt);
	return rc;
}

int vfs_node_of_fd(struct vfs_ctx *ctx, int fd, struct vfs_node **out, struct vfs_attr *attr)
{
	/* Which mount it is, and whether the clock matters, is known only later. */
	int64_t clock = attr ? vfs_change_clock(ctx->vfs->changes) : 0;
	struct vfs_mount *mnt;
	struct vfs_fh fh;
	struct statx sx;
	int rc;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &sx) != 0)
		rc = -errno;
	else
		rc = sx.stx_nlink > 0 ? identify(ctx, fd, "", &mnt, &fh) : -ENOENT;
	if (rc != 0) {
		vfs_fd_close(ctx->vfs, fd);
		return rc;
	}
	rc = vfs_cache_add(ctx->vfs,
			   &(struct vfs_node_parts){ .exp = ctx->exp,
						     .mnt = mnt,
						     .fh = &fh,
						     .type = sx.stx_mode & S_IFMT,
						     .dev = vfs_device_of(&sx),
						     .ino = sx.stx_ino,
						     .path_fd = fd },
			   out);
	vfs_mount_put(mnt);
	if (rc == 0 && attr)
		vfs_attr_from_statx((*out)->mnt, &(*out)->fh, &sx, clock, attr);
	return rc;
}

/* 0 and NULL: the name is there, as *fh, but not in the cache. */
static int find_cached(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		       struct vfs_fh *fh, struct vfs_node **out)
{
	struct vfs_mount *mnt;
	int rc = identify(ctx, dir->path_fd, name->s, &mnt, fh);

	if (rc != 0)
		return rc;
	*out = vfs_cache_find(ctx->vfs, mnt, fh);
	vfs_mount_put(mnt);
	return 0;
}

struct vfs_node *vfs_node_known(struct vfs_ctx *ctx, struct vfs_node *dir,
				const struct vfs_name *name)
{
	struct vfs_node *n;
	struct vfs_fh fh;
	struct statx sx;

	if (find_cached(ctx, dir, name, &fh, &n) != 0)
		return NULL;
	if (n || !vfs_file_any_open(ctx->vfs))
		return n;
	if (statx(dir->path_fd, name->s, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO, &sx) !=
		    0 ||
	    !vfs_file_is_open(ctx->vfs, vfs_device_of(&sx), &fh))
		return NULL;
	return vfs_node_of_name(ctx, dir, name, &n, NULL) == 0 ? n : NULL;
}

/* A cached node with its attributes; false: it is of no use (any more). */
static bool use_cached(struct vfs_node *n, struct vfs_attr *attr)
{
	int64_t clock;
	struct statx sx;

	if (!attr)
		return true;
	clock = vfs_change_clock(n->mnt->changes);
	if (vfs_node_stat(n, &sx) != 0) {
		vfs_node_put(n);
		return false;
	}
	vfs_attr_from_statx(n->mnt, &n->fh, &sx, clock, attr);
	return true;
}

int vfs_node_of_name(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		     struct vfs_node **out, struct vfs_attr *attr)
{
	struct vfs_fh fh;
	int fd, rc;

	rc = find_cached(ctx, dir, name, &fh, out);
	if (rc != 0)
		return rc;
	if (*out && use_cached(*out, attr))
		return 0;
	rc = vfs_act_as_caller(ctx);
	if (rc != 0)
		return rc;
	fd = vfs_fd_openat(ctx->vfs, dir->path_fd, name->s, O_PATH | O_NOFOLLOW, 0);
	return fd < 0 ? fd : vfs_node_of_fd(ctx, fd, out, attr);
}
