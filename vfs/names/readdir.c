/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directories are read in pieces, up to what the rest of a reply may hold, so that going on from a
 * cookie costs what is returned. What was read beyond the last entry that was taken is read again
 * next time: it may have changed.
 *
 * Where helpers look ahead, a piece is read before the one in front of it is handed over, so that
 * they have something to look at all the time.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/handle_cache.h"
#include "vfs/meta/permission.h"
#include "vfs/names/ahead.h"
#include "vfs/node/dir_stream.h"
#include "vfs/worker/worker_state.h"

#define PIECE VFS_AHEAD_BYTES
#define PIECE_MIN 288 /* getdents64 needs 280 for the longest name */
#define FETCH_AHEAD 8u
#define ENTRY 32u /* bytes of an entry in a piece: a guess before the first */

struct reading {
	struct vfs_ctx *ctx;
	struct vfs_node *dir;
	struct vfs_dir_stream *stream;
	const struct vfs_listing *to;
	uint32_t volume; /* of the directory, as in struct vfs_inode_key */
	long bytes;	 /* bytes of the entries that were handed over */
	long entries;	 /* their number */
	bool full;	 /* the last of them had no room */
	bool beyond;	 /* a piece was read and not handed over */
	_Alignas(struct dirent64) char own[PIECE];
};

