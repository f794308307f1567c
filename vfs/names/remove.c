/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking names away and giving others. The node of what loses its last link is dropped from the
 * cache at once, so that its space is freed: it is looked up by handle before, when the name still
 * leads to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/fs/file_system.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/attr.h"
#include "vfs/meta/dir_change.h"
#include "vfs/names/entry_change.h"
#include "vfs/names/node_open.h"
#include "vfs/worker/worker_state.h"

/* An inode whose ctime changes with its names. */
struct named {
	bool found;
	struct vfs_changes *t; /* NULL: it need not be told (vfs/fs/change.h) */
	uint64_t dev, ino;
	bool is_dir;
};

static struct named inode_of(const struct vfs_node *dir, const struct vfs_name *name)
{
	struct named i = { .found = false };
	struct statx sx;

	if (statx(dir->path_fd, name->s, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_INO | STATX_TYPE, &sx) == 0) {
		i.found = true;
		i.t = vfs_changes_of(dir->mnt, sx.stx_mode);
		i.dev = vfs_device_of(&sx);
		i.ino = sx.stx_ino;
		i.is_dir = S_ISDIR(sx.stx_mode);
	}
	return i;
}

static void named_changed(const struct named *i)
{
	if (i->found)
		vfs_change_made(i->t, i->dev, i->ino, 0);
}

static struct named removed_inode(const struct vfs_node *dir, const struct vfs_name *name)
{
	return dir->mnt->dir_changes ? inode_of(dir, name) : (struct named){ .t = NULL };
}

static int unlink_in(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, int flags,
		     struct vfs_dir_change *change)
{
	struct vfs_dir_changing changing;
	int rc;

	vfs_dir_change_begin(&changing, ctx, dir, name, change);
	rc = unlinkat(dir->path_fd, name, flags) == 0 ? 0 : -errno;
	vfs_dir_change_end(&changing, rc == 0);
	return vfs_dir_error(dir, rc);
}

/* A removal under way. */
struct unlinking {
	struct vfs_entry_change entry;
	struct vfs_named_file victim;
};

static int begin_unlink(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
			struct unlinking *u)
{
	const struct vfs_entry_wish wish = { dir, name, VFS_ENTRY_THERE, VFS_NOTIFY_REMOVE };
	int rc = vfs_act_as_caller(ctx);

	if (rc == 0)
		rc = vfs_entry_change_begin(ctx, &wish, &u->entry);
	if (rc != 0)
		return vfs_dir_error(dir, rc);
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = vfs_named_file_begin(ctx, dir, name, true, &u->victim);
	if (rc != 0)
		vfs_entry_change_end(&u->entry);
	return rc;
}

static int unlink_name(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
		       int flags, struct vfs_dir_change *change)
{
	struct vfs_dir_notification notification = { .what = VFS_NOTIFY_REMOVE, .name = name->s };
	struct named inode = removed_inode(dir, name);
	struct unlinking u;
	int rc = begin_unlink(ctx, dir, name, &u);

	if (rc != 0)
		return rc;
	vfs_entry_order(&u.entry, NULL);
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = unlink_in(ctx, dir, name->s, flags, change);
	if (rc == 0) {
		named_changed(&inode);
		vfs_entry_tell(ctx, &u.entry, &notification);
	}
	vfs_entry_change_end(&u.entry);
	vfs_named_file_end(&u.victim, rc == 0);
	return rc;
}

int vfs_remove(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	       struct vfs_dir_change *change)
{
	struct vfs_name nm;
	int rc = vfs_dir_check(ctx, dir);

	if (rc == 0)
		rc = vfs_name_from(&nm, name, len);
	return rc == 0 ? unlink_name(ctx, dir, &nm, 0, change) : rc;
}

int vfs_rmdir(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	      struct vfs_dir_change *change)
{
	struct vfs_name nm;
	int rc = vfs_dir_check(ctx, dir);

	if (rc == 0)
		rc = vfs_name_from(&nm, name, len);
	return rc == 0 ? unlink_name(ctx, dir, &nm, AT_REMOVEDIR, change) : rc;
}

static int rename_error(const struct vfs_rename *r, int error)
{
	int rc = vfs_dir_error(r->from_dir, error);

	return rc == error ? vfs_dir_error(r->to_dir, error) : rc;
}

