/* SPDX-License-Identifier: BSD-2-Clause */
/* Permissions: by owner, groups and mode without becoming the caller, else by asking the kernel as the caller. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/deleg.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/file_system.h"
#include "vfs/meta/attr.h"
#include "vfs/meta/dir_change.h"
#include "vfs/node/node.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

#define ACL_NAME "system.posix_acl_access"

/* False only if the file has no ACL. */
static bool ask_for_acl(struct vfs_node *n, int64_t ctime)
{
	const int fd = atomic_load_explicit(&n->data_fd[VFS_FD_READ], memory_order_acquire);
	const int64_t clock = vfs_change_clock(n->vfs->changes);
	const ssize_t len = fd >= 0 ? fgetxattr(fd, ACL_NAME, NULL, 0)
				    : getxattr(vfs_proc_path(n->path_fd).s, ACL_NAME, NULL, 0);

	/* EOPNOTSUPP: another mount option can bring back ACLs that are there already. */
	if (len < 0 && errno == ENODATA && vfs_ctime_is_over(ctime, clock))
		atomic_store_explicit(&n->without_acl, ctime, memory_order_relaxed);
	return len >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
}

/* False only if the file that sx shows has no ACL. The kernel looks at ACLs if the group's bits, which are the
 * ACL's mask, grant anything. */
static bool may_have_acl(struct vfs_node *n, const struct statx *sx)
{
	const int64_t ctime = sx->stx_ctime.tv_sec * INT64_C(1000000000) + sx->stx_ctime.tv_nsec;

	if ((sx->stx_mode & S_IRWXG) == 0)
		return false;
	return ctime == 0 || atomic_load_explicit(&n->without_acl, memory_order_relaxed) != ctime
		       ? ask_for_acl(n, ctime)
		       : false;
}

/*
 * *rc: 0 if the mode grants R_OK, W_OK and X_OK as far as asked, else -EACCES, by the rules of
 * path_resolution(7). The owner's rights are in the mode whatever the ACL. False: an ACL may say otherwise.
 */
static bool vfs_mode_check(const struct vfs_cred *cred, struct vfs_node *n, int amode,
			   const struct statx *sx, int *rc)
{
	unsigned bits = sx->stx_mode;

	if (cred->uid == sx->stx_uid)
		bits >>= 6;
	else if (may_have_acl(n, sx))
		return false;
	else if (vfs_cred_has_group(cred, sx->stx_gid))
		bits >>= 3;
	*rc = ((unsigned)amode & ~bits & 7) == 0 ? 0 : -EACCES;
	return true;
}

/* Like vfs_mode_check(), for root as well, who always may; *rc may be -errno. seen: a look at the node within this call, or NULL. */
static bool mode_decides(const struct vfs_ctx *ctx, struct vfs_node *n, int amode,
			 const struct statx *seen, int *rc)
{
	struct statx sx;

	*rc = 0;
	if (ctx->cred.uid == 0)
		return true;
	if (!seen)
		*rc = vfs_node_stat(n, &sx);
	return *rc != 0 || vfs_mode_check(&ctx->cred, n, amode, seen ? seen : &sx, rc);
}

/* True if the kernel grants root the access whatever the file, its mount and its attributes are. */
static bool root_always_may(const struct vfs_node *n, int amode)
{
	return amode == R_OK || (amode == X_OK && n->type == S_IFDIR);
}

/* Like vfs_access_check(). seen: a look at the node within this call, or NULL. */
static int access_check_seen(struct vfs_ctx *ctx, struct vfs_node *n, int amode,
			     const struct statx *seen)
{
	int rc = 0;

	if (vfs_worker_on_event_thread(vfs_worker_of(ctx)) &&
	    mode_decides(ctx, n, amode, seen, &rc)) {
		if (rc != 0 || root_always_may(n, amode))
			return rc;
	} else {
		rn_fiber_move(ctx->fiber);
		rc = vfs_act_as_caller(ctx);
	}
	if (rc != 0)
		return rc;
	/* The system call itself: glibc emulates the flags where the kernel refuses them, and
	 * wrongly. */
	return syscall(SYS_faccessat2, n->path_fd, "", amode, AT_EACCESS | AT_EMPTY_PATH) == 0
		       ? 0
		       : -errno;
}

int vfs_access_check(struct vfs_ctx *ctx, struct vfs_node *n, int amode)
{
	return access_check_seen(ctx, n, amode, NULL);
}