/* Entries that were read from the stream. */
struct piece {
	char *buf;
	long bytes;		       /* 0: the end of the directory; negative: -errno */
	struct vfs_ahead_piece *ahead; /* NULL: nobody looks ahead, and buf is reading.own */
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
static bool readdir_give(struct reading *r, const struct dirent64 *d, const struct vfs_shown *shown)
{
	struct vfs_dirent de = {
		.name = d->d_name,
		.len = (uint32_t)strlen(d->d_name),
		.fileid = fileid_of_dir(r, d),
		.cookie = (uint64_t)d->d_off,
		.type = d->d_type,
		.shown = shown,
	};

	if (strcmp(d->d_name, "..") == 0 && vfs_node_is_root(r->dir))
		de.fileid = r->dir->exp->root_ino;
	if (!r->to->each(r->to->arg, &de))
		return false;
	r->stream->pos = de.cookie;
	return true;
}

static uint32_t volume_of(const struct vfs_node *dir)
{
	uint64_t ino, volume;

	return vfs_fh_subvolume(&dir->fh, &ino, &volume) ? (uint32_t)volume : 0;
}

/* Has the processor fetch what is known of an entry's inode. */
static void prefetch(const struct reading *r, const struct dirent64 *d)
{
	const struct vfs_inode_key key = { .ino = d->d_ino,
					   .mount = r->dir->mnt->serial,
					   .volume = r->volume };

	vfs_handle_cache_prefetch(r->dir->vfs->handles, &key);
}

static void give_piece(struct reading *r, const struct piece *p)
{
	const bool fetch = r->to->looks && r->dir->vfs->handles;
	unsigned i = 0, nfetched = 0;
	long fetched = 0;

	for (long at = 0; at < p->bytes && !r->full; i++) {
		const struct dirent64 *d = (const struct dirent64 *)(p->buf + at);

		for (; fetch && fetched < p->bytes && nfetched < i + FETCH_AHEAD; nfetched++) {
			const struct dirent64 *next = (const struct dirent64 *)(p->buf + fetched);

			prefetch(r, next);
			fetched += next->d_reclen;
		}
		r->full = !readdir_give(r, d, p->ahead ? vfs_ahead_shown(p->ahead, i) : NULL);
		at += d->d_reclen;
		r->bytes += d->d_reclen;
	}
	r->entries += i;
}

/* Entries that the caller has room for, as far as it knows. */
static unsigned readdir_expected(const struct reading *r)
{
	return r->to->expect ? r->to->expect(r->to->arg) : UINT_MAX;
}

/* Average bytes of an entry in a piece. */
static size_t entry_bytes(const struct reading *r)
{
	return r->entries > 0 ? (size_t)(r->bytes / r->entries) : ENTRY;
}

static size_t readdir_piece_size(const struct reading *r, unsigned entries, size_t max)
{
	const size_t each = entry_bytes(r);

	return entries < max / each ? rn_max(entries * each, PIECE_MIN) : max;
}

/* Reads a piece of which n entries are wanted. */
static void read_piece(struct reading *r, unsigned n, struct piece *p)
{
	struct vfs_ahead *helpers = r->dir->vfs->ahead;

	p->ahead = NULL;
	if (r->to->looks && n >= VFS_AHEAD_NAMES)
		p->ahead = vfs_ahead_take(helpers, r->ctx, r->dir);
	p->buf = p->ahead ? vfs_ahead_buffer(p->ahead) : r->own;
	p->bytes = syscall(SYS_getdents64, r->stream->fd, p->buf, readdir_piece_size(r, n, PIECE));
	if (p->bytes < 0) /* ENOENT: the directory was removed */
		p->bytes = errno == ENOENT ? -ESTALE : -errno;
	if (p->bytes > 0 && p->ahead)
		vfs_ahead_offer(helpers, p->ahead, p->bytes, n);
}

static void drop_piece(const struct reading *r, const struct piece *p)
{
	if (p->ahead)
		vfs_ahead_give(r->dir->vfs->ahead, p->ahead);
}

/* Reads the piece behind now, if there is work for helpers in it and now is not in the same
 * buffer. */
static bool readdir_read_next(struct reading *r, const struct piece *now, struct piece *next)
{
	const size_t have = (size_t)now->bytes / entry_bytes(r);
	const unsigned n = readdir_expected(r);

	if (!now->ahead || n < have + VFS_AHEAD_NAMES)
		return false;
	read_piece(r, n - (unsigned)have, next);
	return true;
}

/* Hands over pieces until there is no room: 1, or 0 at the end of the directory, or -errno. */
static long give_pieces(struct reading *r)
{
	struct piece now, next;

	read_piece(r, readdir_expected(r), &now);
	while (now.bytes > 0) {
		r->beyond = readdir_read_next(r, &now, &next);
		give_piece(r, &now);
		drop_piece(r, &now);
		if (r->full || readdir_expected(r) == 0) {
			if (r->beyond)
				drop_piece(r, &next);
			return 1;
		}
		if (!r->beyond)
			read_piece(r, readdir_expected(r), &next);
		now = next;
	}
	drop_piece(r, &now);
	return now.bytes;
}

/* The buffer is not cleared. */
static void readdir_begin(struct reading *r, struct vfs_ctx *ctx, struct vfs_node *dir,
			  const struct vfs_listing *to)
{
	r->ctx = ctx;
	r->dir = dir;
	r->to = to;
	r->volume = volume_of(dir);
	r->bytes = r->entries = 0;
	r->full = r->beyond = false;
}

int vfs_readdir(struct vfs_ctx *ctx, struct vfs_node *dir, uint64_t cookie,
		const struct vfs_listing *to, bool *eof)
{
	struct reading r;
	long n;
	int rc;

	*eof = false;
	readdir_begin(&r, ctx, dir, to);
	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	if (cookie > INT64_MAX)
		return -EINVAL;
	rc = vfs_access_check(ctx, dir, R_OK);
	if (rc == 0 && vfs_node_is_covered(ctx, dir)) {
		*eof = true;
		return 0;
	}
	if (rc == 0)
		rc = vfs_act_as_root(ctx);
	if (rc == 0)
		rc = vfs_dir_stream_get(dir, cookie, &r.stream);
	if (rc != 0)
		return rc;
	n = give_pieces(&r);
	*eof = n == 0;
	if (n < 0 || r.full || r.beyond)
		r.stream->pos = UINT64_MAX; /* the descriptor stands beyond: seek */
	vfs_dir_stream_put(dir, r.stream);
	return n < 0 ? (int)n : 0;
}
