/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/exports/export_set.h"
#include "lib/error.h"
#include "lib/log_ids.h"
#include "vfs/vfs.h"

void export_place_clear(struct export_place *p)
{
	vfs_export_put(p->exp);
	free(p->absent);
	free(p->real_path);
	*p = (struct export_place){ .state = EXPORT_FAILED };
}

static bool wants_crossmnt(const struct exp_export *e)
{
	for (unsigned i = 0; i < e->n_clients; i++)
		if (e->clients[i].opts.flags & EXP_CROSSMNT)
			return true;
	return false;
}

static unsigned export_place_open_flags(const struct exp_export *e, bool crossmnt)
{
	/* all clients of an export have the same fsid= */
	const struct exp_opts *opts = &e->clients[0].opts;

	return (crossmnt ? VFS_EXPORT_CROSSMNT : 0) |
	       (opts->has_fsid || opts->has_uuid ? VFS_EXPORT_FSID : 0);
}

/* Fills absent; true if every client lacks its mount. */
static int check_mountpoints(const struct exp_export *e, struct export_place *p, bool *all)
{
	bool any = false;

	*all = e->n_clients > 0;
	for (unsigned i = 0; i < e->n_clients; i++)
		any |= e->clients[i].opts.mountpoint != NULL;
	if (any)
		p->absent = calloc(e->n_clients, sizeof(p->absent[0]));
	if (any && !p->absent)
		return -ENOMEM;
	for (unsigned i = 0; i < e->n_clients; i++) {
		const char *mp = e->clients[i].opts.mountpoint;
		bool absent = mp && exp_check_mountpoint(mp) < 0;

		if (absent)
			p->absent[i] = true;
		*all &= absent;
	}
	return 0;
}

/* Looks up the path's directory: fills dev to depth. 0 or -errno. */
static int export_place_stat(const struct export_opener *op, const char *path,
			     struct export_place *p)
{
	const struct vfs_mount_entry *m;
	struct statx sx;
	struct stat st;
	int fd = open(path, O_PATH | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	/* A file system without handles may tell no mount number either. Opening the export says then why it is not served. */
	else if (vfs_statx_mount(fd, "", AT_EMPTY_PATH, 0, &sx) < 0)
		sx.stx_mnt_id = 0;
	close(fd);
	if (rc < 0)
		return rc;
	m = vfs_mount_table_find(op->table, sx.stx_mnt_id);
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	p->mnt_id = sx.stx_mnt_id;
	p->depth = m ? strlen(m->path) : 0;
	p->read_only = m && m->read_only;
	snprintf(p->fs_type, sizeof(p->fs_type), "%s", m ? m->type : "");
	return 0;
}

static void log_failed(const struct export_opener *op, const struct exp_export *e, const char *why)
{
	const struct rn_log_event event = { .id = RN_ID_EXPORT_FAILED, .export = e->path };

	rn_log_event(op->log, RN_ERROR, &event, "export %s: %s", e->path, why);
}

/* Without a word in the log. */
static int export_place_try_open(const struct export_opener *op, const struct exp_export *e,
				 struct export_place *p)
{
	const struct vfs_export_config cfg = { .path = e->path,
					       .id = e->id,
					       .mode = op->io_mode,
					       .flags = export_place_open_flags(e, p->crossmnt) };
	const char *why = NULL;
	int rc = vfs_export_open_next(op->vfs, &cfg, op->seen, &p->exp, &why);

	if (rc) {
		p->exp = NULL;
		p->state = EXPORT_FAILED;
		p->why = why && *why ? why : strerrordesc_np(-rc);
		return rc;
	}
	p->state = EXPORT_SERVED;
	p->why = NULL;
	p->mnt_id = vfs_export_mnt_id(p->exp);
	p->opened_read_only = p->read_only;
	return 0;
}

static bool wants_signed(const struct exp_export *e)
{
	for (unsigned i = 0; i < e->n_clients; i++)
		if (e->clients[i].opts.flags & EXP_SIGN_FH)
			return true;
	return false;
}

static int open_it(const struct export_opener *op, const struct exp_export *e,
		   struct export_place *p)
{
	const int rc = export_place_try_open(op, e, p);

