/* SPDX-License-Identifier: BSD-2-Clause */
/*
* A share is possible or not by the numbers of shares that have each bit. Only if it is not, the one in
 * the way is looked for, and moved to the front: whoever asks again finds it at once.
 */
#include "vfs/share.h"

#include <errno.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/unlinked.h"
#include "vfs/node/cache.h"
#include "vfs/node/uncommitted.h"
#include "vfs/vfs_worker.h"

static void share_fill_conflict(struct vfs_conflict *c, const struct vfs_share *s)
{
	if (!c)
		return;
	*c = (struct vfs_conflict){ .holder = s->holder, .access = s->access, .deny = s->deny };
	if (c->holder)
		c->holder->ops->ref(c->holder);
}

/* Adds by (1 or -1) to the numbers of f's shares with these bits. */
static void count_bits(struct vfs_file *f, const struct vfs_share *s, int by)
{
	for (unsigned i = 0; i < 2; i++) {
		if (s->access >> i & 1)
			f->accessing[i] += (uint32_t)by;
		if (s->deny >> i & 1)
			f->denying[i] += (uint32_t)by;
		if (s->advisory && s->deny >> i & 1)
			f->advising[i] += (uint32_t)by;
	}
	if (s->deny && !s->advisory)
		atomic_fetch_add(&f->vfs->files->denying, (uint64_t)by);
}

/* True if a share with that access and deny is impossible beside all others but self. */
static bool is_refused(const struct vfs_file *f, const struct vfs_share *self, uint8_t access,
		       uint8_t deny)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t denying = f->denying[i] - (self ? self->deny >> i & 1u : 0);
		uint32_t accessing = f->accessing[i] - (self ? self->access >> i & 1u : 0);

		if ((access >> i & 1 && denying) || (deny >> i & 1 && accessing))
			return true;
	}
	return false;
}

/* True if s is to be named instead of best (or NULL), which is in the way, too. */
static bool share_is_better(const struct vfs_share *s, const struct vfs_share *best)
{
	return !best ||
	       (vfs_holder_is_yielding(best->holder) && !vfs_holder_is_yielding(s->holder));
}

/* The share that is in the way. */
static void share_found_conflict(struct vfs_file *f, struct vfs_share *s, struct vfs_conflict *c)
{
	LIST_REMOVE(s, link);
	LIST_INSERT_HEAD(&f->shares, s, link);
	share_fill_conflict(c, s);
}

bool vfs_share_may_deny(const struct vfs *vfs, uint8_t deny)
{
	return deny == 0 || !vfs->cfg.shared;
}

/* 0 or -RN_ESHARE. */
static int share_check_access(struct vfs_file *f, const struct vfs_share *self, uint8_t access,
			      uint8_t deny, struct vfs_conflict *c)
{
	struct vfs_share *s, *best = NULL;

	if (!vfs_share_may_deny(f->vfs, deny))
		return -RN_ESHARE;
	if (!is_refused(f, self, access, deny))
		return 0;
	LIST_FOREACH (s, &f->shares, link) {
		if (s != self && ((s->deny & access) || (s->access & deny)) &&
		    share_is_better(s, best))
			best = s;
		if (best && !vfs_holder_is_yielding(best->holder))
			break;
	}
	if (best)
		share_found_conflict(f, best, c);
	return -RN_ESHARE;
}

/* Under f->lock, which is given up in between if the result is not 0. */
static int check_delegs(struct vfs_file *f, const struct vfs_share *s, uint8_t access, uint8_t deny)
{
	const struct vfs_file_use u = { .client = s->client,
					.use = vfs_deleg_use_of_share(access, deny) };

	if (!vfs_deleg_conflicts(f, &u))
		return 0;
	vfs_deleg_recall(f, &u);
	return -RN_EDELEG;
}

void vfs_share_insert(struct vfs_file *f, struct vfs_share *s)
{
	LIST_INSERT_HEAD(&f->shares, s, link);
	f->nshares++;
	count_bits(f, s, 1);
	atomic_fetch_add(&f->vfs->files->shares, 1);
}

static int share_add(struct vfs_file *f, struct vfs_share *s, struct vfs_conflict *c)
{
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = share_check_access(f, NULL, s->access, s->deny, c);
	if (rc == 0)
		rc = check_delegs(f, s, s->access, s->deny);
	if (rc == 0)
		vfs_share_insert(f, s);
	pthread_mutex_unlock(&f->lock);
	return rc;
}

int vfs_share_open(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_share *s,
		   const struct vfs_share_request *r, struct vfs_conflict *c)
{
	struct vfs_file *f;
	int rc;

	*s = (struct vfs_share){
		.holder = r->holder, .access = r->access, .deny = r->deny, .client = ctx->client
	};
	if (n->type != S_IFREG)
		return n->type == S_IFDIR ? -EISDIR : -EINVAL;
	rc = vfs_file_get(ctx, n, &f);
	if (rc != 0)
		return rc;
	rc = share_add(f, s, c);
	if (rc != 0) {
		vfs_file_put(f);
		return rc;
	}
	s->file = f;
	vfs_unlinked_share_made(n);
	return 0;
}

