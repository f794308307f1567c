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
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/handle_cache.h"
#include "vfs/meta/attr.h"
#include "vfs/names/node_open.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

/*
 * Looking ahead in a listing. A worker goes through a piece of a directory from its first name on.
 * Helper threads meanwhile look at the same names by statx(2) from the last one back, so that the
 * two meet. A name is looked at by whoever comes to it first.
 *
 * - A helper has the identity of the caller while it looks, so it sees what the caller may see.
 * - A worker never waits for a helper. A name that a helper has begun and not finished is looked at
 *   by the worker, too, and a helper that hangs in a file system that does not answer keeps its
 *   piece to itself.
 * - Names are looked at after the call has come, and what was found is for this call alone.
 *
 * Helpers and pieces are few: listings that find none do without. The lock is a leaf.
 */
#define VFS_AHEAD_BYTES 8192u /* room for entries of getdents64(2) */

#define VFS_AHEAD_NAMES 64u /* fewer are looked at sooner than a thread is woken */
#define HELPERS_MAX 3u
#define PIECES_OF(helpers) (2 * ((helpers) + 1)) /* a listing has two at a time */
#define PIECES_MAX PIECES_OF(HELPERS_MAX)
#define NAMES_MAX (VFS_AHEAD_BYTES / 24) /* the shortest entry of getdents64 has 24 bytes */

/* A slot belongs to whoever has changed it from FREE to TAKEN. DONE: a helper's look is in it.
 * OWN: helpers leave it to the worker. */
enum slot_state { FREE, TAKEN, DONE, OWN };

struct slot {
	_Atomic enum slot_state state;
	uint32_t at; /* offset of the entry in the buffer */
	struct vfs_shown shown;
};

struct vfs_ahead_piece {
	struct vfs_ahead_piece *next; /* in the list of free ones */
	struct vfs_node *dir;	      /* one reference while the piece is in use */
	struct vfs_cred cred;	      /* the caller's */
	unsigned users;		      /* worker and helpers; guarded by vfs_ahead.lock */
	_Atomic bool over;	      /* the worker has given it back */
	unsigned n;		      /* slots in use */
	_Atomic unsigned back;	      /* slots taken from the end */
	_Alignas(struct dirent64) char buf[VFS_AHEAD_BYTES];
	struct slot slot[NAMES_MAX];
};

struct vfs_ahead {
	pthread_mutex_t lock;
	pthread_cond_t offered;
	struct vfs_ahead_piece *open[PIECES_MAX]; /* pieces that helpers may join */
	struct vfs_ahead_piece *free;
	struct rn_budget *budget; /* NULL: pieces are not counted */
	unsigned npieces;	  /* pieces that were made */
	unsigned helpers, nthreads;
	bool stop;
	pthread_t thread[HELPERS_MAX];
};

struct vfs_ahead *vfs_ahead_new(unsigned helpers, struct rn_budget *budget)
{
	struct vfs_ahead *a = helpers > 0 ? calloc(1, sizeof(*a)) : NULL;

	if (!a)
		return NULL;
	a->helpers = helpers < HELPERS_MAX ? helpers : HELPERS_MAX;
	a->budget = budget;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->offered, NULL);
	return a;
}

void vfs_ahead_free(struct vfs_ahead *a)
{
	struct vfs_ahead_piece *p;

	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->offered);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < a->nthreads; i++)
		pthread_join(a->thread[i], NULL);
	while ((p = a->free) != NULL) {
		a->free = p->next;
		free(p);
		if (a->budget)
			rn_budget_give(a->budget, sizeof(*p));
	}
	pthread_cond_destroy(&a->offered);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* Drops one use of the piece. The last one frees it for the next listing. */
static void ahead_leave_piece(struct vfs_ahead *a, struct vfs_ahead_piece *p)
{
	struct vfs_node *dir = NULL;

	pthread_mutex_lock(&a->lock);
	if (--p->users == 0) {
		dir = p->dir;
		p->dir = NULL;
		p->next = a->free;
		a->free = p;
	}
	pthread_mutex_unlock(&a->lock);
	vfs_node_put(dir);
}

static const struct dirent64 *entry_of(const struct vfs_ahead_piece *p, const struct slot *s)
{
	return (const struct dirent64 *)(p->buf + s->at);
}

static bool ahead_take_slot(struct slot *s)
{
	enum slot_state expected = FREE;

	return atomic_compare_exchange_strong(&s->state, &expected, TAKEN);
}

static void ahead_stat_slot(const struct vfs_ahead_piece *p, struct slot *s)
{
	s->shown.clock = (int64_t)rn_wall_coarse_ns();
	if (vfs_statx_name(p->dir->path_fd, entry_of(p, s)->d_name, &s->shown.sx) == 0)
		atomic_store_explicit(&s->state, DONE, memory_order_release);
}

/* Looks at names from the end until it meets the worker. */
static void ahead_help(struct vfs_ahead_piece *p, struct vfs_identity *identity)
{
	unsigned back;

	if (vfs_identity_become(identity, &p->cred) != 0)
		return;
	while (!atomic_load_explicit(&p->over, memory_order_relaxed) &&
	       (back = atomic_fetch_add(&p->back, 1)) < p->n) {
		struct slot *s = &p->slot[p->n - 1 - back];

		if (ahead_take_slot(s))
			ahead_stat_slot(p, s);
		else if (atomic_load_explicit(&s->state, memory_order_relaxed) == TAKEN)
			break;
	}
}

