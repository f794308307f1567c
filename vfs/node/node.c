/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/file_state.h"
#include "vfs/fs/change.h"
#include "vfs/mount_table.h"
#include "vfs/node/hooks.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

uint32_t vfs_node_type(const struct vfs_node *n)
{
	return n->type;
}

bool vfs_node_is_root(const struct vfs_node *n)
{
	const struct vfs_fh *root = &n->exp->root_fh;

	return n->mnt == n->exp->root_mnt && n->fh.len == root->len &&
	       memcmp(n->fh.data, root->data, root->len) == 0;
}

const struct vfs_fh *vfs_node_fh(const struct vfs_node *n)
{
	return &n->fh;
}

uint64_t vfs_mounted_on(const struct vfs_node *n, uint64_t fileid)
{
	const struct vfs_fh *root = &n->mnt->root_fh;

	if (n->mnt->covered_ino == 0 || n->fh.len != root->len ||
	    memcmp(n->fh.data, root->data, root->len) != 0)
		return fileid;
	return n->mnt->covered_ino;
}

int vfs_node_stat(struct vfs_node *n, struct statx *out)
{
	if (statx(n->path_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, out) != 0)
		return -errno;
	if (out->stx_nlink > 0 || vfs_unlinked_link_lost(n))
		return 0;
	vfs_node_doom(n);
	return -ESTALE;
}

void vfs_node_changed(struct vfs_node *n)
{
	vfs_change_made(vfs_changes_of(n->mnt, n->type), n->dev, n->ino, 0);
}

int vfs_dir_error(struct vfs_node *dir, int error)
{
	struct statx sx;

	return error == -ENOENT && vfs_node_stat(dir, &sx) == -ESTALE ? -ESTALE : error;
}

void vfs_node_drop_removed(struct vfs_node *n)
{
	struct statx sx;

	if (n)
		vfs_node_stat(n, &sx);
	vfs_node_put(n);
}

static int data_fd_open_flags(const struct vfs_node *n, enum vfs_fd_kind kind)
{
	static const int flags[VFS_FD_KINDS] = {
		[VFS_FD_READ] = O_RDONLY,
		[VFS_FD_WRITE] = O_RDWR,
		[VFS_FD_READ_DIRECT] = O_RDONLY | O_DIRECT,
		[VFS_FD_WRITE_DIRECT] = O_RDWR | O_DIRECT,
		[VFS_FD_ERRORS] = O_RDONLY,
	};

	/* Anything else must never be opened: a FIFO blocks, a device acts. */
	if (n->type == S_IFREG)
		return flags[kind];
	return n->type == S_IFDIR && kind == VFS_FD_READ ? O_RDONLY | O_DIRECTORY : -EINVAL;
}

/*
 * Takes the node's open_lock, as root. A thread that must not block opens regular files for reading only: to open
 * for writing may read a quota from the disk, a directory is read ahead, an eviction may delete a
 * file, and an open guard has to be passed.
 */
static int begin_open(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_fd_kind kind)
{
	int rc;

	if (vfs_worker_on_event_thread(vfs_worker_of(ctx)) && n->type == S_IFREG &&
	    kind == VFS_FD_READ && vfs_fd_has_room(n->vfs) && !vfs_is_guarded(n->vfs, &n->fh) &&
	    pthread_mutex_trylock(&n->open_lock) == 0)
		return 0;
	rn_fiber_move(ctx->fiber);
	rc = vfs_act_as_root(ctx);
	if (rc == 0)
		pthread_mutex_lock(&n->open_lock);
	return rc;
}

