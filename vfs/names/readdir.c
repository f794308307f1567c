/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directories are read in pieces about as large as a reply, so that going on from a cookie costs
 * what is returned. What was read beyond the last entry that was taken is read again next time: it
 * may have changed.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/meta/permission.h"
#include "vfs/node/dir_stream.h"
#include "vfs/worker/acting.h"

#define PIECE 8192

struct reading {
	struct vfs_node *dir;
	struct vfs_dir_stream *stream;
	bool (*each)(void *arg, const struct vfs_dirent *de);
	void *arg;
	bool full;
};

/* The entry of a subvolume shows the subvolume's number, which is the number of some file
 * of the directory's own, too. */
static uint64_t fileid_of_dir(const struct reading *r, const struct dirent64 *d)
{
	struct vfs_handle h;
	uint64_t mnt_id;

	if (r->dir->mnt->subvolume == 0 || d->d_type != DT_DIR ||
	    vfs_handle_of(r->dir->path_fd, d->d_name, &h, &mnt_id) != 0 ||
	    mnt_id != r->dir->mnt->mnt_id)
		return d->d_ino;
	return vfs_mount_entry_fileid(r->dir->mnt, &h, d->d_ino);
}

/* Hands over one entry; false: there was no room. */
static bool give(struct reading *r, const struct dirent64 *d)
{
	struct vfs_dirent de = {
		.name = d->d_name,
		.len = (uint32_t)strlen(d->d_name),
		.fileid = fileid_of_dir(r, d),
		.cookie = (uint64_t)d->d_off,
		.type = d->d_type,
	};

	if (strcmp(d->d_name, "..") == 0 && vfs_node_is_root(r->dir))
		de.fileid = r->dir->exp->root_ino;
	if (!r->each(r->arg, &de))
		return false;
	r->stream->pos = de.cookie;
	return true;
}

/* One piece: its size, 0 at the end, or -errno. */
static long give_piece(struct reading *r)
{
	_Alignas(struct dirent64) char buf[PIECE];
	long n = syscall(SYS_getdents64, r->stream->fd, buf, sizeof(buf));

	if (n < 0)
		return errno == ENOENT ? -ESTALE : -errno; /* the directory was removed */
	for (long at = 0; at < n && !r->full;) {
		const struct dirent64 *d = (const struct dirent64 *)(buf + at);

		r->full = !give(r, d);
		at += d->d_reclen;
	}
	return n;
}

int vfs_readdir(struct vfs_ctx *ctx, struct vfs_node *dir, uint64_t cookie,
		bool (*each)(void *arg, const struct vfs_dirent *de), void *arg, bool *eof)
{
	struct reading r = { .dir = dir, .each = each, .arg = arg };
	long n;
	int rc;

	*eof = false;
	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	if (cookie > INT64_MAX)
		return -EINVAL;
	rc = vfs_access_check(ctx, dir, R_OK);
	if (rc == 0)
		rc = vfs_act_as_root(ctx);
	if (rc == 0)
		rc = vfs_dir_stream_get(dir, cookie, &r.stream);
	if (rc != 0)
		return rc;
	do
		n = give_piece(&r);
	while (n > 0 && !r.full);
	*eof = n == 0;
	if (n < 0 || r.full)
		r.stream->pos = UINT64_MAX; /* the descriptor stands beyond: seek */
	vfs_dir_stream_put(dir, r.stream);
	return n < 0 ? (int)n : 0;
}