/* Under the lock: a piece to join, which is closed to others when its helpers are enough. */
static struct vfs_ahead_piece *ahead_join_piece(struct vfs_ahead *a)
{
	for (unsigned i = 0; i < PIECES_MAX; i++) {
		struct vfs_ahead_piece *p = a->open[i];

		if (!p)
			continue;
		p->users++;
		if (p->users > a->helpers)
			a->open[i] = NULL;
		return p;
	}
	return NULL;
}

/* Under the lock: no further helper joins the piece. */
static void close_piece(struct vfs_ahead *a, const struct vfs_ahead_piece *p)
{
	for (unsigned i = 0; i < PIECES_MAX; i++) {
		if (a->open[i] == p)
			a->open[i] = NULL;
	}
}

static void *helper_main(void *arg)
{
	struct vfs_identity identity = { 0 };
	struct vfs_ahead *a = arg;
	struct vfs_ahead_piece *p;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		p = ahead_join_piece(a);
		if (!p) {
			pthread_cond_wait(&a->offered, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		ahead_help(p, &identity);
		vfs_identity_root(&identity); /* a node may be closed */
		pthread_mutex_lock(&a->lock);
		close_piece(a, p); /* nothing is left in it */
		pthread_mutex_unlock(&a->lock);
		ahead_leave_piece(a, p);
		pthread_mutex_lock(&a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Under the lock. */
static void ahead_start_threads(struct vfs_ahead *a)
{
	while (a->nthreads < a->helpers) {
		if (pthread_create(&a->thread[a->nthreads], NULL, helper_main, a) != 0) {
			a->helpers = a->nthreads;
			return;
		}
		pthread_setname_np(a->thread[a->nthreads++], "ahead");
	}
}

/* Under the lock: a free piece, or a new one. */
static struct vfs_ahead_piece *find_piece(struct vfs_ahead *a)
{
	struct vfs_ahead_piece *p = a->free;

	if (p) {
		a->free = p->next;
		return p;
	}
	if (a->npieces == PIECES_OF(a->helpers) ||
	    (a->budget && !rn_budget_take(a->budget, sizeof(*p))))
		return NULL;
	p = malloc(sizeof(*p));
	if (p)
		a->npieces++;
	else if (a->budget)
		rn_budget_give(a->budget, sizeof(*p));
	return p;
}

/* A piece for a listing of dir by the caller; NULL: there is none. a may be NULL. */
static struct vfs_ahead_piece *vfs_ahead_take(struct vfs_ahead *a, const struct vfs_ctx *ctx,
					      struct vfs_node *dir)
{
	struct vfs_ahead_piece *p;

	if (!a)
		return NULL;
	pthread_mutex_lock(&a->lock);
	ahead_start_threads(a);
	p = a->helpers > 0 ? find_piece(a) : NULL;
	pthread_mutex_unlock(&a->lock);
	if (!p)
		return NULL;
	vfs_node_ref(dir);
	p->dir = dir;
	p->cred = ctx->cred;
	p->users = 1;
	p->n = 0;
	atomic_store(&p->over, false);
	atomic_store(&p->back, 0);
	return p;
}

/* Memory of the piece: VFS_AHEAD_BYTES. */
static char *vfs_ahead_buffer(struct vfs_ahead_piece *p)
{
	return p->buf;
}

/* "." and ".." are looked up in another way. */
static void fill_slots(struct vfs_ahead_piece *p, long bytes, unsigned n)
{
	uint32_t at = 0;

	while (p->n < n && p->n < NAMES_MAX && at < bytes) {
		struct slot *s = &p->slot[p->n++];
		const struct dirent64 *d = (const struct dirent64 *)(p->buf + at);

		s->at = at;
		atomic_store_explicit(&s->state, vfs_name_is_dots(d->d_name) ? OWN : FREE,
				      memory_order_relaxed);
		at += d->d_reclen;
	}
}

/* Has helpers look at the first n entries of the buffer, which has so many bytes of entries. They
 * are left as they are from here on. */
static void vfs_ahead_offer(struct vfs_ahead *a, struct vfs_ahead_piece *p, long bytes, unsigned n)
{
	if (n < VFS_AHEAD_NAMES)
		return;
	fill_slots(p, bytes, n);
	if (p->n < VFS_AHEAD_NAMES)
		return;
	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; i < PIECES_MAX; i++) {
		if (!a->open[i]) {
			a->open[i] = p;
			break;
		}
	}
	pthread_cond_broadcast(&a->offered);
	pthread_mutex_unlock(&a->lock);
}

/* The result of a helper's look at entry i, which the worker has come to; NULL: the worker is to look itself. Valid until
 * the piece is given back. */
static const struct vfs_shown *vfs_ahead_shown(struct vfs_ahead_piece *p, unsigned i)
{
	struct slot *s;

	if (i >= p->n)
		return NULL;
	s = &p->slot[i];
	if (ahead_take_slot(s))
		return NULL;
	return atomic_load_explicit(&s->state, memory_order_acquire) == DONE ? &s->shown : NULL;
}

/* Gives the piece back. Helpers leave it at their next name. */
static void vfs_ahead_give(struct vfs_ahead *a, struct vfs_ahead_piece *p)
{
	atomic_store_explicit(&p->over, true, memory_order_relaxed);
	pthread_mutex_lock(&a->lock);
	close_piece(a, p);
	pthread_mutex_unlock(&a->lock);
	ahead_leave_piece(a, p);
}

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
