/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, looking them up, on a thread that must not wait too, and peeking at what a name leads to. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/fs/handle_cache.h"
#include "vfs/meta/attr.h"
#include "vfs/mount_table.h"
#include "vfs/names/node_open.h"
#include "vfs/node/cache.h"
#include "vfs/node/node.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

int vfs_name_from(struct vfs_name *out, const char *name, uint32_t len)
{
	if (len > VFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (len == 0 || memchr(name, '\0', len) || memchr(name, '/', len))
		return -EINVAL;
	memcpy(out->s, name, len);
	out->s[len] = '\0';
	return 0;
}

bool vfs_name_is_dot(const struct vfs_name *name)
{
	return strcmp(name->s, ".") == 0;
}

bool vfs_name_is_dotdot(const struct vfs_name *name)
{
	return strcmp(name->s, "..") == 0;
}

/* An O_PATH descriptor of what the name is, if no disk has to be asked; it is not a mount point.
 * Not counted in the budget: the caller closes it before the call ends, or counts it. */
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

/*
 * Handle and attributes of a name without opening it: what a listing needs of each entry, without a
 * descriptor. statx shows the attributes and which inode they are of. The inode's handle comes from
 * the cache, or from a second system call.
 */

#define SECOND INT64_C(1000000000)

/* The key of an inode whose handle follows from it. A file of another subvolume than the
 * directory's has none, since its number does not show the subvolume. */
static bool peek_inode_key(const struct vfs_node *dir, const struct statx *sx,
			   struct vfs_inode_key *key)
{
	const struct vfs_mount *mnt = dir->mnt;
	const int64_t seconds = sx->stx_ctime.tv_sec;
	uint64_t ino, volume = 0;

	if (!mnt->fs.handles_by_inode || vfs_device_of(sx) != dir->dev)
		return false;
	if (mnt->subvolume != 0 &&
	    (!vfs_fh_subvolume(&dir->fh, &ino, &volume) || volume > UINT32_MAX))
		return false;
	if (seconds < 0 || seconds >= INT64_MAX / SECOND)
		return false;
	*key = (struct vfs_inode_key){ .ino = sx->stx_ino,
				       .ctime = seconds * SECOND + sx->stx_ctime.tv_nsec,
				       .mount = mnt->serial,
				       .volume = (uint32_t)volume };
	return true;
}

/* True if the handle is certainly that of the inode that the key is of. */
static bool is_of_key(const struct vfs_handle *h, const struct vfs_inode_key *key)
{
	struct vfs_inode_handle parts;

	return vfs_handle_split(h, &parts) && parts.ino == key->ino && parts.volume == key->volume;
}

/* The handle of the inode that statx has shown of a name of dir: from the cache of handles, else by
 * a system call for the name below fd. -RN_ECHANGED: it cannot be told, or a mount lies over the name. */
static int vfs_shown_handle(const struct vfs_node *dir, int fd, const char *name,
			    const struct vfs_shown *shown, struct vfs_handle *h)
{
	struct vfs_handle_cache *cache = dir->vfs->handles;
	struct vfs_inode_key key;
	const bool keyed = cache && peek_inode_key(dir, &shown->sx, &key);
	uint64_t mnt_id;

	if (shown->sx.stx_mnt_id != dir->mnt->mnt_id)
		return -RN_ECHANGED;
	if (keyed && vfs_handle_cache_find(cache, &key, h))
		return 0;
	if (vfs_handle_of(fd, name, h, &mnt_id) != 0 || mnt_id != dir->mnt->mnt_id)
		return -RN_ECHANGED;
	if (!keyed)
		return vfs_handle_shows_inode(h, shown->sx.stx_ino) ? 0 : -RN_ECHANGED;
	if (!is_of_key(h, &key))
		return -RN_ECHANGED;
	vfs_handle_cache_add(cache, &key, h, shown->clock);
	return 0;
}

/* A node that was not cached, which takes the descriptor. NULL: to make room for it a descriptor must be closed, which may wait for a
 * disk, or the name has gone; the descriptor is closed. */
static struct vfs_node *add_shown(struct vfs_ctx *ctx, const struct vfs_node *dir, int fd,
				  const struct statx *sx, const struct vfs_fh *fh)
{
	struct vfs_node *n = NULL;

	if (sx->stx_nlink == 0 || !vfs_fd_count_opened(ctx->vfs))
		close(fd);
	else if (vfs_cache_add(ctx->vfs,
			       &(struct vfs_node_parts){ .exp = ctx->exp,
							 .mnt = dir->mnt,
							 .fh = fh,
							 .type = sx->stx_mode & S_IFMT,
							 .dev = vfs_device_of(sx),
							 .ino = sx->stx_ino,
							 .path_fd = fd },
			       &n) != 0)
		n = NULL;
	return n;
}

/* The node of what an O_PATH descriptor shows, in the directory's own mount, or NULL. Takes the descriptor. */
static struct vfs_node *node_shown(struct vfs_ctx *ctx, const struct vfs_node *dir, int fd,
				   struct vfs_shown *shown)
{
	struct vfs_node *n = NULL;
	struct vfs_handle h;
	struct vfs_fh fh;
	bool known =
		lookup_stat_fd(fd, shown) == 0 && vfs_shown_handle(dir, fd, "", shown, &h) == 0;

	if (known) {
		h.export_id = ctx->exp->id;
		h.submount_id = dir->mnt->id;
		known = vfs_handle_encode(&h, vfs_mount_mac(ctx->vfs, dir->mnt), &fh) == 0;
	}
	if (known)
		n = vfs_cache_find(ctx->vfs, dir->mnt, &fh);
	if (known && !n)
		return add_shown(ctx, dir, fd, &shown->sx, &fh);
	close(fd);
	return n;
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

/* Like vfs_lookup_below(), for a name that the kernel has in memory. True: *rc is the result. False: it is another name. */
static bool vfs_lookup_in_memory(struct vfs_ctx *ctx, struct vfs_node *dir,
				 const struct vfs_name *name, struct vfs_node **out,
				 struct vfs_attr *attr, int *rc)
{
	struct vfs_shown shown;
	struct vfs_node *n;
	int fd;

	if (vfs_name_is_dot(name) || vfs_name_is_dotdot(name))
		return false;
	*rc = vfs_search_check(ctx, dir);
	if (*rc != 0)
		return true;
	fd = open_in_memory(dir, name);
	*rc = fd;
	if (fd == -ENOENT)
		return true;
	n = fd >= 0 ? node_shown(ctx, dir, fd, &shown) : NULL;
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

/* "." anywhere, and ".." at the root. */
static int lookup_self(struct vfs_ctx *ctx, struct vfs_node *dir, struct vfs_node **out,
		       struct vfs_attr *attr)
{
	int rc = vfs_access_check(ctx, dir, X_OK);

	if (rc == 0 && attr)
		rc = vfs_getattr(ctx, dir, attr);
	if (rc != 0)
		return rc;
	vfs_node_ref(dir);
	*out = dir;
	return 0;
}

/* A directory that was moved out of the export since it was checked has a parent outside. A private
 * clone of the tree does not let that parent be reached. */
static int lookup_check_parent(struct vfs_ctx *ctx, struct vfs_node *parent)
{
	int rc = ctx->exp->detached ? 0 : vfs_act_as_root(ctx);

	if (rc == 0 && !ctx->exp->detached)
		rc = vfs_export_contains(ctx->exp, parent->path_fd);
	return rc;
}

int vfs_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	       struct vfs_node **out, struct vfs_attr *attr)
{
	int rc = vfs_lookup_below(ctx, dir, name, len, out, attr);

	return rc == -ENOENT ? vfs_dir_error(dir, rc) : rc;
}

int vfs_lookup_below(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
		     struct vfs_node **out, struct vfs_attr *attr)
{
	struct vfs_name nm;
	bool dotdot;
	int rc = vfs_name_from(&nm, name, len);

	if (rc != 0)
		return rc;
	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	if (!vfs_name_is_dots(nm.s) && vfs_node_is_covered(ctx, dir))
		return -EACCES;
	if (vfs_worker_on_event_thread(vfs_worker_of(ctx)) &&
	    vfs_lookup_in_memory(ctx, dir, &nm, out, attr, &rc))
		return rc;
	rn_fiber_move(ctx->fiber);
	rc = vfs_act_as_caller(ctx);
	if (rc != 0)
		return rc;
	dotdot = vfs_name_is_dotdot(&nm);
	if (vfs_name_is_dot(&nm) || (dotdot && vfs_node_is_root(dir)))
		return lookup_self(ctx, dir, out, attr);
	rc = vfs_node_of_name(ctx, dir, &nm, out, attr);
	if (rc != 0)
		return rc;
	rc = dotdot ? lookup_check_parent(ctx, *out) : 0;
	if (rc != 0)
		vfs_node_put(*out);
	return rc;
}

/* Handle and attributes, from what statx has shown of the name. */
static int use_shown(struct vfs_ctx *ctx, const struct vfs_node *dir, const char *name,
		     const struct vfs_shown *shown, struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_handle h;
	int rc = vfs_shown_handle(dir, dir->path_fd, name, shown, &h);

	if (rc != 0)
		return rc;
	h.export_id = ctx->exp->id;
	h.submount_id = dir->mnt->id;
	rc = vfs_handle_encode(&h, vfs_mount_mac(ctx->vfs, dir->mnt), fh);
	if (rc == 0)
		vfs_attr_from_statx(dir->mnt, fh, &shown->sx, shown->clock, attr);
	return rc;
}

/*
 * The name may have changed hands between the two calls, and so may a mount have come over it; then
 * the slow way decides, as it does for file systems whose handles do not show the inode.
 */
static int peek_name(struct vfs_ctx *ctx, const struct vfs_node *dir, const char *name,
		     struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_shown shown = { .clock = (int64_t)rn_wall_coarse_ns() };

	if (vfs_statx_name(dir->path_fd, name, &shown.sx) != 0)
		return -RN_ECHANGED;
	return use_shown(ctx, dir, name, &shown, fh, attr);
}

static int peek_by_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
			  struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_node *n;
	int rc = vfs_lookup(ctx, dir, name, len, &n, attr);

	if (rc != 0)
		return rc;
	*fh = *vfs_node_fh(n);
	vfs_node_put(n);
	return 0;
}

int vfs_peek(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	     struct vfs_fh *fh, struct vfs_attr *attr)
{
	struct vfs_name nm;
	int rc = vfs_name_from(&nm, name, len);

	if (rc == 0 && !vfs_name_is_dots(nm.s)) {
		rc = vfs_act_as_caller(ctx);
		if (rc == 0)
			rc = peek_name(ctx, dir, nm.s, fh, attr);
		if (rc != -RN_ECHANGED)
			return rc;
	}
	return peek_by_lookup(ctx, dir, name, len, fh, attr);
}

int vfs_peek_entry(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_dirent *de,
		   struct vfs_fh *fh, struct vfs_attr *attr)
{
	int rc = -RN_ECHANGED;

	if (!vfs_name_is_dots(de->name)) {
		rc = vfs_act_as_caller(ctx);
		if (rc == 0)
			rc = de->shown ? use_shown(ctx, dir, de->name, de->shown, fh, attr)
				       : peek_name(ctx, dir, de->name, fh, attr);
	}
	return rc == -RN_ECHANGED ? peek_by_lookup(ctx, dir, de->name, de->len, fh, attr) : rc;
}
