/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handle and attributes of a name without opening it: what a listing needs of each entry, without a
 * descriptor. statx shows the attributes and which inode they are of. The inode's handle comes from
 * the cache, or from a second system call.
 */
#include <errno.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/fs/handle_cache.h"
#include "vfs/meta/attr.h"
#include "vfs/names/name.h"
#include "vfs/names/shown.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

#define SECOND INT64_C(1000000000)

/* The key of an inode whose handle follows from it. A file of another subvolume than the
 * directory's has none, since its number does not show the subvolume. */
static bool peek_inode_key(const struct vfs_node *dir, const struct statx *sx,
			   struct vfs_inode_key *key)
{
	const struct vfs_mount *mnt = dir->mnt;
	const int64_t seconds = sx->stx_ctime.tv_sec;
	uint64_t ino, volume = 0;

	if (!mnt->handles_by_inode || vfs_device_of(sx) != dir->dev)
		return false;
	if (mnt->subvolume != 0 &&
	    (!vfs_fh_subvolume(&dir->fh, &ino, &volume) || volume > UINT32_MAX))
		return false;
	if (seconds < 0 || seconds >= INT64_MAX / SECOND)
		return false;
	*key = (struct vfs_inode_key){ .ino = sx->stx_ino,
				       .ctime = seconds * SECOND + sx->stx_ctime.tv_nsec,
				       .mount = mnt->serial,
				       .volume = (uint32_t)volume };
	return true;
}

/* True if the handle is certainly that of the inode that the key is of. */
static bool is_of_key(const struct vfs_handle *h, const struct vfs_inode_key *key)
{
	struct vfs_inode_handle parts;

	return vfs_handle_split(h, &parts) && parts.ino == key->ino && parts.volume == key->volume;
}

int vfs_shown_handle(const struct vfs_node *dir, int fd, const char *name,
		     const struct vfs_shown *shown, struct vfs_handle *h)
{
	struct vfs_handle_cache *cache = dir->vfs->handles;
	struct vfs_inode_key key;
	const bool keyed = cache && peek_inode_key(dir, &shown->sx, &key);
	uint64_t mnt_id;

	if (shown->sx.stx_mnt_id != dir->mnt->mnt_id)
		return -RN_ECHANGED;
	if (keyed && vfs_handle_cache_find(cache, &key, h))
		return 0;
	if (vfs_handle_of(fd, name, h, &mnt_id) != 0 || mnt_id != dir->mnt->mnt_id)
		return -RN_ECHANGED;
	if (!keyed)
		return vfs_handle_shows_inode(h, shown->sx.stx_ino) ? 0 : -RN_ECHANGED;
	if (!is_of_key(h, &key))
		return -RN_ECHANGED;
	vfs_handle_cache_add(cache, &key, h, shown->clock);
	return 0;
}

/* Handle and attributes, from what statx has shown of the name. */
static int use_shown(struct vfs_ctx *ctx, const struct vfs_node *dir, const char *name,
		     const struct vfs_shown *shown, struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_handle h;
	int rc = vfs_shown_handle(dir, dir->path_fd, name, shown, &h);

	if (rc != 0)
		return rc;
	h.export_id = ctx->exp->id;
	h.submount_id = dir->mnt->id;
	rc = vfs_handle_encode(&h, vfs_mount_mac(ctx->vfs, dir->mnt), fh);
	if (rc == 0)
		vfs_attr_from_statx(dir->mnt, fh, &shown->sx, shown->clock, attr);
	return rc;
}

/*
 * The name may have changed hands between the two calls, and so may a mount have come over it; then
 * the slow way decides, as it does for file systems whose handles do not show the inode.
 */
static int peek_name(struct vfs_ctx *ctx, const struct vfs_node *dir, const char *name,
		     struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_shown shown = { .clock = (int64_t)rn_wall_coarse_ns() };

	if (vfs_statx_name(dir->path_fd, name, &shown.sx) != 0)
		return -RN_ECHANGED;
	return use_shown(ctx, dir, name, &shown, fh, attr);
}

static int peek_by_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
			  struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_node *n;
	int rc = vfs_lookup(ctx, dir, name, len, &n, attr);

	if (rc != 0)
		return rc;
	*fh = *vfs_node_fh(n);
	vfs_node_put(n);
	return 0;
}

int vfs_peek(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	     struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_name nm;
	int rc = vfs_name_from(&nm, name, len);

	if (rc == 0 && !vfs_name_is_dots(nm.s)) {
		rc = vfs_act_as_caller(ctx);
		if (rc == 0)
			rc = peek_name(ctx, dir, nm.s, fh, attr);
		if (rc != -RN_ECHANGED)
			return rc;
	}
	return peek_by_lookup(ctx, dir, name, len, fh, attr);
}

int vfs_peek_entry(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_dirent *de,
		   struct vfs_fh *fh, struct vfs_attr *attr)
{
	int rc = -RN_ECHANGED;

	if (!vfs_name_is_dots(de->name)) {
		rc = vfs_act_as_caller(ctx);
		if (rc == 0)
			rc = de->shown ? use_shown(ctx, dir, de->name, de->shown, fh, attr)
				       : peek_name(ctx, dir, de->name, fh, attr);
	}
	return rc == -RN_ECHANGED ? peek_by_lookup(ctx, dir, de->name, de->len, fh, attr) : rc;
}
