/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locking has two halves. First all that can fail: memory, the table, whoever waits, the mirror.
 * Then the owner's ranges are changed, with memory that was there before.
 */
#include "vfs/lock.h"

#include <errno.h>
#include <stdlib.h>

#include "vfs/base/instance.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_change.h"
#include "vfs/hold/file_fd.h"
#include "vfs/hold/file_table.h"
#include "vfs/hold/lock_mirror.h"
#include "vfs/hold/lock_wait.h"
#include "vfs/vfs_worker.h"

/* The most that one call adds: its own range, and what is behind it of one that it splits. */
#define SPARES 2u

struct spares {
	struct vfs_range *range[SPARES];
	unsigned count;
};

static bool spares_get(struct spares *s)
{
	for (s->count = 0; s->count < SPARES; s->count++) {
		s->range[s->count] = malloc(sizeof(struct vfs_range));
		if (!s->range[s->count])
			return false;
	}
	return true;
}

static void spares_free(struct spares *s)
{
	while (s->count > 0)
		free(s->range[--s->count]);
}

/*
 * Locked ranges of a file beyond which a thread that must not block leaves its locks to others: one call may
 * change them all, and the kernel walks its list of them.
 */
#define PROMPT_RANGES 1000u

/* Before f->lock is taken, which others may hold as long. */
static void leave_crowd(const struct vfs_ctx *ctx, const struct vfs_file *f)
{
	if (atomic_load_explicit(&f->ranges.count, memory_order_relaxed) > PROMPT_RANGES)
		rn_fiber_move(ctx->fiber);
}

static int to_span(uint64_t offset, uint64_t length, struct vfs_span *out)
{
	out->start = offset;
	out->end = length == UINT64_MAX ? UINT64_MAX : offset + length - 1;
	return length == 0 || (length != UINT64_MAX && offset > UINT64_MAX - (length - 1)) ? -EINVAL
											   : 0;
}

static void lock_fill_conflict(struct vfs_conflict *c, const struct vfs_range *r)
{
	if (!c)
		return;
	*c = (struct vfs_conflict){
		.holder = r->owner->holder,
		.type = r->type,
		.offset = r->start,
		.length = vfs_span_length(&(struct vfs_span){ .start = r->start, .end = r->end }),
	};
	if (c->holder)
		c->holder->ops->ref(c->holder);
}

static void lock_insert_range(struct vfs_lock_owner *o, struct vfs_range *r,
			      const struct vfs_span *span, uint8_t type)
{
	r->owner = o;
	r->start = span->start;
	r->end = span->end;
	r->type = type;
	vfs_range_insert(&o->file->ranges, r);
	atomic_fetch_add(&o->file->vfs->files->locks, 1);
}

static void lock_remove_range(struct vfs_lock_owner *o, struct vfs_range *r)
{
	vfs_range_remove(&o->file->ranges, r);
	atomic_fetch_sub(&o->file->vfs->files->locks, 1);
}

/* Takes span out of r, which overlaps it: what is left of r on either side stays. */
static void lock_cut_range(struct vfs_lock_owner *o, struct vfs_range *r,
			   const struct vfs_span *span, struct spares *spares)
{
	struct vfs_span head = { .start = r->start, .end = span->start - 1 };
	struct vfs_span tail = { .start = span->end + 1, .end = r->end };
	bool has_head = r->start<span->start, has_tail = r->end> span->end;
	uint8_t type = r->type;

	lock_remove_range(o, r);
	if (has_head)
		lock_insert_range(o, r, &head, type);
	if (has_tail)
		lock_insert_range(o, has_head ? spares->range[--spares->count] : r, &tail, type);
	if (!has_head && !has_tail)
		free(r);
}

/* Takes span out of all of the owner's ranges; mirror: and out of the mirror. */
static void lock_clear_span(struct vfs_lock_owner *o, const struct vfs_span *span,
			    struct spares *spares, bool mirror)
{
	struct vfs_range *r = vfs_range_own(o, span->start), *next;

	for (; r && r->start <= span->end; r = next) {
		struct vfs_span gone = {
			.start = r->start > span->start ? r->start : span->start,
			.end = r->end < span->end ? r->end : span->end,
		};

		next = vfs_range_own_next(r);
		lock_cut_range(o, r, span, spares);
		if (mirror)
			vfs_mirror_unlock(o->file, &gone);
	}
}

