/* SPDX-License-Identifier: BSD-2-Clause */
/* Making directories, symbolic links and special files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/fs/file_system.h"
#include "vfs/meta/dir_change.h"
#include "vfs/meta/setattr.h"
#include "vfs/names/entry_change.h"
#include "vfs/names/making.h"
#include "vfs/names/name.h"
#include "vfs/names/node_open.h"
#include "vfs/worker/worker_state.h"

struct making {
	struct vfs_node *dir;
	const struct vfs_setattr *sa;
	uint32_t type;
	uint32_t mode;
	dev_t dev;
	const char *target;
	struct vfs_dir_change *change;
};

static int create_other_make(const struct making *m, const char *name)
{
	int dirfd = m->dir->path_fd;
	int rc;

	if (m->type == S_IFDIR)
		rc = mkdirat(dirfd, name, m->mode);
	else if (m->type == S_IFLNK)
		rc = symlinkat(m->target, dirfd, name);
	else
		rc = mknodat(dirfd, name, m->type | m->mode, m->dev);
	return rc == 0 ? 0 : -errno;
}

/*
 * True if an object that the name leads to is the one that was made at or after `since` (nanoseconds). Between two system calls the
 * name may have become anybody's: of this machine's own file systems nobody but the caller makes objects that are his, and nobody sets
 * a time of birth. Other file systems may show other owners and clocks than this machine's.
 */
static bool is_made(const struct vfs_ctx *ctx, const struct making *m, const struct statx *sx,
		    int64_t since)
{
	const int64_t born = sx->stx_btime.tv_sec * INT64_C(1000000000) + sx->stx_btime.tv_nsec;

	if ((sx->stx_mode & S_IFMT) != m->type || sx->stx_nlink > (m->type == S_IFDIR ? 2 : 1))
		return false;
	if (m->type == S_IFLNK && sx->stx_size != strlen(m->target))
		return false;
	if (!vfs_export_is_local(ctx->exp))
		return true;
	return sx->stx_uid == ctx->cred.uid && (!(sx->stx_mask & STATX_BTIME) || born >= since);
}

/* The node of what was made; NULL: the name is gone, or another object's by now. */
static int find_made(struct vfs_ctx *ctx, const struct making *m, const struct vfs_name *name,
		     int64_t since, struct vfs_node **out)
{
	struct statx sx;
	int fd, rc;

	fd = vfs_fd_openat(ctx->vfs, m->dir->path_fd, name->s, O_PATH | O_NOFOLLOW, 0);
	*out = NULL;
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	rc = statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &sx) == 0 ? 0 : -errno;
	if (rc == 0 && is_made(ctx, m, &sx, since))
		return vfs_node_of_made(ctx, fd, out);
	vfs_fd_close(ctx->vfs, fd);
	return rc;
}

static int make_in(struct vfs_ctx *ctx, const struct making *m, const char *name)
{
	struct vfs_dir_changing changing;
	int rc;

	vfs_dir_change_begin(&changing, ctx, m->dir, name, m->change);
	rc = create_other_make(m, name);
	vfs_dir_change_end(&changing, rc == 0);
	return vfs_dir_error(m->dir, rc);
}

static int make_counted(struct vfs_ctx *ctx, const struct making *m, const struct vfs_name *name,
			struct vfs_node **out)
{
	const struct vfs_entry_wish wish = { m->dir, name, VFS_ENTRY_NEW, VFS_NEWS_ADD };
	const int64_t since = (int64_t)rn_wall_coarse_ns();
	struct vfs_entry_change entry;
	bool made = false;
	int rc = vfs_act_as_caller(ctx);

	if (rc == 0)
		rc = vfs_entry_change_begin(ctx, &wish, &entry);
	if (rc != 0)
		return rc;
	vfs_entry_order(&entry, NULL);
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = make_in(ctx, m, name->s);
	made = rc == 0;
	if (made)
		rc = find_made(ctx, m, name, since, out);
	if (made)
		vfs_entry_tell_made(ctx, &entry, name);
	vfs_entry_change_end(&entry);
	return rc;
}

/* Makes the object, sets what is asked for on it and fetches its attributes. */
static int make_node(struct vfs_ctx *ctx, const struct making *m, const struct vfs_name *name,
		     struct vfs_attr *attr, struct vfs_node **out)
{
	int rc = make_counted(ctx, m, name, out);

	return rc == 0 && *out ? vfs_made(ctx, *out, m->sa, attr) : rc;
}

static uint32_t mode_of(const struct vfs_setattr *sa, uint32_t otherwise)
{
	return sa->set_mode ? sa->mode & VFS_MODE_BITS : otherwise;
}

int vfs_mkdir(struct vfs_ctx *ctx, const struct vfs_make *m, struct vfs_node **out)
{
	const struct vfs_setattr attrs = vfs_create_attrs(m->dir, m->sa);
	const struct making making = { .dir = m->dir,
				       .sa = &attrs,
				       .type = S_IFDIR,
				       .mode = mode_of(&attrs, VFS_MODE_DIR),
				       .change = m->change };
	struct vfs_name nm;
	int rc = vfs_create_check(ctx, m->dir, m->sa);

	if (rc == 0)
		rc = vfs_name_from(&nm, m->name, m->len);
	if (rc == 0)
		rc = make_node(ctx, &making, &nm, m->attr, out);
	return rc;
}

int vfs_symlink(struct vfs_ctx *ctx, const struct vfs_make *m, const char *target,
		struct vfs_node **out)
{
	const struct making making = {
		.dir = m->dir, .sa = m->sa, .type = S_IFLNK, .target = target, .change = m->change
	};
	struct vfs_name nm;
	int rc = vfs_create_check(ctx, m->dir, m->sa);

	if (rc == 0 && *target == '\0')
		rc = -EINVAL;
	if (rc == 0)
		rc = vfs_name_from(&nm, m->name, m->len);
	if (rc == 0)
		rc = make_node(ctx, &making, &nm, m->attr, out);
	return rc;
}

int vfs_mknod(struct vfs_ctx *ctx, const struct vfs_make *m, const struct vfs_mknod *what,
	      struct vfs_node **out)
{
	const struct vfs_setattr attrs = vfs_create_attrs(m->dir, m->sa);
	struct making making = { .dir = m->dir,
				 .sa = &attrs,
				 .type = what->type,
				 .mode = mode_of(&attrs, VFS_MODE_FILE),
				 .change = m->change };
	struct vfs_name nm;
	int rc = vfs_create_check(ctx, m->dir, m->sa);

	if (what->type != S_IFIFO && what->type != S_IFSOCK && what->type != S_IFCHR &&
	    what->type != S_IFBLK)
		return -EINVAL;
	if (what->type == S_IFCHR || what->type == S_IFBLK)
		making.dev = makedev(what->major, what->minor);
	if (rc == 0)
		rc = vfs_name_from(&nm, m->name, m->len);
	if (rc == 0)
		rc = make_node(ctx, &making, &nm, m->attr, out);
	return rc;
}