int vfs_share_check(struct vfs_file *f, uint8_t access, uint8_t deny, struct vfs_conflict *c)
{
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = share_check_access(f, NULL, access, deny, c);
	pthread_mutex_unlock(&f->lock);
	return rc;
}

int vfs_share_change(struct vfs_share *s, uint8_t access, uint8_t deny, struct vfs_conflict *c)
{
	const uint8_t more_access = access & ~s->access, more_deny = deny & ~s->deny;
	struct vfs_file *f = s->file;
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = share_check_access(f, s, access, deny, c);
	if (rc == 0 && (more_access || more_deny))
		rc = check_delegs(f, s, more_access, more_deny);
	if (rc == 0) {
		count_bits(f, s, -1);
		s->access = access;
		s->deny = deny;
		count_bits(f, s, 1);
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

void vfs_share_advise(struct vfs_share *s)
{
	pthread_mutex_lock(&s->file->lock);
	s->advisory = true;
	pthread_mutex_unlock(&s->file->lock);
}

void vfs_share_close(struct vfs_share *s)
{
	struct vfs_file *f = s->file;
	int fd;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	LIST_REMOVE(s, link);
	f->nshares--;
	count_bits(f, s, -1);
	atomic_fetch_sub(&f->vfs->files->shares, 1);
	fd = vfs_file_release(f);
	pthread_mutex_unlock(&f->lock);
	s->file = NULL;
	vfs_fd_close(f->vfs, fd);
	vfs_file_put(f);
}

bool vfs_share_pins(const struct vfs_share *s)
{
	struct vfs_file *f = s->file;
	bool pins;

	pthread_mutex_lock(&f->lock);
	pins = f->fd >= 0 && f->nshares == 1;
	pthread_mutex_unlock(&f->lock);
	return pins;
}

bool vfs_share_ends_writing(const struct vfs_share *s, const struct vfs_node *n)
{
	struct vfs_file *f = s->file;
	bool last;

	if (!(s->access & VFS_SHARE_WRITE) || (atomic_load(&n->data_fd[VFS_FD_WRITE]) < 0 &&
					       atomic_load(&n->data_fd[VFS_FD_WRITE_DIRECT]) < 0))
		return false;
	pthread_mutex_lock(&f->lock);
	last = f->accessing[1] == 1 && !f->delegs.writing;
	pthread_mutex_unlock(&f->lock);
	return last;
}

void vfs_share_end_writing(struct vfs_node *n)
{
	if (!vfs_uncommitted_any(n)) {
		vfs_cache_close_written(n);
	} else if (vfs_uncommitted_may_flush(n)) {
		vfs_node_ref(n);
		if (vfs_flush(n)) {
			vfs_node_put(n);
			vfs_cache_close_written(n);
		}
	}
}

/* Under f->lock. share_check_access() for a read or write: advisory shares do not count. self is not advisory. */
static int check_io(struct vfs_file *f, const struct vfs_share *self, uint8_t access,
		    struct vfs_conflict *c)
{
	struct vfs_share *s, *best = NULL;
	bool refused = false;

	for (unsigned i = 0; i < 2; i++)
		refused |= (access >> i & 1) &&
			   f->denying[i] - f->advising[i] > (self ? self->deny >> i & 1u : 0);
	if (!refused)
		return 0;
	LIST_FOREACH (s, &f->shares, link) {
		if (s != self && !s->advisory && (s->deny & access) && share_is_better(s, best))
			best = s;
		if (best && !vfs_holder_is_yielding(best->holder))
			break;
	}
	if (best)
		share_found_conflict(f, best, c);
	return -RN_ESHARE;
}

int vfs_share_check_io(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_share *self,
		       uint8_t access, struct vfs_conflict *c)
{
	struct vfs_file *f;
	int rc;

	if (!vfs_share_any_denying(ctx->vfs))
		return 0;
	rn_fiber_move(ctx->fiber); /* whose share it is may have to be found out, and ended */
	f = vfs_file_find(n);
	if (!f)
		return 0;
	pthread_mutex_lock(&f->lock);
	rc = check_io(f, self, access, c);
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
	return rc;
}

bool vfs_share_any_denying(const struct vfs *vfs)
{
	return atomic_load(&vfs->files->denying) > 0;
}

static bool keeps_name(const struct vfs_ctx *ctx, const struct vfs_share *s)
{
	return s->client && s->client != ctx->client && !s->advisory && s->deny & VFS_SHARE_WRITE;
}

int vfs_share_check_name(const struct vfs_ctx *ctx, struct vfs_file *f)
{
	struct vfs_share *s, *best = NULL;

	if (!f || !vfs_share_any_denying(ctx->vfs))
		return 0;
	pthread_mutex_lock(&f->lock);
	LIST_FOREACH (s, &f->shares, link)
		if (keeps_name(ctx, s) && share_is_better(s, best))
			best = s;
	if (best)
		share_fill_conflict(ctx->in_way, best);
	pthread_mutex_unlock(&f->lock);
	return best ? -RN_ESHARE : 0;
}

bool vfs_share_is_only(struct vfs_ctx *ctx, struct vfs_node *n, unsigned own)
{
	struct vfs_file *f;
	bool only;

	if (vfs_file_get(ctx, n, &f) != 0)
		return false;
	pthread_mutex_lock(&f->lock);
	only = f->nshares <= own;
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
	return only;
}
