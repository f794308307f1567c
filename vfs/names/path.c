/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths of files, from the names that the kernel has in memory (/proc/self/fd). readlink(2) there, and statx(2)
 * with AT_STATX_DONT_SYNC, ask no file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/hold/file.h"
#include "vfs/mount_table.h"
#include "vfs/names/node_open.h"
#include "vfs/node/cache.h"
#include "vfs/view.h"

#define DELETED " (deleted)" /* the kernel's mark of a name that has gone */

/* A name as the kernel tells it: below the root of a private clone of a mount, else below this process's. */
struct name {
	char text[PATH_MAX];
	uint64_t mnt_id; /* mount of the descriptor; 0: not known */
	bool removed;
};

static bool cut_mark(char *text)
{
	const size_t len = strlen(text), mark = strlen(DELETED);

	if (len <= mark || strcmp(text + len - mark, DELETED) != 0)
		return false;
	text[len - mark] = '\0';
	return true;
}

static void read_name(void *arg, int fd)
{
	struct name *name = arg;
	struct statx sx;
	ssize_t n = readlink(vfs_proc_path(fd).s, name->text, sizeof(name->text) - 1);

	name->text[n > 0 ? n : 0] = '\0';
	if (vfs_statx_mount(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &sx) != 0)
		return;
	name->mnt_id = sx.stx_mnt_id;
	/* A file with links left may have a name that ends like the mark, or has lost the one name that is known. */
	name->removed = sx.stx_nlink == 0;
	if (name->removed)
		cut_mark(name->text);
}

/* The mount of exp that a handle names, with a reference. NULL: there is none, or another thread searches for one. */
static struct vfs_mount *vfs_view_mount(struct vfs_export *exp, const struct vfs_fh *fh)
{
	struct vfs_mount *mnt = exp->root_mnt;
	struct vfs_handle h;

	if (vfs_handle_parse(fh, exp->vfs->cfg.handle_mac, &h) != 0 ||
	    (h.submount_id != 0 && pthread_mutex_trylock(&exp->mounts_lock) != 0))
		return NULL;
	if (h.submount_id != 0) {
		TAILQ_FOREACH (mnt, &exp->mounts, link) {
			if (mnt->id == h.submount_id)
				break;
		}
	}
	if (mnt)
		vfs_mount_ref(mnt);
	if (h.submount_id != 0)
		pthread_mutex_unlock(&exp->mounts_lock);
	return mnt;
}

/* The export whose private clone the mount is; NULL: none. */
static const struct vfs_export *cloned_for(const struct vfs_view_exports *all, uint64_t mnt_id)
{
	for (size_t i = 0; i < all->n; i++) {
		if (all->exp[i]->detached && all->exp[i]->root_mnt->mnt_id == mnt_id)
			return all->exp[i];
	}
	return NULL;
}

static void compose(struct vfs_view_path *out, const char *base, const char *below)
{
	if (strcmp(base, "/") == 0 && *below)
		base = "";
	const int n = snprintf(out->text, sizeof(out->text), "%s%s", base, below);

	if (n < 0 || (size_t)n >= sizeof(out->text))
		out->text[0] = '\0';
}

static void view_path_show(const struct vfs_view_exports *all, const struct vfs_export *exp,
			   const struct name *name, struct vfs_view_path *out)
{
	out->removed = name->removed;
	/* A file that was opened by its handle has no name before somebody looks it up. */
	if (name->mnt_id == 0 || name->text[0] != '/' || !name->text[1])
		return;
	if (!exp->detached || exp->root_mnt->mnt_id != name->mnt_id)
		exp = cloned_for(all, name->mnt_id);
	compose(out, exp ? exp->real_path : "", name->text);
}

static bool view_fh_is_root(const struct vfs_mount *mnt, const struct vfs_fh *fh)
{
	return mnt->root_fh.len == fh->len && memcmp(mnt->root_fh.data, fh->data, fh->len) == 0;
}

void vfs_view_path(const struct vfs_view_exports *all, struct vfs_export *exp,
		   const struct vfs_fh *fh, struct vfs_file *f, struct vfs_view_path *out)
{
	struct name name = { .mnt_id = 0 };
	struct vfs_mount *mnt = exp ? vfs_view_mount(exp, fh) : NULL;

	out->text[0] = '\0';
	out->removed = false;
	if (!mnt)
		return;
	if (view_fh_is_root(mnt, fh)) {
		compose(out, mnt->path ? mnt->path : exp->real_path, "");
	} else {
		vfs_cache_peek_fd(exp->vfs, mnt, fh, read_name, &name);
		if (name.mnt_id == 0 && f)
			vfs_view_file_fd(f, read_name, &name);
		view_path_show(all, exp, &name, out);
	}
	vfs_mount_put(mnt);
}

