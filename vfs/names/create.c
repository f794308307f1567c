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
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/file_system.h"
#include "vfs/meta/attr.h"
#include "vfs/meta/dir_change.h"
#include "vfs/names/entry_change.h"
#include "vfs/names/node_open.h"
#include "vfs/node/node.h"
#include "vfs/share.h"
#include "vfs/worker/worker_state.h"
#include "vfs/xattr.h"

int vfs_dir_check(struct vfs_ctx *ctx, const struct vfs_node *dir)
{
	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	return vfs_check_writable(ctx, dir);
}

/* Checks that something can be made in dir, and the attributes
 * (NULL: none). */
static int vfs_create_check(struct vfs_ctx *ctx, const struct vfs_node *dir,
			    const struct vfs_setattr *sa)
{
	int rc = vfs_dir_check(ctx, dir);

	return rc == 0 && sa ? vfs_setattr_check(sa) : rc;
}

static bool has_default_acl(const struct vfs_node *dir)
{
	return getxattr(vfs_proc_path(dir->path_fd).s, "system.posix_acl_default", NULL, 0) > 0;
}

/* sa (NULL: none) for something that is made in dir: its umask is taken from its mode, or passed
 * over if a default ACL says who may do what (RFC 8275 section 5). With an access ACL to be set it is
 * made without permissions. */
static struct vfs_setattr vfs_create_attrs(const struct vfs_node *dir, const struct vfs_setattr *sa)
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

/* A call that made or found an object has succeeded, even if another has removed it since. */
static int last_attr(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *out)
{
	int rc = vfs_getattr(ctx, n, out);
	int64_t clock = vfs_change_clock(vfs_changes_of(n->mnt, n->type));
	struct statx sx;

	if (rc != -ESTALE)
		return rc;
	if (statx(n->path_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &sx) != 0)
		return -errno;
	vfs_attr_from_statx(n->mnt, &n->fh, &sx, clock, out);
	return 0;
}

/* The end of each: fetches the attributes if attr is not NULL, even if the object has lost its name meanwhile; puts the
 * node on failure. */
static int vfs_created(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *attr)
{
	int rc = attr ? last_attr(ctx, n, attr) : 0;

	if (rc != 0)
		vfs_node_put(n);
	return rc;
}

/* Like vfs_created(), for a new object whose attributes are in attr, with those of sa that it was not made with set before. */
static int vfs_made(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa,
		    struct vfs_attr *attr)
{
	const bool as_made = !vfs_set_after_making(sa) && !(sa->set_size && sa->size > 0);
	int rc = vfs_setattr_created(ctx, n, sa);

	if (rc == 0 || rc == -ESTALE)
		return vfs_created(ctx, n, as_made ? NULL : attr);
	vfs_node_put(n);
	return rc;
}

#define RACES 8 /* a name that comes and goes under us is tried so often */