int vfs_node_fd(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_fd_kind kind)
{
	int fd = atomic_load_explicit(&n->data_fd[kind], memory_order_acquire);
	int flags, rc;

	if (fd >= 0)
		return fd;
	flags = data_fd_open_flags(n, kind);
	rc = flags < 0 ? flags : begin_open(ctx, n, kind);
	if (rc != 0)
		return rc;
	fd = atomic_load_explicit(&n->data_fd[kind], memory_order_relaxed);
	if (fd < 0) {
		fd = vfs_fd_reopen_data(n->vfs, n->path_fd, flags);
		if (fd >= 0)
			atomic_store_explicit(&n->data_fd[kind], fd, memory_order_release);
	}
	pthread_mutex_unlock(&n->open_lock);
	return fd;
}

int vfs_node_readable_fd(struct vfs_ctx *ctx, struct vfs_node *n)
{
	int fd = atomic_load_explicit(&n->data_fd[VFS_FD_WRITE], memory_order_acquire);

	return fd >= 0 ? fd : vfs_node_fd(ctx, n, VFS_FD_READ);
}

void vfs_node_adopt_fd(struct vfs_node *n, enum vfs_fd_kind kind, int fd)
{
	/* Under the lock: an open of the same kind may be under way. */
	pthread_mutex_lock(&n->open_lock);
	if (atomic_load_explicit(&n->data_fd[kind], memory_order_relaxed) < 0) {
		atomic_store_explicit(&n->data_fd[kind], fd, memory_order_release);
		fd = -1;
	}
	pthread_mutex_unlock(&n->open_lock);
	vfs_fd_close(n->vfs, fd);
}

static int compare_covered(const void *a, const void *b)
{
	const struct vfs_covered *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino > y->ino ? 1 : -1;
	return (x->dev > y->dev) - (x->dev < y->dev);
}

/* Under covered_lock. A mount on top of another one covers nothing of the export's. False: no memory. */
static bool list_covered(struct vfs_export *exp)
{
	struct vfs_mount_table t;
	bool whole = true;

	if (vfs_mount_table_load(&t) != 0)
		return false;
	exp->ncovered = 0;
	for (size_t i = 0; i < t.n && whole; i++) {
		const struct vfs_mount_entry *e = &t.entry[i];
		struct vfs_covered *grown;

		if (e->parent != exp->place_mnt_id || !vfs_path_below(e->path, exp->real_path))
			continue;
		grown = reallocarray(exp->covered, exp->ncovered + 1, sizeof(*grown));
		whole = grown;
		if (!grown)
			break;
		exp->covered = grown;
		exp->covered[exp->ncovered++] = vfs_covered_by(e->path);
	}
	vfs_mount_table_free(&t);
	if (exp->ncovered > 0)
		qsort(exp->covered, exp->ncovered, sizeof(*exp->covered), compare_covered);
	return whole;
}

static bool is_listed(const struct vfs_export *exp)
{
	return atomic_load_explicit(&exp->covered_at, memory_order_acquire) ==
	       atomic_load_explicit(&exp->vfs->table_generation, memory_order_relaxed);
}

static void covered_lock_export(struct vfs_ctx *ctx, struct vfs_export *exp)
{
	if (vfs_worker_on_event_thread(vfs_worker_of(ctx)) && is_listed(exp) &&
	    pthread_mutex_trylock(&exp->covered_lock) == 0)
		return;
	rn_fiber_move(ctx->fiber);
	pthread_mutex_lock(&exp->covered_lock);
}

static bool search(struct vfs_ctx *ctx, struct vfs_export *exp, const struct vfs_node *n)
{
	const struct vfs_covered key = { n->ino, n->dev };
	bool found;

	covered_lock_export(ctx, exp);
	if (!is_listed(exp) && vfs_act_as_root(ctx) == 0) {
		const uint64_t now = atomic_load(&exp->vfs->table_generation);

		if (list_covered(exp)) {
			atomic_store(&exp->any_covered, exp->ncovered > 0);
			atomic_store(&exp->covered_at, now);
		}
	}
	found = exp->ncovered > 0 &&
		bsearch(&key, exp->covered, exp->ncovered, sizeof(*exp->covered), compare_covered);
	pthread_mutex_unlock(&exp->covered_lock);
	return found;
}