const uint8_t *vfs_view_handle(const struct vfs_fh *fh, uint32_t *len)
{
	return vfs_handle_file_part(fh, len);
}

/*
 * Paths of files that no descriptor is open for, by open_by_handle_at(2). That may ask the file system for the inode;
 * the name is that of an entry which the kernel has in memory, and there may be none.
 */

#define MOUNTS_MAX 16u
#define FILES_MAX 5000u

struct searched_mount {
	uint32_t serial; /* vfs_mount.serial */
	int fd;
	char *base; /* path of a private clone's root; NULL: the kernel tells whole paths */
};

struct searched_file {
	unsigned mount;
	struct vfs_handle handle;
};

struct vfs_view_search {
	unsigned nmounts;
	struct searched_mount mount[MOUNTS_MAX];
	uint32_t n, room;
	struct searched_file *file;
};

struct vfs_view_search *vfs_view_search_new(void)
{
	return calloc(1, sizeof(struct vfs_view_search));
}

void vfs_view_search_free(struct vfs_view_search *s)
{
	for (unsigned i = 0; s && i < s->nmounts; i++) {
		close(s->mount[i].fd);
		free(s->mount[i].base);
	}
	if (s)
		free(s->file);
	free(s);
}

uint32_t vfs_view_search_count(const struct vfs_view_search *s)
{
	return s->n;
}

static int view_search_add_mount(struct vfs_view_search *s, const struct vfs_export *exp,
				 const struct vfs_mount *mnt)
{
	struct searched_mount *m = &s->mount[s->nmounts];
	const bool cloned = exp->detached && mnt == exp->root_mnt;

	if (s->nmounts == MOUNTS_MAX)
		return -ENOSPC;
	*m = (struct searched_mount){ .serial = mnt->serial,
				      .base = cloned ? strdup(exp->real_path) : NULL };
	m->fd = cloned && !m->base ? -1 : fcntl(mnt->fd, F_DUPFD_CLOEXEC, 0);
	if (m->fd < 0) {
		free(m->base);
		return -ENOMEM;
	}
	return (int)s->nmounts++;
}

static int view_search_find_mount(struct vfs_view_search *s, const struct vfs_export *exp,
				  const struct vfs_mount *mnt)
{
	for (unsigned i = 0; i < s->nmounts; i++) {
		if (s->mount[i].serial == mnt->serial)
			return (int)i;
	}
	return view_search_add_mount(s, exp, mnt);
}

static bool view_search_make_room(struct vfs_view_search *s)
{
	const uint32_t room = s->n < s->room ? s->room : s->room ? 2 * s->room : 64;
	struct searched_file *more =
		room == s->room ? s->file : realloc(s->file, room * sizeof(s->file[0]));

	if (!more || s->n >= FILES_MAX)
		return false;
	s->file = more;
	s->room = room;
	return true;
}

int vfs_view_search_add(struct vfs_view_search *s, struct vfs_export *exp, const struct vfs_fh *fh)
{
	struct vfs_mount *mnt = vfs_view_mount(exp, fh);
	struct vfs_handle h;
	int at = -ENOENT;

	if (mnt && vfs_handle_parse(fh, exp->vfs->cfg.handle_mac, &h) == 0)
		at = view_search_make_room(s) ? view_search_find_mount(s, exp, mnt) : -ENOMEM;
	if (mnt)
		vfs_mount_put(mnt);
	if (at < 0)
		return at;
	s->file[s->n] = (struct searched_file){ .mount = (unsigned)at, .handle = h };
	return (int)s->n++;
}

/* Nothing is told of a file without a name, which the kernel shows as "/", or without a link. */
static char *read_path(int fd, const char *base)
{
	char text[PATH_MAX], *path;
	struct statx sx;
	const ssize_t n = readlink(vfs_proc_path(fd).s, text, sizeof(text) - 1);

	if (n < 2 || text[0] != '/' ||
	    statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &sx) != 0 ||
	    sx.stx_nlink == 0)
		return NULL;
	text[n] = '\0';
	if (!base || strcmp(base, "/") == 0)
		base = "";
	return asprintf(&path, "%s%s", base, text) < 0 ? NULL : path;
}

char *vfs_view_search_run(const struct vfs_view_search *s, uint32_t number)
{
	const struct searched_file *f = &s->file[number];
	const struct searched_mount *m = &s->mount[f->mount];
	const int fd = vfs_handle_open(m->fd, &f->handle);
	char *path;

	if (fd < 0)
		return NULL;
	path = read_path(fd, m->base);
	close(fd);
	return path;
}
