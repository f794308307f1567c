/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/names/making.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "vfs/acl.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/file_system.h"
#include "vfs/meta/attr.h"
#include "vfs/meta/setattr.h"
#include "vfs/node/covered.h"

int vfs_dir_check(struct vfs_ctx *ctx, const struct vfs_node *dir)
{
	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	return vfs_check_writable(ctx, dir);
}

int vfs_create_check(struct vfs_ctx *ctx, const struct vfs_node *dir, const struct vfs_setattr *sa)
{
	int rc = vfs_dir_check(ctx, dir);

	return rc == 0 && sa ? vfs_setattr_check(sa) : rc;
}

static bool has_default_acl(const struct vfs_node *dir)
{
	return getxattr(vfs_proc_path(dir->path_fd).s, "system.posix_acl_default", NULL, 0) > 0;
}

struct vfs_setattr vfs_create_attrs(const struct vfs_node *dir, const struct vfs_setattr *sa)
{
	struct vfs_setattr out = sa ? *sa : (struct vfs_setattr){ 0 };

	if (out.acls && !out.acls->keep_access) {
		/* No access ACL is inherited then, and nobody gets in before they are set. */
		out.mode &= S_ISUID | S_ISGID | S_ISVTX;
		out.set_mode = true;
	} else if (out.set_mode && (out.mode & out.umask) && !has_default_acl(dir))
		out.mode &= ~out.umask;
	return out;
}

/* A call that made or found an object has succeeded, even if another has removed it since. */
static int last_attr(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *out)
{
	int rc = vfs_getattr(ctx, n, out);
	int64_t clock = vfs_change_clock(vfs_changes_of(n->mnt, n->type));
	struct statx sx;

	if (rc != -ESTALE)
		return rc;
	if (statx(n->path_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &sx) != 0)
		return -errno;
	vfs_attr_from_statx(n->mnt, &n->fh, &sx, clock, out);
	return 0;
}

int vfs_created(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *attr)
{
	int rc = attr ? last_attr(ctx, n, attr) : 0;

	if (rc != 0)
		vfs_node_put(n);
	return rc;
}

int vfs_made(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa,
	     struct vfs_attr *attr)
{
	int rc = vfs_setattr_created(ctx, n, sa);

	if (rc == 0 || rc == -ESTALE)
		return vfs_created(ctx, n, attr);
	vfs_node_put(n);
	return rc;
}