bool vfs_node_is_covered(struct vfs_ctx *ctx, const struct vfs_node *n)
{
	struct vfs_export *exp = n->exp;

	if (n->mnt != exp->root_mnt ||
	    (is_listed(exp) && !atomic_load_explicit(&exp->any_covered, memory_order_relaxed)))
		return false;
	return search(ctx, exp, n);
}

int vfs_check_writable(struct vfs_ctx *ctx, const struct vfs_node *n)
{
	if (ctx->access.flags & VFS_RO)
		return -EROFS;
	/* The thread that follows mounts may not have seen the last one yet. */
	if (n->type == S_IFDIR)
		vfs_mounts_generation(ctx->vfs);
	return vfs_node_is_covered(ctx, n) ? -EACCES : 0;
}

#define IDLE_MAX 4 /* per directory */

/* Takes the idle stream that stands at cookie, or else any one. */
static struct vfs_dir_stream *dir_stream_take_idle(struct vfs_node *n, uint64_t cookie)
{
	struct vfs_dir_stream **at, *s;

	pthread_mutex_lock(&n->open_lock);
	for (at = &n->streams; *at && (*at)->pos != cookie; at = &(*at)->next)
		;
	if (!*at)
		at = &n->streams;
	s = *at;
	if (s)
		*at = s->next;
	pthread_mutex_unlock(&n->open_lock);
	return s;
}

static int stream_open(struct vfs_node *n, struct vfs_dir_stream **out)
{
	struct vfs_dir_stream *s = calloc(1, sizeof(*s));
	int fd;

	if (!s)
		return -ENOMEM;
	fd = vfs_fd_reopen_data(n->vfs, n->path_fd, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		free(s);
		return fd;
	}
	s->fd = fd;
	*out = s;
	return 0;
}

static void stream_close(struct vfs_node *n, struct vfs_dir_stream *s)
{
	vfs_fd_close(n->vfs, s->fd);
	free(s);
}

/*
 * An idle stream may hold what the directory was when it was read last, which another listing has done. btrfs ends it
 * where the directory ended when it was opened, until it is sought, if only to where it stands. ext4 goes on with the
 * entries that it has in memory, past what has come between two of them since, unless it was read elsewhere meanwhile.
 */
static int seek(struct vfs_dir_stream *s, uint64_t cookie)
{
	char entry[512];

	if (cookie != 0 && lseek(s->fd, 0, SEEK_CUR) == (off_t)cookie &&
	    lseek(s->fd, 0, SEEK_SET) == 0 &&
	    syscall(SYS_getdents64, s->fd, entry, sizeof(entry)) < 0)
		return -errno;
	return lseek(s->fd, (off_t)cookie, SEEK_SET) < 0 ? -errno : 0;
}

int vfs_dir_stream_get(struct vfs_node *n, uint64_t cookie, struct vfs_dir_stream **out)
{
	struct vfs_dir_stream *s = dir_stream_take_idle(n, cookie);
	int rc;

	if (!s) {
		rc = stream_open(n, &s);
		if (rc != 0)
			return rc;
	}
	rc = seek(s, cookie);
	if (rc != 0) {
		stream_close(n, s);
		return rc;
	}
	s->pos = cookie;
	*out = s;
	return 0;
}

void vfs_dir_stream_put(struct vfs_node *n, struct vfs_dir_stream *s)
{
	unsigned idle = 0;

	pthread_mutex_lock(&n->open_lock);
	for (const struct vfs_dir_stream *i = n->streams; i; i = i->next)
		idle++;
	if (idle < IDLE_MAX) {
		s->next = n->streams;
		n->streams = s;
		s = NULL;
	}
	pthread_mutex_unlock(&n->open_lock);
	if (s)
		stream_close(n, s);
}

void vfs_dir_streams_close(struct vfs_node *n)
{
	struct vfs_dir_stream *s;

	while ((s = n->streams) != NULL) {
		n->streams = s->next;
		stream_close(n, s);
	}
}
