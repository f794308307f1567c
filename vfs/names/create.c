/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making regular files. A file is always made with O_EXCL, and one that exists is only looked at by
 * O_PATH: a FIFO or a device of that name is never opened.
 *
 * The times that mark the file of an EXCLUSIVE create are a hash of the client's verifier and the
 * caller's uid under a key of the server. GETATTR shows the times to everybody, but nobody can find
 * a verifier that leads to given times, so only the call that made the file matches it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/meta/dir_change.h"
#include "vfs/meta/setattr.h"
#include "vfs/names/entry_change.h"
#include "vfs/names/making.h"
#include "vfs/names/name.h"
#include "vfs/names/node_open.h"
#include "vfs/share.h"
#include "vfs/worker/worker_state.h"

#define RACES 8 /* a name that comes and goes under us is tried so often */

struct creating {
	struct vfs_node *dir;
	const struct vfs_name *name;
	enum vfs_create_how how;
	unsigned may;
	bool made;
	bool marked; /* it had its mark before its name */
	bool lost;   /* the file that was found lost its name before it was looked at */
	struct vfs_dir_change *change;
	const struct vfs_setattr *sa; /* the times mark the file of an EXCLUSIVE one */
};

/* The mark of an EXCLUSIVE create as two times. The top bits are cut so that every file system
 * holds them exactly. */
static void put_mark(const struct vfs_ctx *ctx, struct vfs_setattr *sa, const uint8_t verf[8])
{
	struct {
		uint8_t verf[8];
		uint64_t uid;
	} of = { .uid = ctx->cred.uid };
	uint64_t mark;

	memcpy(of.verf, verf, sizeof(of.verf));
	crypto_shorthash((uint8_t *)&mark, (const uint8_t *)&of, sizeof(of), ctx->vfs->create_key);
	sa->set_atime = sa->set_mtime = VFS_TIME_CLIENT;
	sa->atime = (struct timespec){ .tv_sec = mark >> 32 & INT32_MAX };
	sa->mtime = (struct timespec){ .tv_sec = mark & INT32_MAX };
}

/* Makes the file of an EXCLUSIVE create without a name, marks it and gives it the name: killed in between, the
 * server finds no file without its mark when the call comes again. A descriptor, or -errno. */
static int open_marked(struct vfs_ctx *ctx, const struct creating *c, uint32_t mode)
{
	const struct timespec mark[2] = { c->sa->atime, c->sa->mtime };
	int fd = vfs_fd_openat(ctx->vfs, c->dir->path_fd, ".", O_TMPFILE | O_RDWR, mode);
	int rc;

	if (fd < 0)
		return fd;
	rc = futimens(fd, mark) == 0 && linkat(AT_FDCWD, vfs_proc_path(fd).s, c->dir->path_fd,
					       c->name->s, AT_SYMLINK_FOLLOW) == 0
		     ? 0
		     : -errno;
	if (rc == 0)
		return fd;
	vfs_fd_close(ctx->vfs, fd);
	return rc;
}

/* On a file system that has no such files, or does not keep them, the mark comes after the name. For another
 * failure, such as a full disk, openat(2) tells whether the file is there. */
static int open_named(struct vfs_ctx *ctx, struct creating *c)
{
	const uint32_t mode = c->sa->set_mode ? c->sa->mode & VFS_MODE_BITS : VFS_MODE_FILE;
	const bool unnamed = c->how == VFS_EXCLUSIVE && c->dir->mnt->keeps_linked;
	int fd = unnamed ? open_marked(ctx, c, mode) : -EOPNOTSUPP;

	c->marked = fd >= 0;
	if (fd >= 0 || fd == -EEXIST)
		return fd;
	return vfs_fd_openat(ctx->vfs, c->dir->path_fd, c->name->s,
			     O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, mode);
}

static bool is_file_of(const struct vfs_node *n, int fd)
{
	struct statx sx;

	return statx(fd, "", AT_EMPTY_PATH, STATX_INO, &sx) == 0 && sx.stx_ino == n->ino &&
	       vfs_device_of(&sx) == n->dev;
}

/* The kernel knows a descriptor that was opened without a name by none, and so would whoever asks for the paths of
 * open files: such a file is opened by its name again. */
static int node_of_new(struct vfs_ctx *ctx, const struct creating *c, int fd, struct vfs_node **out)
{
	int path_fd = -1, rc = -ENOENT;

	if (c->marked)
		path_fd = vfs_fd_openat(ctx->vfs, c->dir->path_fd, c->name->s, O_PATH | O_NOFOLLOW,
					0);
	if (path_fd >= 0)
		rc = vfs_node_of_fd(ctx, path_fd, out, NULL);
	if (rc == 0 && is_file_of(*out, fd))
		return 0;
	if (rc == 0)
		vfs_node_put(*out);
	path_fd = vfs_fd_reopen(ctx->vfs, fd, O_PATH);
	return path_fd < 0 ? path_fd : vfs_node_of_made(ctx, path_fd, out);
}

