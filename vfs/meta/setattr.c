/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order is that of the kernel's server: size, owner, mode, ACLs, times. Before them comes the
 * label, which the file system or a policy may refuse while nothing is lost yet. A change of owner
 * clears the set-id bits, so the mode comes after it; ACLs have the last word on permissions (RFC
 * 8881 section 6.4.1.3); each of the earlier ones sets the times, so those come last. What the
 * caller may not do is found out before anything is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/fs/file_system.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/attr.h"
#include "vfs/meta/dir_change.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"
#include "vfs/xattr.h"

/* If two changes are made at the same time, the second to come here sees both. */
static void dir_notify_tell_attrs(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f)
{
	struct vfs_dir_notification notification = { .what = VFS_NOTIFY_ATTRS,
						     .client = ctx->client };
	struct vfs_attr attr;

	vfs_notify_begin(f, NULL);
	if (vfs_getattr(ctx, n, &attr) == 0)
		notification.dir = &attr;
	vfs_notify_tell(f, &notification);
	vfs_notify_end(f, NULL);
}

void vfs_dir_tell_attrs(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct vfs_file *f = NULL;

	if (n->type == S_IFDIR && vfs_deleg_any(ctx->vfs))
		f = vfs_file_find(n);
	if (vfs_notify_asked(f) & VFS_NOTIFY_ATTRS)
		dir_notify_tell_attrs(ctx, n, f);
	vfs_file_put(f);
}

#define NO_ID ((uint32_t)-1)

static bool bad_time(enum vfs_set_time how, const struct timespec *t)
{
	/* Also keeps UTIME_NOW and UTIME_OMIT out, which utimensat takes in tv_nsec. */
	return how == VFS_TIME_CLIENT && (t->tv_nsec < 0 || t->tv_nsec >= 1000000000);
}

int vfs_setattr_check(const struct vfs_setattr *sa)
{
	if (sa->set_size && sa->size > INT64_MAX)
		return -EFBIG;
	if ((sa->set_uid && sa->uid == NO_ID) || (sa->set_gid && sa->gid == NO_ID) ||
	    bad_time(sa->set_atime, &sa->atime) || bad_time(sa->set_mtime, &sa->mtime))
		return -EINVAL;
	return 0;
}

static bool sets_times(const struct vfs_setattr *sa)
{
	return sa->set_atime != VFS_TIME_KEEP || sa->set_mtime != VFS_TIME_KEEP;
}

/* To "now": whoever may write may do it, of one time alone, too, as with the kernel's server. Times
 * of the client's are the owner's to set. */
static bool only_touches(const struct vfs_setattr *sa)
{
	return sa->set_atime != VFS_TIME_CLIENT && sa->set_mtime != VFS_TIME_CLIENT;
}

static int check_touch(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa)
{
	if (!only_touches(sa))
		return -EPERM;
	/* An open to write was checked for that. */
	return sa->set_size && sa->opened ? 0 : vfs_access_check(ctx, n, W_OK);
}

/* The kernel's own rules, asked beforehand. */
static int check_owner_rules(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa,
			     const struct statx *sx)
{
	const struct vfs_cred *cred = &ctx->cred;
	bool owner = cred->uid == sx->stx_uid;

	if (cred->uid == 0)
		return 0;
	if (sa->set_uid && !(owner && sa->uid == sx->stx_uid))
		return -EPERM;
	if (sa->set_gid &&
	    !(owner && (sa->gid == sx->stx_gid || vfs_cred_has_group(cred, sa->gid))))
		return -EPERM;
	if ((sa->set_mode || sa->acls || sa->label.len > 0) && !owner)
		return -EPERM;
	if (!sets_times(sa) || owner)
		return 0;
	return check_touch(ctx, n, sa);
}

/* Permission was checked. */
static int truncate_node(struct vfs_ctx *ctx, struct vfs_node *n, uint64_t size)
{
	int fd = vfs_node_fd(ctx, n, VFS_FD_WRITE);
	int rc;

	if (fd < 0)
		return fd;
	rc = vfs_act_as_caller(ctx); /* under which the kernel clears set-id bits */
	if (rc != 0)
		return rc;
	if (ftruncate(fd, (off_t)size) != 0)
		return -errno;
	vfs_node_changed(n);
	return 0;
}

int vfs_set_size(struct vfs_ctx *ctx, struct vfs_node *n, uint64_t size)
{
	struct vfs_file_change change;
	int rc = vfs_may_write(ctx, n);

	if (rc == 0)
		rc = vfs_file_change_begin(ctx, n, &change);
	if (rc != 0)
		return rc;
	rc = truncate_node(ctx, n, size);
	vfs_file_change_end(&change);
	return rc;
}

static int set_owner(struct vfs_node *n, const struct vfs_setattr *sa)
{
	if (!sa->set_uid && !sa->set_gid)
		return 0;
	return fchownat(n->path_fd, "", sa->set_uid ? sa->uid : NO_ID,
			sa->set_gid ? sa->gid : NO_ID, AT_EMPTY_PATH) == 0
		       ? 0
		       : -errno;
}

static int set_mode(struct vfs_node *n, const struct vfs_setattr *sa)
{
	/* A symbolic link's mode means nothing: clients that send one are not told off. */
	if (!sa->set_mode || n->type == S_IFLNK)
		return 0;
	return chmod(vfs_proc_path(n->path_fd).s, sa->mode & VFS_MODE_BITS) == 0 ? 0 : -errno;
}

static struct timespec time_to_set(enum vfs_set_time how, const struct timespec *t)
{
	if (how == VFS_TIME_CLIENT)
		return *t;
	return (struct timespec){ .tv_nsec = how == VFS_TIME_SERVER ? UTIME_NOW : UTIME_OMIT };
}

