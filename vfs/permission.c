/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/permission.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/acting.h"
#include "vfs/node_open.h"

int vfs_access_check(struct vfs_ctx *ctx, struct vfs_node *n, int amode)
{
	int rc = vfs_act_as_caller(ctx);

	if (rc != 0)
		return rc;
	/* The system call itself: glibc emulates the flags where the kernel refuses them, and
	 * wrongly. */
	return syscall(SYS_faccessat2, n->path_fd, "", amode, AT_EACCESS | AT_EMPTY_PATH) == 0
		       ? 0
		       : -errno;
}

/* 1: the caller owns the file and may do with its data what it likes. */
static int check_data(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct statx sx;
	int rc;

	if (n->type == S_IFDIR)
		return -EISDIR;
	if (n->type != S_IFREG)
		return -EINVAL;
	rc = vfs_node_stat(n, &sx);
	return rc == 0 ? sx.stx_uid == ctx->cred.uid : rc;
}

int vfs_may_read(struct vfs_ctx *ctx, struct vfs_node *n)
{
	int rc = check_data(ctx, n);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = vfs_access_check(ctx, n, R_OK);
	if (rc == -EACCES && vfs_access_check(ctx, n, X_OK) == 0)
		rc = 0;
	return rc;
}

int vfs_may_write(struct vfs_ctx *ctx, struct vfs_node *n)
{
	int rc = check_data(ctx, n);

	if (rc < 0)
		return rc;
	if (ctx->access.flags & VFS_RO)
		return -EROFS;
	return rc == 1 ? 0 : vfs_access_check(ctx, n, W_OK);
}

/* One right out of vfs_may; -EACCES and its like become "no". */
static int ask(struct vfs_ctx *ctx, struct vfs_node *n, int amode, unsigned right,
	       unsigned *granted)
{
	int rc = vfs_access_check(ctx, n, amode);

	if (rc == 0)
		*granted |= right;
	return rc == -EACCES || rc == -EPERM || rc == -EROFS ? 0 : rc;
}

int vfs_access(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want, unsigned *granted)
{
	struct statx sx;
	int rc = vfs_node_stat(n, &sx);

	*granted = 0;
	if (ctx->access.flags & VFS_RO)
		want &= ~(unsigned)(VFS_MAY_WRITE | VFS_MAY_DELETE);
	if (n->type != S_IFDIR)
		want &= ~(unsigned)VFS_MAY_DELETE;
	if (rc == 0 && (want & VFS_MAY_READ))
		rc = ask(ctx, n, R_OK, VFS_MAY_READ, granted);
	if (rc == 0 && (want & VFS_MAY_WRITE))
		rc = ask(ctx, n, W_OK, VFS_MAY_WRITE, granted);
	if (rc == 0 && (want & VFS_MAY_EXEC))
		rc = ask(ctx, n, X_OK, VFS_MAY_EXEC, granted);
	if (rc == 0 && (want & VFS_MAY_DELETE))
		rc = ask(ctx, n, W_OK | X_OK, VFS_MAY_DELETE, granted);
	return rc;
}