struct creating {
	struct vfs_node *dir;
	const struct vfs_name *name;
	enum vfs_create_how how;
	unsigned may;
	bool made;
	bool marked; /* the file had its mark before its name */
	bool lost;   /* the file that was found lost its name before it was looked at */
	struct vfs_dir_change *change;
	struct vfs_attr *attr;	      /* gets the file's; or NULL */
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
	const bool unnamed = c->how == VFS_EXCLUSIVE && c->dir->mnt->fs.keeps_linked;
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
		rc = vfs_node_of_fd(ctx, path_fd, out, c->attr);
	if (rc == 0 && is_file_of(*out, fd))
		return 0;
	if (rc == 0)
		vfs_node_put(*out);
	path_fd = vfs_fd_reopen(ctx->vfs, fd, O_PATH);
	return path_fd < 0 ? path_fd : vfs_node_of_made(ctx, path_fd, out, c->attr);
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
	const struct vfs_entry_wish wish = { c->dir, c->name, VFS_ENTRY_NEW, VFS_NOTIFY_ADD };
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

static int create_new(struct vfs_ctx *ctx, struct creating *c, struct vfs_node **out)
{
	struct vfs_setattr sa = *c->sa;
	int rc = create_open_counted(ctx, c, out);

	if (rc != 0)
		return rc;
	c->made = true;
	if (c->marked && !sa.set_size)
		sa.set_atime = sa.set_mtime = VFS_TIME_KEEP;
	return vfs_made(ctx, *out, &sa, c->attr);
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

static int use_existing(struct vfs_ctx *ctx, const struct creating *c, struct vfs_node **out)
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
		return vfs_created(ctx, *out, c->attr);
	vfs_node_put(*out);
	return rc;
}

static int create_once(struct vfs_ctx *ctx, struct creating *c, struct vfs_node **out)
{
	int rc = vfs_act_as_caller(ctx);

	c->made = c->lost = false;
	if (rc == 0)
		rc = create_new(ctx, c, out);
	if (rc != -EEXIST)
		return rc;
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = use_existing(ctx, c, out);
	c->lost = rc == -ENOENT || rc == -ESTALE;
	return rc;
}

/* A file that was in the way and has lost its name before it was looked at is as if it was not there. */
static int create_file(struct vfs_ctx *ctx, struct creating *c, struct vfs_node **out)
{
	int rc = create_once(ctx, c, out);

	for (unsigned i = 1; i < RACES && c->lost; i++)
		rc = create_once(ctx, c, out);
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
		.attr = how->attr,
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
		rc = create_file(ctx, &c, out);
	how->made = c.made;
	return rc;
}

/* Making directories, symbolic links and special files. */

struct making {
	struct vfs_node *dir;
	const struct vfs_setattr *sa;
	uint32_t type;
	uint32_t mode;
	dev_t dev;
	const char *target;
	struct vfs_dir_change *change;
	struct vfs_attr *attr; /* gets the object's; or NULL */
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
		return vfs_node_of_made(ctx, fd, out, m->attr);
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
	const struct vfs_entry_wish wish = { m->dir, name, VFS_ENTRY_NEW, VFS_NOTIFY_ADD };
	struct vfs_entry_change entry;
	int64_t since;
	bool made = false;
	int rc = vfs_act_as_caller(ctx);

	if (rc == 0)
		rc = vfs_entry_change_begin(ctx, &wish, &entry);
	if (rc != 0)
		return rc;
	vfs_entry_order(&entry, NULL);
	rc = vfs_act_as_caller(ctx);
	since = (int64_t)rn_wall_coarse_ns();
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
		     struct vfs_node **out)
{
	int rc = make_counted(ctx, m, name, out);

	return rc == 0 && *out ? vfs_made(ctx, *out, m->sa, m->attr) : rc;
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
				       .change = m->change,
				       .attr = m->attr };
	struct vfs_name nm;
	int rc = vfs_create_check(ctx, m->dir, m->sa);

	if (rc == 0)
		rc = vfs_name_from(&nm, m->name, m->len);
	if (rc == 0)
		rc = make_node(ctx, &making, &nm, out);
	return rc;
}

int vfs_symlink(struct vfs_ctx *ctx, const struct vfs_make *m, const char *target,
		struct vfs_node **out)
{
	const struct making making = {
		.dir = m->dir,
		.sa = m->sa,
		.type = S_IFLNK,
		.target = target,
		.change = m->change,
		.attr = m->attr,
	};
	struct vfs_name nm;
	int rc = vfs_create_check(ctx, m->dir, m->sa);

	if (rc == 0 && *target == '\0')
		rc = -EINVAL;
	if (rc == 0)
		rc = vfs_name_from(&nm, m->name, m->len);
	if (rc == 0)
		rc = make_node(ctx, &making, &nm, out);
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
				 .change = m->change,
				 .attr = m->attr };
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
		rc = make_node(ctx, &making, &nm, out);
	return rc;
}