/* *made: the file is there, even if the result is an error. */
static int open_new(struct vfs_ctx *ctx, struct creating *c, bool *made, struct vfs_node **out)
{
	struct vfs_dir_changing changing;
	int fd, rc;

	vfs_dir_change_begin(&changing, ctx, c->dir, c->name->s, c->change);
	fd = open_named(ctx, c);
	vfs_dir_change_end(&changing, fd >= 0);
	*made = fd >= 0;
	if (fd < 0)
		return fd;
	rc = node_of_new(ctx, c, fd, out);
	if (rc == 0)
		vfs_node_adopt_fd(*out, VFS_FD_WRITE, fd);
	else
		vfs_fd_close(ctx->vfs, fd);
	return rc;
}

/* The thread acts as the caller before. */
static int create_open_counted(struct vfs_ctx *ctx, struct creating *c, struct vfs_node **out)
{
	const struct vfs_entry_wish wish = { c->dir, c->name, VFS_ENTRY_NEW, VFS_NEWS_ADD };
	struct vfs_entry_change entry;
	bool made = false;
	int rc = vfs_entry_change_begin(ctx, &wish, &entry);

	if (rc != 0)
		return rc;
	vfs_entry_order(&entry, NULL);
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = open_new(ctx, c, &made, out);
	if (made)
		vfs_entry_tell_made(ctx, &entry, c->name);
	vfs_entry_change_end(&entry);
	return rc;
}

static int create_new(struct vfs_ctx *ctx, struct creating *c, struct vfs_attr *attr,
		      struct vfs_node **out)
{
	struct vfs_setattr sa = *c->sa;
	int rc = create_open_counted(ctx, c, out);

	if (rc != 0)
		return rc;
	c->made = true;
	if (c->marked && !sa.set_size)
		sa.set_atime = sa.set_mtime = VFS_TIME_KEEP;
	return vfs_made(ctx, *out, &sa, attr);
}

/* Was it this very call, sent before, that made the file? Its maker may do with it what he asked
 * for; if it belongs to somebody else by now, the kernel decides as on any file. */
static int check_repeated(struct vfs_ctx *ctx, const struct creating *c, struct vfs_node *n,
			  const struct vfs_attr *attr)
{
	if (attr->size != 0 || attr->atime.tv_sec != c->sa->atime.tv_sec ||
	    attr->mtime.tv_sec != c->sa->mtime.tv_sec)
		return -EEXIST;
	return attr->uid == ctx->cred.uid ? 0 : vfs_open_check_found(ctx, n, c->may);
}

static int use_existing(struct vfs_ctx *ctx, const struct creating *c, struct vfs_attr *out_attr,
			struct vfs_node **out)
{
	struct vfs_attr attr;
	int rc;

	if (c->how == VFS_GUARDED)
		return -EEXIST;
	rc = vfs_node_of_name(ctx, c->dir, c->name, out, &attr);
	if (rc != 0)
		return rc;
	if ((*out)->type != S_IFREG)
		rc = -EEXIST;
	else if (c->how == VFS_EXCLUSIVE)
		rc = check_repeated(ctx, c, *out, &attr);
	else if (c->sa->set_size)
		rc = vfs_share_check_io(ctx, *out, NULL, VFS_SHARE_WRITE, NULL);
	if (rc == 0 && c->how == VFS_UNCHECKED && c->sa->set_size)
		rc = vfs_set_size(ctx, *out, c->sa->size);
	if (rc == 0)
		return vfs_created(ctx, *out, out_attr);
	vfs_node_put(*out);
	return rc;
}

static int create_once(struct vfs_ctx *ctx, struct creating *c, struct vfs_attr *attr,
		       struct vfs_node **out)
{
	int rc = vfs_act_as_caller(ctx);

	c->made = c->lost = false;
	if (rc == 0)
		rc = create_new(ctx, c, attr, out);
	if (rc != -EEXIST)
		return rc;
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = use_existing(ctx, c, attr, out);
	c->lost = rc == -ENOENT || rc == -ESTALE;
	return rc;
}

/* A file that was in the way and has lost its name before it was looked at is as if it was not there. */
static int create_file(struct vfs_ctx *ctx, struct creating *c, struct vfs_attr *attr,
		       struct vfs_node **out)
{
	int rc = create_once(ctx, c, attr, out);

	for (unsigned i = 1; i < RACES && c->lost; i++)
		rc = create_once(ctx, c, attr, out);
	return vfs_dir_error(c->dir, rc);
}

int vfs_create(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	       struct vfs_create *how, struct vfs_node **out)
{
	struct vfs_name nm;
	struct vfs_setattr attrs = vfs_create_attrs(dir, how->sa);
	struct creating c = {
		.dir = dir,
		.name = &nm,
		.how = how->how,
		.may = how->may,
		.change = how->change,
		.sa = &attrs,
	};
	int rc = vfs_create_check(ctx, dir, how->sa);

	how->made = false;
	if (how->change)
		how->change->known = false;
	if (how->how == VFS_EXCLUSIVE)
		put_mark(ctx, &attrs, how->verf);
	if (rc == 0)
		rc = vfs_name_from(&nm, name, len);
	if (rc == 0 && (vfs_name_is_dot(&nm) || vfs_name_is_dotdot(&nm)))
		rc = -EEXIST;
	if (rc == 0)
		rc = create_file(ctx, &c, how->attr, out);
	how->made = c.made;
	return rc;
}