int vfs_search_check(struct vfs_ctx *ctx, struct vfs_node *dir)
{
	int64_t clock;
	struct statx sx;
	int rc;

	if (!ctx->searched || ctx->cred.uid == 0)
		return vfs_access_check(ctx, dir, X_OK);
	clock = vfs_change_clock(vfs_changes_of(dir->mnt, dir->type));
	rc = vfs_node_stat(dir, &sx);
	if (rc != 0)
		return rc;
	vfs_attr_from_statx(dir->mnt, &dir->fh, &sx, clock, ctx->searched);
	return access_check_seen(ctx, dir, X_OK, &sx);
}

static int check_regular(const struct vfs_node *n)
{
	if (n->type == S_IFREG)
		return 0;
	return n->type == S_IFDIR ? -EISDIR : -EINVAL;
}

/* 1: the caller owns the file and may do with its data what it likes. Fills sx unless it fails. */
static int check_data(struct vfs_ctx *ctx, struct vfs_node *n, struct statx *sx)
{
	int rc = check_regular(n);

	if (rc == 0 && vfs_node_is_covered(ctx, n))
		rc = -EACCES;
	if (rc == 0)
		rc = vfs_node_stat(n, sx);
	return rc == 0 ? sx->stx_uid == ctx->cred.uid : rc;
}

/* A caller who may execute a file must be able to read it. */
static int permission_check_read(struct vfs_ctx *ctx, struct vfs_node *n, const struct statx *seen)
{
	int rc = access_check_seen(ctx, n, R_OK, seen);

	return rc == -EACCES && access_check_seen(ctx, n, X_OK, seen) == 0 ? 0 : rc;
}

int vfs_may_read(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct statx sx;
	int rc = check_data(ctx, n, &sx);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	return permission_check_read(ctx, n, &sx);
}

int vfs_check_unsealed(const struct statx *sx)
{
	return sx->stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND) ? -EPERM : 0;
}

int vfs_may_write(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct statx sx;
	int owner = check_data(ctx, n, &sx), rc;

	if (owner < 0)
		return owner;
	if (ctx->access.flags & VFS_RO)
		return -EROFS;
	rc = vfs_check_unsealed(&sx);
	return rc < 0 || owner ? rc : access_check_seen(ctx, n, W_OK, &sx);
}

static int may_read_now(struct vfs_io *io)
{
	struct vfs_node *n = io->node;
	const int64_t clock = vfs_change_clock(n->mnt->changes);
	struct statx sx;
	int rc;

	io->has_attr = false;
	if (io->opened)
		return check_regular(n);
	rc = check_data(io->ctx, n, &sx);
	if (rc >= 0) {
		vfs_attr_from_statx(n->mnt, &n->fh, &sx, clock, &io->attr);
		io->has_attr = true;
	}
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return permission_check_read(io->ctx, n, &sx);
}

int vfs_io_may_read(struct vfs_io *io)
{
	int rc = may_read_now(io);

	return rc == 0 ? vfs_deleg_check(io->ctx, io->node, VFS_USE_READ) : rc;
}

/* For a file that was opened before. The attributes alone are asked for, which every file system keeps in
 * memory. */
static int check_unsealed_now(const struct vfs_node *n)
{
	struct statx sx;

	if (statx(n->path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &sx) != 0)
		return -errno;
	return vfs_check_unsealed(&sx);
}

int vfs_io_may_write(const struct vfs_io *io)
{
	int rc;

	if (!io->opened)
		return vfs_may_write(io->ctx, io->node);
	rc = check_regular(io->node);
	if (rc == 0 && (io->ctx->access.flags & VFS_RO))
		rc = -EROFS;
	return rc == 0 ? check_unsealed_now(io->node) : rc;
}

int vfs_open_check(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want)
{
	struct statx sx;
	int rc = check_regular(n);

	if (rc == 0)
		rc = vfs_node_stat(n, &sx);
	return rc == 0 ? vfs_open_check_found(ctx, n, want) : rc;
}

int vfs_open_check_found(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want)
{
	int rc = check_regular(n);

	if (rc == 0 && vfs_node_is_covered(ctx, n))
		rc = -EACCES;
	if (rc == 0 && (want & VFS_MAY_WRITE) && (ctx->access.flags & VFS_RO))
		rc = -EROFS;
	if (rc == 0 && (want & VFS_MAY_WRITE))
		rc = vfs_access_check(ctx, n, W_OK);
	if (rc == 0 && (want & VFS_MAY_READ))
		rc = permission_check_read(ctx, n, NULL);
	return rc;
}

