/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/names/making.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "vfs/acl.h"
#include "vfs/fs/proc_path.h"
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

int vfs_created(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *attr)
{
	int rc = attr ? vfs_getattr(ctx, n, attr) : 0;

	if (rc != 0)
		vfs_node_put(n);
	return rc;
}