/* Widens span by the owner's ranges of the same type that it overlaps or touches at its ends. */
static struct vfs_span merged(const struct vfs_lock_owner *o, const struct vfs_span *span,
			      uint8_t type)
{
	struct vfs_span wide = *span;
	struct vfs_range *r = vfs_range_own(o, span->start ? span->start - 1 : 0);

	if (r && r->type == type && r->start < span->start)
		wide.start = r->start;
	r = vfs_range_own(o, span->end < UINT64_MAX ? span->end + 1 : UINT64_MAX);
	if (r && r->type == type && r->end > span->end &&
	    (r->start <= span->end || r->start == span->end + 1))
		wide.end = r->end;
	return wide;
}

/* Under the file's lock: all that may refuse. */
static int lock_check(struct vfs_lock_owner *o, const struct vfs_lock_request *r,
		      const struct vfs_span *span, struct vfs_conflict *c)
{
	struct vfs_file *f = o->file;
	struct vfs_range *other = vfs_range_obstacle(&f->ranges, o, r->type, span);

	if (other) {
		lock_fill_conflict(c, other);
		return -RN_EDENIED;
	}
	if (vfs_wait_kept(f, r, span, c))
		return -RN_EDENIED;
	if (atomic_load(&f->vfs->files->locks) >= f->vfs->cfg.max_locks)
		return -ENOLCK;
	return vfs_mirror_lock(f, r->type, span, c);
}

static int lock_locked(struct vfs_lock_owner *o, const struct vfs_lock_request *r,
		       const struct vfs_span *span, struct spares *spares, struct vfs_conflict *c)
{
	int rc = lock_check(o, r, span, c);

	if (rc != 0)
		return rc;
	if (r->waiter)
		vfs_wait_forget(o->file, r->waiter);
	struct vfs_span wide = merged(o, span, (uint8_t)r->type);

	lock_clear_span(o, &wide, spares, false);
	lock_insert_range(o, spares->range[--spares->count], &wide, (uint8_t)r->type);
	if (r->type == VFS_LOCK_READ) /* it may have been locked to write */
		vfs_wait_freed(o->file);
	return 0;
}

static int lock_take(struct vfs_lock_owner *o, const struct vfs_lock_request *r,
		     const struct vfs_span *span, struct vfs_conflict *c)
{
	struct spares spares;
	int rc = -ENOLCK;

	if (spares_get(&spares)) {
		pthread_mutex_lock(&o->file->lock);
		rc = lock_locked(o, r, span, &spares, c);
		vfs_wait_unlock(o->file);
	}
	spares_free(&spares);
	return rc;
}

/* The holder of a delegation locks the file without a call. */
static enum vfs_deleg_use lock_deleg_use(const struct vfs_lock_request *r)
{
	return r->type == VFS_LOCK_WRITE ? VFS_USE_WRITE : VFS_USE_READ;
}

int vfs_lock(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_lock_owner *o,
	     const struct vfs_lock_request *r, struct vfs_conflict *c)
{
	struct vfs_file_change change;
	struct vfs_span span;
	int rc = to_span(r->offset, r->length, &span);

	if (rc != 0)
		return rc;
	leave_crowd(ctx, o->file);
	/* No delegation is given until the lock is there to see. */
	rc = vfs_file_change_count(ctx->vfs, &n->fh, &change);
	if (rc == 0)
		rc = vfs_deleg_check(ctx, n, lock_deleg_use(r));
	if (rc == 0)
		rc = vfs_mirror_prepare(ctx, n, o->file, r->type);
	if (rc == 0)
		rc = lock_take(o, r, &span, c);
	vfs_file_change_end(&change);
	return rc;
}

int vfs_unlock(struct vfs_ctx *ctx, struct vfs_lock_owner *o, uint64_t offset, uint64_t length)
{
	struct vfs_file *f = o->file;
	struct spares spares;
	struct vfs_span span;
	int rc = to_span(offset, length, &span);
	int fd;

	if (rc != 0 || o->count == 0)
		return rc;
	leave_crowd(ctx, f);
	if (!spares_get(&spares)) {
		spares_free(&spares);
		return -ENOMEM;
	}
	pthread_mutex_lock(&f->lock);
	lock_clear_span(o, &span, &spares, true);
	fd = vfs_file_release(f);
	vfs_wait_freed(f);
	vfs_wait_unlock(f);
	vfs_fd_close(f->vfs, fd);
	spares_free(&spares);
	return 0;
}