int vfs_open_breaks_leases(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want)
{
	const bool writes = want & VFS_MAY_WRITE;
	int fd = vfs_deleg_check(ctx, n, writes ? VFS_USE_WRITE : VFS_USE_READ);

	if (fd != 0)
		return fd;
	fd = writes ? vfs_node_fd(ctx, n, VFS_FD_WRITE) : vfs_node_readable_fd(ctx, n);
	return fd == -RN_ELEASE || fd == -RN_EFULL ? fd : 0;
}

/* Rights that can be asked for together, in one call of the kernel. */
#define PLAIN (VFS_MAY_READ | VFS_MAY_WRITE | VFS_MAY_EXEC)

static int amode_of(unsigned rights)
{
	return (rights & VFS_MAY_READ ? R_OK : 0) |
	       (rights & (VFS_MAY_WRITE | VFS_MAY_DELETE) ? W_OK : 0) |
	       (rights & (VFS_MAY_EXEC | VFS_MAY_DELETE) ? X_OK : 0);
}

/* A question for rights of a node that was looked at. */
struct asking {
	struct vfs_ctx *ctx;
	struct vfs_node *node;
	const struct statx *seen;
};

/* Grants rights if the caller has them all; -EACCES and its like become "no". */
static int permission_grant(const struct asking *a, unsigned rights, unsigned *granted)
{
	int rc = rights ? access_check_seen(a->ctx, a->node, amode_of(rights), a->seen) : 0;

	if (rc == 0)
		*granted |= rights;
	return rc == -EACCES || rc == -EPERM || rc == -EROFS ? 0 : rc;
}

bool vfs_cred_has_group(const struct vfs_cred *cred, uint32_t gid)
{
	for (uint32_t i = 0; i < cred->ngroups; i++) {
		if (cred->groups[i] == gid)
			return true;
	}
	return cred->gid == gid;
}

/* Rights that the caller is likely to have, by the mode. Only a guess: the kernel is asked. */
static unsigned permission_guess(const struct vfs_ctx *ctx, const struct statx *sx)
{
	unsigned bits = sx->stx_mode;

	if (ctx->cred.uid == 0)
		return PLAIN;
	if (ctx->cred.uid == sx->stx_uid)
		bits >>= 6;
	else if (vfs_cred_has_group(&ctx->cred, sx->stx_gid))
		bits >>= 3;
	return (bits & 4 ? VFS_MAY_READ : 0u) | (bits & 2 ? VFS_MAY_WRITE : 0u) |
	       (bits & 1 ? VFS_MAY_EXEC : 0u);
}

/* The rights expected are asked for at once: if all are granted, so is each. The others one by one.
 */
static int ask_each(const struct asking *a, unsigned want, unsigned expect, unsigned *granted)
{
	int rc = permission_grant(a, want & expect, granted);

	for (unsigned right = VFS_MAY_READ; rc == 0 && right <= VFS_MAY_DELETE; right <<= 1) {
		if ((want & right & ~*granted) && (want & expect) != right)
			rc = permission_grant(a, right, granted);
	}
	return rc;
}

int vfs_access(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want, unsigned *granted,
	       struct vfs_attr *attr)
{
	unsigned expect;
	struct statx sx;
	int64_t clock;
	int rc;

	*granted = 0;
	if (attr)
		vfs_dir_keep_change(ctx, n);
	clock = vfs_change_clock(vfs_changes_of(n->mnt, n->type));
	rc = vfs_node_stat(n, &sx);
	if (rc != 0)
		return rc;
	if (attr)
		vfs_attr_from_statx(n->mnt, &n->fh, &sx, clock, attr);
	if ((ctx->access.flags & VFS_RO) || vfs_node_is_covered(ctx, n))
		want &= ~(unsigned)(VFS_MAY_WRITE | VFS_MAY_DELETE);
	expect = permission_guess(ctx, &sx);
	if (n->type == S_IFDIR) {
		/* Write and search together are what deleting needs. */
		if ((want & VFS_MAY_DELETE) && (expect & VFS_MAY_WRITE) && (expect & VFS_MAY_EXEC))
			expect |= VFS_MAY_DELETE;
	} else {
		want &= ~(unsigned)VFS_MAY_DELETE;
		/* Without any such bit nobody may execute a file, not even root. */
		if ((sx.stx_mode & 0111) == 0)
			want &= ~(unsigned)VFS_MAY_EXEC;
	}
	return ask_each(&(struct asking){ ctx, n, &sx }, want, expect, granted);
}
