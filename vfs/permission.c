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

static int check_regular(const struct vfs_node *n)
{
	if (n->type == S_IFREG)
		return 0;
	return n->type == S_IFDIR ? -EISDIR : -EINVAL;
}

/* 1: the caller owns the file and may do with its data what it likes. */
static int check_data(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct statx sx;
	int rc = check_regular(n);

	if (rc == 0)
		rc = vfs_node_stat(n, &sx);
	return rc == 0 ? sx.stx_uid == ctx->cred.uid : rc;
}

/* Who may execute a file must be able to read it. */
static int check_read(struct vfs_ctx *ctx, struct vfs_node *n)
{
	int rc = vfs_access_check(ctx, n, R_OK);

	return rc == -EACCES && vfs_access_check(ctx, n, X_OK) == 0 ? 0 : rc;
}

int vfs_may_read(struct vfs_ctx *ctx, struct vfs_node *n)
{
	int rc = check_data(ctx, n);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	return check_read(ctx, n);
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

int vfs_io_may_read(const struct vfs_io *io)
{
	return io->opened ? check_regular(io->node) : vfs_may_read(io->ctx, io->node);
}

int vfs_io_may_write(const struct vfs_io *io)
{
	int rc;

	if (!io->opened)
		return vfs_may_write(io->ctx, io->node);
	rc = check_regular(io->node);
	return rc == 0 && (io->ctx->access.flags & VFS_RO) ? -EROFS : rc;
}

int vfs_open_check(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want)
{
	struct statx sx;
	int rc = check_regular(n);

	if (rc == 0)
		rc = vfs_node_stat(n, &sx);
	if (rc == 0 && (want & VFS_MAY_WRITE) && (ctx->access.flags & VFS_RO))
		rc = -EROFS;
	if (rc == 0 && (want & VFS_MAY_WRITE))
		rc = vfs_access_check(ctx, n, W_OK);
	if (rc == 0 && (want & VFS_MAY_READ))
		rc = check_read(ctx, n);
	return rc;
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