/* The thread acts as the caller before. The kernel lets others than the owner set both times to
 * "now", but not one alone: root does that for whom check_touch allows it. */
static int set_times(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa)
{
	struct timespec ts[2] = {
		time_to_set(sa->set_atime, &sa->atime),
		time_to_set(sa->set_mtime, &sa->mtime),
	};
	int rc;

	/* A new size has set the other one. */
	if (!sets_times(sa) ||
	    (sa->set_size && sa->set_atime == VFS_TIME_KEEP && sa->set_mtime == VFS_TIME_SERVER))
		return 0;
	if (utimensat(n->path_fd, "", ts, AT_EMPTY_PATH) == 0)
		return 0;
	rc = -errno;
	if ((rc != -EPERM && rc != -EACCES) || check_touch(ctx, n, sa) != 0)
		return rc;
	rc = vfs_act_as_root(ctx);
	if (rc == 0 && utimensat(n->path_fd, "", ts, AT_EMPTY_PATH) != 0)
		rc = -errno;
	return rc;
}

static int apply_all(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa)
{
	int rc = sa->label.len > 0 ? vfs_label_set(ctx, n, &sa->label) : 0;

	if (rc == 0 && sa->set_size)
		rc = truncate_node(ctx, n, sa->size);
	if (rc == 0)
		rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = set_owner(n, sa);
	if (rc == 0)
		rc = set_mode(n, sa);
	if (rc == 0 && sa->acls)
		rc = vfs_acl_set(n, sa->acls);
	if (rc == 0)
		rc = set_times(ctx, n, sa);
	return rc;
}

static int setattr_apply(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa)
{
	struct vfs_dir_changing changing;
	int rc;

	if (n->type != S_IFDIR) {
		rc = apply_all(ctx, n, sa);
		vfs_node_changed(n);
		return rc;
	}
	vfs_dir_change_begin(&changing, ctx, n, NULL, NULL);
	rc = apply_all(ctx, n, sa);
	vfs_dir_change_end(&changing, true); /* at least in part, perhaps */
	return rc;
}

/* True if the change may be told afterwards to those who have a directory's delegation. Who may use the
 * directory must not change while they keep what is in it. */
static bool may_notify(const struct vfs_node *n, const struct vfs_setattr *sa)
{
	return n->type == S_IFDIR && !sa->set_mode && !sa->set_uid && !sa->set_gid && !sa->acls &&
	       sa->label.len == 0;
}

static bool other_time(const struct statx_timestamp *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec || (long)a->tv_nsec != b->tv_nsec;
}

/* Compares and sets: from the second look on nobody else changes the file through us. */
static int begin_guarded(struct vfs_ctx *ctx, struct vfs_node *n, const struct timespec *ctime,
			 struct vfs_file_change *change)
{
	struct statx sx;
	int rc = vfs_file_change_begin_alone(ctx, n, change);

	if (rc != 0)
		return rc;
	rc = vfs_node_stat(n, &sx);
	if (rc == 0 && other_time(&sx.stx_ctime, ctime))
		rc = -EDOM;
	if (rc != 0)
		vfs_file_change_end(change);
	return rc;
}

static int setattr_begin(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa,
			 const struct timespec *check_ctime, struct vfs_file_change *change)
{
	if (check_ctime)
		return begin_guarded(ctx, n, check_ctime, change);
	return may_notify(n, sa) ? vfs_dir_attrs_begin(ctx, n, change)
				 : vfs_file_change_begin(ctx, n, change);
}

int vfs_setattr(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa,
		const struct timespec *check_ctime)
{
	struct vfs_file_change change;
	struct statx sx;
	int rc = vfs_setattr_check(sa);

	if (rc == 0)
		rc = vfs_node_stat(n, &sx);
	if (rc != 0)
		return rc;
	rc = vfs_check_writable(ctx, n);
	if (rc != 0)
		return rc;
	if (check_ctime && other_time(&sx.stx_ctime, check_ctime))
		return -EDOM;
	rc = check_owner_rules(ctx, n, sa, &sx);
	if (rc == 0 && sa->set_size)
		rc = sa->opened ? vfs_check_unsealed(&sx) : vfs_may_write(ctx, n);
	if (rc == 0)
		rc = setattr_begin(ctx, n, sa, check_ctime, &change);
	if (rc != 0)
		return rc;
	rc = setattr_apply(ctx, n, sa);
	vfs_dir_tell_attrs(ctx, n);
	vfs_file_change_end(&change);
	return rc;
}

int vfs_touch_delegated(struct vfs_ctx *ctx, struct vfs_node *n)
{
	const struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
	int rc = vfs_act_as_root(ctx);

	if (rc == 0 && utimensat(n->path_fd, "", ts, AT_EMPTY_PATH) != 0)
		rc = -errno;
	vfs_node_changed(n);
	return rc;
}

bool vfs_set_after_making(const struct vfs_setattr *sa)
{
	return sa->set_uid || sa->set_gid || sa->acls || sa->label.len > 0 || sets_times(sa);
}

int vfs_setattr_created(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa)
{
	struct vfs_setattr rest = *sa;

	rest.set_mode = false;
	if (ctx->cred.uid != 0)
		rest.set_uid = rest.set_gid = false;
	if (n->type != S_IFREG || rest.size == 0)
		rest.set_size = false;
	/* A chown takes set-id bits away that the file was created with. Only then is the mode set
	 * again: it would override what a default ACL has made of it. */
	if ((rest.set_uid || rest.set_gid) && n->type != S_IFDIR)
		rest.set_mode = sa->set_mode && (sa->mode & (S_ISUID | S_ISGID));
	return setattr_apply(ctx, n, &rest);
}
