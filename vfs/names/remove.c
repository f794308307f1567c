/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking names away and giving others. The node of what loses its last link is dropped from the
 * cache at once, so that its space is freed: it is looked up by handle before, when the name still
 * leads to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/device.h"
#include "vfs/fs/proc_path.h"
#include "vfs/names/node_open.h"
#include "vfs/worker/acting.h"

static int check_dir(struct vfs_ctx *ctx, const struct vfs_node *dir)
{
	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	return ctx->access.flags & VFS_RO ? -EROFS : 0;
}

/* An inode whose ctime changes with its names; t NULL: it need not be told (vfs/fs/change.h). */
struct named {
	struct vfs_changes *t;
	uint64_t dev, ino;
};

static struct named inode_of(const struct vfs_node *dir, const struct vfs_name *name)
{
	struct named i = { .t = dir->mnt->changes };
	struct statx sx;

	if (i.t && statx(dir->path_fd, name->s, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO,
			 &sx) == 0) {
		i.dev = vfs_device_of(&sx);
		i.ino = sx.stx_ino;
	}
	return i;
}

static int unlink_name(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		       int flags)
{
	struct vfs_node *victim = NULL;
	struct named inode = inode_of(dir, name);
	int rc = vfs_act_as_caller(ctx);

	if (rc == 0)
		victim = vfs_node_known(ctx, dir, name);
	if (rc == 0)
		rc = vfs_act_as_caller(ctx);
	if (rc == 0 && unlinkat(dir->path_fd, name->s, flags) != 0)
		rc = vfs_dir_error(dir, -errno);
	if (rc == 0) {
		vfs_node_changed(dir);
		vfs_change_made(inode.t, inode.dev, inode.ino);
		vfs_node_drop_removed(victim);
	} else {
		vfs_node_put(victim);
	}
	return rc;
}

int vfs_remove(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len)
{
	struct vfs_name nm;
	int rc = check_dir(ctx, dir);

	if (rc == 0)
		rc = vfs_name_from(&nm, name, len);
	return rc == 0 ? unlink_name(ctx, dir, &nm, 0) : rc;
}

int vfs_rmdir(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len)
{
	struct vfs_name nm;
	int rc = check_dir(ctx, dir);

	if (rc == 0)
		rc = vfs_name_from(&nm, name, len);
	return rc == 0 ? unlink_name(ctx, dir, &nm, AT_REMOVEDIR) : rc;
}

static int rename_error(const struct vfs_rename *r, int error)
{
	int rc = vfs_dir_error(r->from_dir, error);

	return rc == error ? vfs_dir_error(r->to_dir, error) : rc;
}

static int rename_names(struct vfs_ctx *ctx, const struct vfs_rename *r,
			const struct vfs_name *from, const struct vfs_name *to)
{
	struct named moved = inode_of(r->from_dir, from), replaced = inode_of(r->to_dir, to);
	struct vfs_node *victim = NULL;
	int rc = vfs_act_as_caller(ctx);

	if (rc == 0)
		victim = vfs_node_known(ctx, r->to_dir, to);
	if (rc == 0)
		rc = vfs_act_as_caller(ctx);
	if (rc == 0 && renameat(r->from_dir->path_fd, from->s, r->to_dir->path_fd, to->s) != 0)
		rc = rename_error(r, -errno);
	if (rc == 0) {
		vfs_node_changed(r->from_dir);
		vfs_node_changed(r->to_dir);
		vfs_change_made(moved.t, moved.dev, moved.ino);
		vfs_change_made(replaced.t, replaced.dev, replaced.ino);
		vfs_node_drop_removed(victim);
	} else {
		vfs_node_put(victim);
	}
	return rc;
}

static bool is_dots(const struct vfs_name *name)
{
	return vfs_name_is_dot(name) || vfs_name_is_dotdot(name);
}

int vfs_rename(struct vfs_ctx *ctx, const struct vfs_rename *r)
{
	struct vfs_name from, to;
	int rc = check_dir(ctx, r->from_dir);

	if (rc == 0)
		rc = check_dir(ctx, r->to_dir);
	if (rc == 0)
		rc = vfs_name_from(&from, r->from, r->from_len);
	if (rc == 0)
		rc = vfs_name_from(&to, r->to, r->to_len);
	if (rc == 0 && (is_dots(&from) || is_dots(&to)))
		rc = -EINVAL; /* RFC 1813 section 3.3.14 */
	return rc == 0 ? rename_names(ctx, r, &from, &to) : rc;
}

int vfs_link(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_node *dir, const char *name,
	     uint32_t len)
{
	struct vfs_name nm;
	int rc = check_dir(ctx, dir);

	if (rc == 0)
		rc = vfs_name_from(&nm, name, len);
	if (rc == 0 && n->mnt != dir->mnt)
		rc = -EXDEV;
	if (rc == 0)
		rc = vfs_act_as_caller(ctx);
	/* By way of /proc: a link to a bare descriptor needs a capability. */
	if (rc == 0 && linkat(AT_FDCWD, vfs_proc_path(n->path_fd).s, dir->path_fd, nm.s,
			      AT_SYMLINK_FOLLOW) != 0)
		rc = vfs_dir_error(dir, -errno);
	if (rc == 0) {
		vfs_node_changed(dir);
		vfs_node_changed(n);
	}
	return rc;
}
