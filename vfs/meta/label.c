/* SPDX-License-Identifier: BSD-2-Clause */
/* By paths in /proc, as a node's own descriptor is O_PATH, which fgetxattr() and its like refuse. Such
 * a path leads to a symbolic link itself, which has a label of its own. */
#include "vfs/label.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "vfs/export/mounts.h"
#include "vfs/file_state.h"
#include "vfs/fs/file_system.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

#define NAME "security.selinux"

/* Asks the root of n's mount, which is open to read. */
bool vfs_label_supported(struct vfs_ctx *ctx, const struct vfs_node *n)
{
	return (ctx->access.flags & VFS_SECURITY_LABEL) && vfs_act_as_root(ctx) == 0 &&
	       (fgetxattr(n->mnt->fd, NAME, NULL, 0) >= 0 || errno == ENODATA);
}

int vfs_label_get(struct vfs_ctx *ctx, struct vfs_node *n, uint8_t buf[VFS_LABEL_MAX])
{
	ssize_t len;
	int rc = vfs_act_as_root(ctx);

	if (rc != 0)
		return rc;
	len = getxattr(vfs_proc_path(n->path_fd).s, NAME, buf, VFS_LABEL_MAX);
	if (len > 0)
		return (int)len;
	return len == 0 || errno == ERANGE ? -ENODATA : -errno;
}

int vfs_label_set(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_label *label)
{
	int rc;

	if (label->len > VFS_LABEL_MAX)
		return -RN_ELABEL;
	rc = vfs_act_as_root(ctx);
	if (rc != 0)
		return rc;
	if (setxattr(vfs_proc_path(n->path_fd).s, NAME, label->bytes, label->len, 0) == 0)
		return 0;
	return errno == EINVAL || errno == E2BIG || errno == ERANGE ? -RN_ELABEL : -errno;
}
