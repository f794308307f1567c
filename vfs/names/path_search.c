/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths of files that no descriptor is open for, by open_by_handle_at(2). That may ask the file system for the inode;
 * the name is that of an entry which the kernel has in memory, and there may be none.
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
#include "vfs/fs/file_system.h"
#include "vfs/names/path_mount.h"
#include "vfs/view.h"

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