void vfs_lock_drop_all(struct vfs_lock_owner *o)
{
	struct vfs_span all = { .start = 0, .end = UINT64_MAX };
	struct vfs_file *f = o->file;
	struct spares none = { .count = 0 };
	int fd;

	if (o->count == 0)
		return;
	pthread_mutex_lock(&f->lock);
	/* One owner alone, however many ranges: one call of the kernel's. */
	bool alone = o->count == f->ranges.count;

	lock_clear_span(o, &all, &none, !alone);
	if (alone)
		vfs_mirror_unlock(f, &all);
	fd = vfs_file_release(f);
	vfs_wait_freed(f);
	vfs_wait_unlock(f);
	vfs_fd_close(f->vfs, fd);
}

void vfs_lock_owner_init(struct vfs_lock_owner *o, struct vfs_file *f, struct vfs_holder *holder)
{
	*o = (struct vfs_lock_owner){ .file = f, .holder = holder };
	vfs_file_ref(f);
}

void vfs_lock_owner_end(struct vfs_lock_owner *o)
{
	if (!o->file)
		return;
	vfs_lock_drop_all(o);
	vfs_file_put(o->file);
	o->file = NULL;
}

bool vfs_lock_held(const struct vfs_lock_owner *o)
{
	return o->count > 0;
}

/* Under f->lock; *tested: local locks too. */
static int test_locked(struct vfs_file *f, const struct vfs_lock_owner *o,
		       const struct vfs_lock_request *r, const struct vfs_span *span,
		       struct vfs_conflict *c, bool *tested)
{
	struct vfs_range *other = vfs_range_obstacle(&f->ranges, o, r->type, span);

	if (other) {
		lock_fill_conflict(c, other);
		return -RN_EDENIED;
	}
	*tested = f->held >= VFS_HELD_READ;
	return *tested ? vfs_mirror_test(f->fd, r->type, span, c) : 0;
}

int vfs_lock_test(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_lock_owner *o,
		  const struct vfs_lock_request *r, struct vfs_conflict *c)
{
	struct vfs_file *f;
	struct vfs_span span;
	bool tested = false;
	int fd, rc = to_span(r->offset, r->length, &span);

	if (rc == 0)
		rc = vfs_deleg_check(ctx, n, lock_deleg_use(r));
	if (rc != 0)
		return rc;
	f = vfs_file_find(n);
	if (f) {
		leave_crowd(ctx, f);
		pthread_mutex_lock(&f->lock);
		rc = test_locked(f, o, r, &span, c, &tested);
		pthread_mutex_unlock(&f->lock);
	}
	vfs_file_put(f);
	if (rc != 0 || tested)
		return rc;
	/* Without a mirror any descriptor of the file will do. */
	fd = vfs_node_readable_fd(ctx, n);
	return fd < 0 ? 0 : vfs_mirror_test(fd, r->type, &span, c);
}

void vfs_lock_remember_waiter(struct vfs_file *f, const struct vfs_lock_request *r,
			      struct vfs_lock_notice *n)
{
	struct vfs_span span = { 0, 0 };

	if (r->waiter == 0 || to_span(r->offset, r->length, &span) != 0) {
		if (n)
			n->ops->end(n);
		return;
	}
	pthread_mutex_lock(&f->lock);
	vfs_wait_remember(f, r, &span, n);
	vfs_wait_unlock(f);
}

void vfs_lock_forget_waiter(struct vfs_file *f, uint64_t waiter)
{
	pthread_mutex_lock(&f->lock);
	vfs_wait_forget(f, waiter);
	vfs_wait_unlock(f);
}

void vfs_lock_tell_waiter(struct vfs_file *f, uint64_t waiter)
{
	pthread_mutex_lock(&f->lock);
	vfs_wait_tell(f, waiter);
	vfs_wait_unlock(f);
}