static bool same_inode(const struct vfs_node *a, const struct vfs_node *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* A directory that is moved changes, too: its ctime, and what ".." is. */
static int rename_in(struct vfs_ctx *ctx, const struct vfs_rename *r, const char *from,
		     const char *to, const struct named *moved)
{
	const bool one = same_inode(r->from_dir, r->to_dir);
	struct vfs_dir_changing changing[2];
	_Atomic uint64_t *slot = NULL;
	int rc;

	if (moved->is_dir)
		slot = vfs_dir_count_begin(ctx->vfs, moved->dev, moved->ino);
	vfs_dir_change_begin(&changing[0], ctx, r->from_dir, from, r->from_change);
	if (!one)
		vfs_dir_change_begin(&changing[1], ctx, r->to_dir, to, r->to_change);
	rc = renameat(r->from_dir->path_fd, from, r->to_dir->path_fd, to) == 0 ? 0 : -errno;
	if (!one)
		vfs_dir_change_end(&changing[1], rc == 0);
	vfs_dir_change_end(&changing[0], rc == 0);
	if (one && r->to_change)
		*r->to_change = *r->from_change;
	if (slot)
		vfs_dir_count_end(slot);
	return rc == 0 ? 0 : rename_error(r, rc);
}

/* A renaming under way. */
struct renaming {
	struct vfs_entry_change from, to;
	struct vfs_named_file moved, victim;
};

static int begin_entries(struct vfs_ctx *ctx, const struct vfs_rename *r,
			 const struct vfs_name *from, const struct vfs_name *to, struct renaming *x)
{
	const bool one = same_inode(r->from_dir, r->to_dir);
	const struct vfs_entry_wish old = { r->from_dir, from, VFS_ENTRY_THERE,
					    one ? VFS_NOTIFY_RENAME : VFS_NOTIFY_REMOVE };
	const struct vfs_entry_wish new = { r->to_dir, to, VFS_ENTRY_ANY,
					    one ? VFS_NOTIFY_RENAME : VFS_NOTIFY_ADD };
	int rc = vfs_act_as_caller(ctx);

	/* Else the other directory's delegations would be recalled for nothing. */
	if (rc == 0 && vfs_deleg_any(ctx->vfs) &&
	    faccessat(r->from_dir->path_fd, from->s, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		rc = rename_error(r, -errno);
	if (rc == 0)
		rc = vfs_entry_change_begin(ctx, &old, &x->from);
	if (rc != 0)
		return rc;
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = vfs_entry_change_begin(ctx, &new, &x->to);
	if (rc != 0)
		vfs_entry_change_end(&x->from);
	return rc;
}

static int begin_files(struct vfs_ctx *ctx, const struct vfs_rename *r, const struct vfs_name *from,
		       const struct vfs_name *to, struct renaming *x)
{
	int rc = vfs_act_as_caller(ctx);

	if (rc == 0)
		rc = vfs_named_file_begin(ctx, r->from_dir, from, false, &x->moved);
	if (rc != 0)
		return rc;
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = vfs_named_file_begin(ctx, r->to_dir, to, true, &x->victim);
	if (rc != 0)
		vfs_named_file_end(&x->moved, false);
	return rc;
}

static void end_entries(struct renaming *x)
{
	vfs_entry_change_end(&x->to);
	vfs_entry_change_end(&x->from);
}

static int begin_rename(struct vfs_ctx *ctx, const struct vfs_rename *r,
			const struct vfs_name *from, const struct vfs_name *to, struct renaming *x)
{
	int rc = begin_entries(ctx, r, from, to, x);

	if (rc != 0)
		return rc;
	rc = begin_files(ctx, r, from, to, x);
	if (rc != 0)
		end_entries(x);
	return rc;
}

/* Notification of a renaming, by what the names led to just before it: nothing if they were links of one file, of
 * which both stay. */
static void tell_renamed(struct vfs_ctx *ctx, struct renaming *x,
			 struct vfs_dir_notification *notification, const struct named *moved,
			 const struct named *replaced)
{
	struct vfs_dir_notification gone = { .what = VFS_NOTIFY_REMOVE,
					     .name = notification->name };

	if (replaced->found && replaced->dev == moved->dev && replaced->ino == moved->ino)
		return;
	notification->replaced = replaced->found;
	if (notification->what == VFS_NOTIFY_ADD) {
		vfs_entry_tell(ctx, &x->from, &gone);
		notification->name = notification->to;
	}
	vfs_entry_tell(ctx, &x->to, notification);
}

static int rename_ordered(struct vfs_ctx *ctx, const struct vfs_rename *r,
			  const struct vfs_name *from, const struct vfs_name *to,
			  struct renaming *x)
{
	const bool one = same_inode(r->from_dir, r->to_dir), told = x->from.told || x->to.told;
	struct vfs_dir_notification notification = {
		.what = one ? VFS_NOTIFY_RENAME : VFS_NOTIFY_ADD, .name = from->s, .to = to->s
	};
	struct named moved, replaced = { .found = false };
	int rc;

	vfs_entry_order(&x->from, &x->to);
	rc = vfs_act_as_caller(ctx);
	if (rc != 0)
		return rc;
	moved = inode_of(r->from_dir, from);
	if (told || r->to_dir->mnt->dir_changes)
		replaced = inode_of(r->to_dir, to);
	rc = rename_in(ctx, r, from->s, to->s, &moved);
	if (rc != 0)
		return rc;
	named_changed(&moved);
	named_changed(&replaced);
	if (told)
		tell_renamed(ctx, x, &notification, &moved, &replaced);
	return 0;
}

static int rename_entries(struct vfs_ctx *ctx, const struct vfs_rename *r,
			  const struct vfs_name *from, const struct vfs_name *to)
{
	struct renaming x;
	int rc = begin_rename(ctx, r, from, to, &x);

	if (rc != 0)
		return rc;
	rc = rename_ordered(ctx, r, from, to, &x);
	end_entries(&x);
	vfs_named_file_end(&x.victim, rc == 0);
	vfs_named_file_end(&x.moved, false);
	return rc;
}

static bool name_is_dots(const struct vfs_name *name)
{
	return vfs_name_is_dot(name) || vfs_name_is_dotdot(name);
}

int vfs_rename(struct vfs_ctx *ctx, const struct vfs_rename *r)
{
	struct vfs_name from, to;
	int rc = vfs_dir_check(ctx, r->from_dir);

	if (rc == 0)
		rc = vfs_dir_check(ctx, r->to_dir);
	if (rc == 0)
		rc = vfs_name_from(&from, r->from, r->from_len);
	if (rc == 0)
		rc = vfs_name_from(&to, r->to, r->to_len);
	if (rc == 0 && (name_is_dots(&from) || name_is_dots(&to)))
		rc = -EINVAL; /* RFC 1813 section 3.3.14 */
	return rc == 0 ? rename_entries(ctx, r, &from, &to) : rc;
}

/* By way of /proc: a link to a bare descriptor needs a capability. */
static int link_once(const struct vfs_node *n, const struct vfs_node *dir, const char *name)
{
	return linkat(AT_FDCWD, vfs_proc_path(n->path_fd).s, dir->path_fd, name,
		      AT_SYMLINK_FOLLOW) == 0
		       ? 0
		       : -errno;
}

/*
 * fs.protected_hardlinks refuses links to what the caller neither owns nor may write. It is a rule for programs of this
 * machine: a client's kernel applies its own, and the kernel's server none. CAP_FOWNER lifts that rule and no other one
 * of linkat(2): whether the caller may change the directory, and the file's flags, count as before.
 */
static int link_as_caller(struct vfs_ctx *ctx, const struct vfs_node *n, const struct vfs_node *dir,
			  const char *name)
{
	int rc = link_once(n, dir, name);

	if (rc != -EPERM || ctx->cred.uid == 0 || vfs_thread_add_fowner() != 0)
		return rc;
	rc = link_once(n, dir, name);
	vfs_act_as_root(ctx);
	return rc;
}

static int link_in(struct vfs_ctx *ctx, const struct vfs_node *n, struct vfs_node *dir,
		   const char *name, struct vfs_dir_change *change)
{
	struct vfs_dir_changing changing;
	int rc;

	vfs_dir_change_begin(&changing, ctx, dir, name, change);
	rc = link_as_caller(ctx, n, dir, name);
	vfs_dir_change_end(&changing, rc == 0);
	return vfs_dir_error(dir, rc);
}

/* A link under way: the file, and the directory's new entry. */
struct linking {
	struct vfs_file_change file;
	struct vfs_entry_change entry;
};

/* Whoever may not change the directory causes no recalls. */
static int begin_link(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_node *dir,
		      const struct vfs_name *name, struct linking *l)
{
	const struct vfs_entry_wish wish = { dir, name, VFS_ENTRY_NEW, VFS_NOTIFY_ADD };
	int rc = vfs_act_as_caller(ctx);

	if (rc == 0)
		rc = vfs_entry_change_begin(ctx, &wish, &l->entry);
	if (rc != 0)
		return rc;
	if (vfs_deleg_any(ctx->vfs))
		rc = vfs_access_check(ctx, dir, W_OK | X_OK);
	if (rc == 0)
		rc = vfs_file_change_begin(ctx, n, &l->file);
	if (rc != 0)
		vfs_entry_change_end(&l->entry);
	return rc;
}

static void end_link(struct linking *l)
{
	vfs_file_change_end(&l->file);
	vfs_entry_change_end(&l->entry);
}

int vfs_link(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_node *dir, const char *name,
	     uint32_t len, struct vfs_dir_change *change)
{
	struct linking linking;
	struct vfs_name nm;
	int rc = vfs_dir_check(ctx, dir);

	if (rc == 0)
		rc = vfs_name_from(&nm, name, len);
	if (rc == 0 && n->mnt != dir->mnt)
		rc = -EXDEV;
	if (rc == 0)
		rc = begin_link(ctx, n, dir, &nm, &linking);
	if (rc != 0)
		return rc;
	vfs_entry_order(&linking.entry, NULL);
	rc = vfs_act_as_caller(ctx);
	if (rc == 0)
		rc = link_in(ctx, n, dir, nm.s, change);
	if (rc == 0) {
		vfs_node_changed(n);
		vfs_entry_tell_made(ctx, &linking.entry, &nm);
	}
	end_link(&linking);
	return rc;
}
