/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/meta/mode_check.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vfs/fs/file_system.h"
#include "vfs/meta/permission.h"
#include "vfs/node/node.h"

#define ACL_NAME "system.posix_acl_access"

/* False only if the file has no ACL. The kernel looks at ACLs if the group's bits, which are the
 * ACL's mask, grant anything. */
static bool may_have_acl(const struct vfs_node *n, unsigned mode)
{
	const int fd = atomic_load_explicit(&n->data_fd[VFS_FD_READ], memory_order_acquire);
	ssize_t len;

	if ((mode & S_IRWXG) == 0)
		return false;
	len = fd >= 0 ? fgetxattr(fd, ACL_NAME, NULL, 0)
		      : getxattr(vfs_proc_path(n->path_fd).s, ACL_NAME, NULL, 0);
	return len >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
}

bool vfs_mode_check(const struct vfs_ctx *ctx, struct vfs_node *n, int amode, int *rc)
{
	const struct vfs_cred *cred = &ctx->cred;
	struct statx sx;
	unsigned bits;

	*rc = 0;
	if (cred->uid == 0)
		return true;
	*rc = vfs_node_stat(n, &sx);
	if (*rc != 0)
		return true;
	bits = sx.stx_mode;
	if (cred->uid == sx.stx_uid)
		bits >>= 6;
	else if (may_have_acl(n, sx.stx_mode))
		return false;
	else if (vfs_cred_has_group(cred, sx.stx_gid))
		bits >>= 3;
	*rc = ((unsigned)amode & ~bits & 7) == 0 ? 0 : -EACCES;
	return true;
}
