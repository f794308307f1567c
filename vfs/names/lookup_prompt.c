/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/names/lookup_prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/handle.h"
#include "vfs/meta/attr.h"
#include "vfs/meta/permission.h"
#include "vfs/mount_table.h"
#include "vfs/names/shown.h"
#include "vfs/node/cache.h"
#include "vfs/worker/worker_state.h"

/* An O_PATH descriptor of what the name is, if no disk has to be asked; it is not a mount point.
 * Closed by the caller before the call ends, so that it is not counted in the budget. */
static int open_in_memory(const struct vfs_node *dir, const struct vfs_name *name)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_CACHED | RESOLVE_NO_XDEV,
	};
	long fd = syscall(SYS_openat2, dir->path_fd, name->s, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int lookup_stat_fd(int fd, struct vfs_shown *shown)
{
	shown->clock = (int64_t)rn_wall_coarse_ns();
	return vfs_statx_mount(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &shown->sx);
}

/* The cached node of what an O_PATH descriptor shows, in the directory's own mount, or NULL. */
static struct vfs_node *find_node(struct vfs_ctx *ctx, const struct vfs_node *dir, int fd,
				  struct vfs_shown *shown)
{
	struct vfs_handle h;
	struct vfs_fh fh;

	if (lookup_stat_fd(fd, shown) != 0 || vfs_shown_handle(dir, fd, "", shown, &h) != 0)
		return NULL;
	h.export_id = ctx->exp->id;
	h.submount_id = dir->mnt->id;
	if (vfs_handle_encode(&h, vfs_mount_mac(ctx->vfs, dir->mnt), &fh) != 0)
		return NULL;
	return vfs_cache_find(ctx->vfs, dir->mnt, &fh);
}

/* Attributes of the node: those that were shown with its handle, but for a directory, whose change
 * attribute depends on more. */
static int lookup_get_attr(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_shown *shown,
			   struct vfs_attr *attr)
{
	if (n->type == S_IFDIR)
		return vfs_getattr(ctx, n, attr);
	vfs_attr_from_statx(n->mnt, &n->fh, &shown->sx, shown->clock, attr);
	return 0;
}

bool vfs_lookup_prompt(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		       struct vfs_node **out, struct vfs_attr *attr, int *rc)
{
	struct vfs_shown shown;
	struct vfs_node *n;
	int fd;

	if (vfs_name_is_dot(name) || vfs_name_is_dotdot(name))
		return false;
	*rc = vfs_access_check(ctx, dir, X_OK);
	if (*rc != 0)
		return true;
	fd = open_in_memory(dir, name);
	*rc = fd;
	if (fd == -ENOENT)
		return true;
	n = fd >= 0 ? find_node(ctx, dir, fd, &shown) : NULL;
	if (fd >= 0)
		close(fd);
	if (!n)
		return false;
	if (attr && lookup_get_attr(ctx, n, &shown, attr) != 0) {
		vfs_node_put(n);
		return false;
	}
	*out = n;
	*rc = 0;
	return true;
}