	if (rc) {
		log_failed(op, e, p->why);
		return rc;
	}
	if (wants_signed(e) && !vfs_export_signs(p->exp))
		rn_warn(op->log,
			"export %s: its option sign_fh is not obeyed, as handle_mac = no in [vfs] "
			"leaves the handles of all exports unsigned",
			e->path);
	if (!vfs_export_fs_known(p->exp) && op->shared)
		rn_warn(op->log,
			"export %s: its file system has no UUID: members of a cluster that mount "
			"it on "
			"other machines find its handles stale; give it the option fsid=NUMBER",
			e->path);
	else if (!vfs_export_fs_known(p->exp))
		rn_notice(
			op->log,
			"export %s: its file system has no UUID: clients must mount it again when "
			"its device number changes; the option fsid=NUMBER prevents that",
			e->path);
	return 0;
}

static void export_place_reuse(const struct export_place *was, struct export_place *p)
{
	vfs_export_ref(was->exp);
	p->exp = was->exp;
	p->opened_read_only = was->opened_read_only;
	p->state = EXPORT_SERVED;
}

/* Keeps the earlier place, since nothing new was found. */
static void stay(const struct export_place *was, struct export_place *p)
{
	p->root = was->root;
	p->moved = was->moved;
	p->real_path = was->real_path ? strdup(was->real_path) : NULL;
	p->state = was->state;
	p->dev = was->dev;
	p->ino = was->ino;
	p->mnt_id = was->mnt_id;
	p->depth = was->depth;
	p->why = was->why;
	memcpy(p->fs_type, was->fs_type, sizeof(p->fs_type));
	if (was->exp)
		export_place_reuse(was, p);
}

/* An export reaches files through a clone of the mount, which keeps the flags that the mount had. */
static bool must_open_anew(const struct export_place *was, const struct export_place *now)
{
	return was->opened_read_only && !now->read_only;
}

static bool can_reuse(const struct export_place *was, const struct export_place *now)
{
	return was && was->exp && was->crossmnt == now->crossmnt && was->mnt_id == now->mnt_id &&
	       was->dev == now->dev && was->ino == now->ino && !must_open_anew(was, now) &&
	       vfs_export_root_name(was->exp) != VFS_ROOT_REMOVED;
}

static int find_anew(const struct export_opener *op, const struct exp_export *e,
		     const struct export_place *was, struct export_place *p)
{
	int rc = export_place_stat(op, e->path, p);

	if (rc) {
		p->state = EXPORT_FAILED;
		p->why = strerrordesc_np(-rc);
		log_failed(op, e, p->why);
		return rc;
	}
	if (!can_reuse(was, p))
		return open_it(op, e, p);
	export_place_reuse(was, p);
	return 0;
}

/* True if the directory was removed. Its count of names tells that where another one has got its inode number. */
static bool is_removed(enum vfs_root_name root, const struct export_place *was,
		       const struct export_place *now, int rc)
{
	return root == VFS_ROOT_REMOVED ||
	       (root == VFS_ROOT_UNNAMED && (rc || now->dev != was->dev || now->ino != was->ino));
}

static const char elsewhere[] =
	"its directory was removed, and its path leads over another link or mount now: read the "
	"exports again to serve what is there";

/*
 * Serves what is in the place of a removed directory: at the same path without symbolic links, on the same mount. Who may rename
 * directories above an export could otherwise lead its path to any directory of the machine. That is looked at when it is open.
 */
static int replace_removed(const struct export_opener *op, const struct exp_export *e,
			   const struct export_place *removed, struct export_place *p)
{
	int rc = export_place_stat(op, e->path, p);

	if (!rc)
		rc = export_place_try_open(op, e, p);
	if (!rc && p->mnt_id == removed->mnt_id && removed->real_path &&
	    strcmp(vfs_export_real_path(p->exp), removed->real_path) == 0)
		return 0;
	vfs_export_put(p->exp);
	p->exp = NULL;
	stay(removed, p);
	p->why = rc == -ENOENT ? NULL : rc ? strerrordesc_np(-rc) : elsewhere;
	return 0;
}

static int follow_removed(const struct export_opener *op, const struct exp_export *e,
			  const struct export_place *was, struct export_place *p)
{
	struct export_place removed = *was;

	removed.state = EXPORT_REMOVED;
	removed.exp = NULL;
	removed.root = VFS_ROOT_NAMED;
	removed.moved = false;
	removed.real_path = (char *)(uintptr_t)vfs_export_real_path(was->exp);
	return replace_removed(op, e, &removed, p);
}

/* The table of the load is older than the look at the path: the mount may have gone between. */
static bool is_mounted_now(uint64_t mnt_id)
{
	struct vfs_mount_table now;
	bool found;

	if (vfs_mount_table_load(&now) != 0)
		return true;
	found = vfs_mount_table_find(&now, mnt_id);
	vfs_mount_table_free(&now);
	return found;
}

/* Checks a served export after the mount table has changed, or the name of its root. */
static int follow_served(const struct export_opener *op, const struct exp_export *e,
			 const struct export_place *was, struct export_place *p)
{
	const enum vfs_root_name root = vfs_export_root_name(was->exp);
	int rc = export_place_stat(op, e->path, p);
	/* In a chroot the table may lack the mount that the path leads to. */
	bool mounted =
		vfs_mount_table_find(op->table, was->mnt_id) || (!rc && p->mnt_id == was->mnt_id);

	if (mounted && !rc && p->mnt_id != was->mnt_id)
		mounted = is_mounted_now(was->mnt_id);
	if (mounted && is_removed(root, was, p, rc))
		return follow_removed(op, e, was, p);
	if (mounted && !rc && p->mnt_id == was->mnt_id && must_open_anew(was, p))
		return open_it(op, e, p);
	if (mounted && (rc || p->mnt_id == was->mnt_id)) {
		if (rc)
			p->read_only = was->read_only;
		size_t depth = p->depth;

		const bool same = !rc && p->dev == was->dev && p->ino == was->ino;

		stay(was, p);
		p->root = root;
		p->moved = root == VFS_ROOT_MOVED && !same;
		if (!rc && depth)
			p->depth = depth;
		return 0;
	}
	if (rc || (!mounted && p->depth < was->depth)) {
		stay(&(struct export_place){ .state = EXPORT_UNMOUNTED, .depth = was->depth }, p);
		return 0;
	}
	return open_it(op, e, p);
}

/*
 * Checks an export that was not served: it waits for a mount at least as deep as the missing one.
 */
static int follow_unserved(const struct export_opener *op, const struct exp_export *e,
			   const struct export_place *was, struct export_place *p)
{
	if (was->state == EXPORT_REMOVED)
		return replace_removed(op, e, was, p);
	if (export_place_stat(op, e->path, p) < 0 ||
	    (was->state == EXPORT_UNMOUNTED && p->depth < was->depth) ||
	    (was->state == EXPORT_FAILED && p->mnt_id == was->mnt_id)) {
		stay(was, p);
		return 0;
	}
	return open_it(op, e, p);
}

/* A directory that clients see was moved or removed. True: nothing else is to be said. */
static bool log_root(const struct export_opener *op, const struct exp_export *e,
		     const struct export_place *was, const struct export_place *p)
{
	const struct rn_log_event failed = { .id = RN_ID_EXPORT_FAILED, .export = e->path };
	const struct rn_log_event served = { .id = RN_ID_EXPORT_SERVED, .export = e->path };
	const bool again = was->state == EXPORT_REMOVED ||
			   (was->exp && p->exp && p->exp != was->exp && p->mnt_id == was->mnt_id &&
			    !export_place_same(was, p));

	if (p->state == EXPORT_REMOVED && (was->state != EXPORT_REMOVED || p->why != was->why))
		rn_log_event(
			op->log, RN_WARNING, &failed, "export %s: %s", e->path,
			p->why ? p->why
			       : "its directory was removed: not served until one is there again");
	else if (p->state == EXPORT_SERVED && again)
		rn_log_event(op->log, RN_NOTICE, &served,
			     "export %s: its directory was removed and made again: the new one is "
			     "served, and file handles from before are stale",
			     e->path);
	else if (p->moved && !was->moved)
		rn_warn(op->log,
			"export %s: its directory was moved, and is served where it is now: read "
			"the "
			"exports again to serve what is at its path",
			e->path);
	else if (was->moved && !p->moved && p->exp == was->exp)
		rn_notice(op->log, "export %s: its directory is at its path again", e->path);
	else
		return p->state == EXPORT_REMOVED;
	return true;
}

static void log_change(const struct export_opener *op, const struct exp_export *e,
		       const struct export_place *was, const struct export_place *p)
{
	const struct rn_log_event failed = { .id = RN_ID_EXPORT_FAILED, .export = e->path };
	const struct rn_log_event served = { .id = RN_ID_EXPORT_SERVED, .export = e->path };

	if (p->state == EXPORT_WAITS && (!was || was->state != EXPORT_WAITS))
		rn_log_event(op->log, RN_WARNING, &failed,
			     "export %s: not mounted (option mp): clients wait until it is",
			     e->path);
	if (!was || !op->mounts_only || log_root(op, e, was, p))
		return;
	if (p->state == EXPORT_UNMOUNTED && was->state != EXPORT_UNMOUNTED)
		rn_log_event(op->log, RN_WARNING, &failed,
			     "export %s: its file system was unmounted: not served until one is "
			     "mounted there or the exports are read again",
			     e->path);
	if (p->state == EXPORT_SERVED && was->exp && p->mnt_id == was->mnt_id &&
	    p->read_only != was->read_only) {
		rn_notice(op->log, "export %s: its mount is %s now", e->path,
			  p->read_only ? "read-only" : "writable");
		return;
	}
	if (p->state != EXPORT_SERVED || p->exp == was->exp)
		return;
	if (!was->exp)
		rn_log_event(op->log, RN_NOTICE, &served, "export %s: mounted, served from now on",
			     e->path);
	else
		rn_log_event(
			op->log, RN_NOTICE, &served, "export %s: %s", e->path,
			export_place_same(was, p)
				? "mounted anew, served as before"
				: "another file system is mounted there: it is served from now "
				  "on, and file handles from before are stale");
}

/* The file system does not answer. */
static int export_place_no_answer(const struct export_opener *op, const struct exp_export *e,
				  const struct export_place *was, struct export_place *p)
{
	if (!was) {
		p->why = "its file system does not answer";
		if (!op->mounts_only)
			log_failed(op, e, "its file system does not answer: not served");
		return -RN_ESILENT;
	}
	stay(was, p);
	p->crossmnt = was->crossmnt;
	p->read_only = was->read_only;
	if (!was->absent)
		return 0;
	/* For each client again, since the clients may have changed. */
	p->absent = calloc(e->n_clients, sizeof(p->absent[0]));
	if (p->absent && op->mounts_only)
		memcpy(p->absent, was->absent, e->n_clients * sizeof(p->absent[0]));
	return p->absent ? 0 : -ENOMEM;
}

int export_place_find(const struct export_opener *op, const struct exp_export *e,
		      const struct export_place *was, struct export_place *out)
{
	bool waits;
	int rc;

	*out = (struct export_place){ .state = EXPORT_FAILED, .crossmnt = wants_crossmnt(e) };
	if (!op->answers[e->index])
		return export_place_no_answer(op, e, was, out);
	rc = check_mountpoints(e, out, &waits);
	if (rc)
		return rc;
	if (waits)
		out->state = EXPORT_WAITS;
	else if (!op->mounts_only || !was || was->state == EXPORT_WAITS)
		rc = find_anew(op, e, was, out);
	else if (was->exp)
		rc = follow_served(op, e, was, out);
	else
		rc = follow_unserved(op, e, was, out);
	log_change(op, e, was, out);
	return rc;
}

bool export_place_renamed(const struct export_place *p)
{
	return p->exp && vfs_export_root_name(p->exp) != p->root;
}

bool export_place_same(const struct export_place *was, const struct export_place *now)
{
	return was->exp && now->exp &&
	       (was->exp == now->exp || vfs_export_same_root(was->exp, now->exp));
}

bool export_place_unchanged(const struct exp_export *e, const struct export_place *was,
			    const struct export_place *now)
{
	if (was->state != now->state || was->exp != now->exp || was->why != now->why ||
	    was->root != now->root || was->moved != now->moved || !was->absent != !now->absent ||
	    was->read_only != now->read_only)
		return false;
	return !was->absent ||
	       memcmp(was->absent, now->absent, e->n_clients * sizeof(was->absent[0])) == 0;
}

int export_place_usable(const struct exp_export *e, const struct export_place *p,
			const struct exp_opts *opts)
{
	if (p->state != EXPORT_SERVED)
		return p->state == EXPORT_WAITS ? -EALREADY : -ESTALE;
	for (unsigned i = 0; p->absent && i < e->n_clients; i++)
		if (&e->clients[i].opts == opts)
			return p->absent[i] ? -EALREADY : 0;
	return 0;
}
