/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handle and attributes of a name without opening it: what a listing needs of each entry, in two
 * system calls and without a descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/meta/attr.h"
#include "vfs/names/name.h"
#include "vfs/node/node.h"
#include "vfs/worker/acting.h"

/*
 * The name may have changed hands between the two calls, and so may a mount have come over it; then
 * the slow way decides, as it does for file systems whose handles do not show the inode.
 */
static int peek(struct vfs_ctx *ctx, const struct vfs_node *dir, const struct vfs_name *name,
		struct vfs_fh *fh, struct vfs_attr *attr)
{
	int64_t clock = vfs_change_clock(dir->mnt->changes);
	struct vfs_handle h;
	struct statx sx;
	uint64_t mnt_id;
	int rc = vfs_handle_of(dir->path_fd, name->s, &h, &mnt_id);

	if (rc != 0 || mnt_id != dir->mnt->mnt_id)
		return -EAGAIN;
	if (statx(dir->path_fd, name->s, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, &sx) != 0)
		return -EAGAIN;
	if (sx.stx_mnt_id != mnt_id || !vfs_handle_shows_inode(&h, sx.stx_ino))
		return -EAGAIN;
	h.export_id = ctx->exp->id;
	h.submount_id = dir->mnt->id;
	rc = vfs_handle_encode(&h, vfs_mount_mac(ctx->vfs, dir->mnt), fh);
	if (rc == 0)
		vfs_attr_from_statx(dir->mnt, fh, &sx, clock, attr);
	return rc;
}

int vfs_peek(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	     struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_name nm;
	struct vfs_node *n;
	int rc = vfs_name_from(&nm, name, len);

	if (rc == 0 && !vfs_name_is_dot(&nm) && !vfs_name_is_dotdot(&nm)) {
		rc = vfs_act_as_caller(ctx);
		if (rc == 0)
			rc = peek(ctx, dir, &nm, fh, attr);
		if (rc != -EAGAIN)
			return rc;
	}
	rc = vfs_lookup(ctx, dir, name, len, &n, attr);
	if (rc != 0)
		return rc;
	*fh = *vfs_node_fh(n);
	vfs_node_put(n);
	return 0;
}
