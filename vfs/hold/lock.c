/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte-range locks of clients: first those who wait for one, then locking.
 *
 * Locking has two halves. First all that can fail: memory, the table, whoever waits, the mirror.
 * Then the owner's ranges are changed, with memory that was there before.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_change.h"
#include "vfs/lock.h"
#include "vfs/vfs_worker.h"

#define VFS_WAIT_PATIENCE 3u
#define VFS_WAITERS_MAX 64u /* waiters of one file */
#define VFS_WAITERS_TOTAL 65536u

/*
* Waiters for a lock of a file, which ask again and again (RFC 7530 section 9.4, RFC 8881 section
 * 9.6), in order of arrival. Clients back off: between two questions of one that waits the lock may
 * be free many times, and taken by those who ask more often. So one that has asked
 * VFS_WAIT_PATIENCE times has its range kept for it, once it is free, until it should have asked
 * again; those who have just come and would take it are refused. Before that nobody is held up for
 * its sake: a lock that lies idle until a client remembers to ask costs everybody more than the
 * order is worth.
 *
 * A waiter may have a notice (vfs/lock.h). All that have one and could have their range are told at
 * the same time, and race for it. So the range of a waiter that has been told is not kept from others
 * that wait, only from those that do not, and only for a moment. It is kept from later waiters, too, if the
 * notice says so (in_order).
 *
 * All under the file's lock. The list is bounded, as is their number altogether.
 */

/* Clients double the time between two questions; so much later yet, and its turn passes. */
#define SLACK_MS 1000

/* Takes the notice of w off, if it has one, and puts it on a list of those that are due. */
static void take_notice(struct vfs_file *f, struct vfs_waiter *w, struct vfs_lock_notice **due)
{
	if (!w->notice)
		return;
	while (*due) /* who came first is told first */
		due = &(*due)->next;
	*due = w->notice;
	w->notice->next = NULL;
	w->notice = NULL;
	f->waiters.notices--;
}

static void waiter_drop(struct vfs_file *f, struct vfs_waiter **at)
{
	struct vfs_waiter *w = *at;

	take_notice(f, w, &f->waiters.ended);
	*at = w->next;
	f->waiters.count--;
	atomic_fetch_sub(&f->vfs->files->waiters, 1);
	free(w);
}

static void drop_expired(struct vfs_file *f, int64_t now)
{
	int64_t patience = (int64_t)f->vfs->cfg.lock_wait_seconds * 1000;
	struct vfs_waiter **at = &f->waiters.first;

	while (*at) {
		if (now - (*at)->asked_at > patience)
			waiter_drop(f, at);
		else
			at = &(*at)->next;
	}
}

/* True if w is expected to ask again soon. */
static bool comes_soon(const struct vfs_waiter *w, int64_t now)
{
	if (w->told_at)
		return now - w->told_at <= SLACK_MS;
	return now - w->asked_at <= 2 * (int64_t)w->gap + SLACK_MS;
}

static bool in_the_way(const struct vfs_waiter *w, const struct vfs_lock_request *r,
		       const struct vfs_span *span)
{
	if (w->told_at && r->waiter && !w->in_order)
		return false;
	return w->span.start <= span->end && w->span.end >= span->start &&
	       (w->type == VFS_LOCK_WRITE || r->type == VFS_LOCK_WRITE);
}

/* True if it is time to keep the range for the waiter: it has waited long enough, or its turn has come, and
 * it will ask again soon, and could have the range but for the one who asks now. A waiter that could not must not
 * hold up those whom it waits for. w is a copy, as f->lock may be given back. */
static bool is_its_turn(struct vfs_file *f, struct vfs_waiter w, int64_t now)
{
	const bool waited = w.asked >= VFS_WAIT_PATIENCE || (w.told_at && w.in_order);

	return waited && comes_soon(&w, now) &&
	       !vfs_range_conflict(&f->ranges, NULL, w.type, &w.span) &&
	       (f->held < VFS_HELD_READ || vfs_mirror_test(f, f->fd, w.type, &w.span, NULL) == 0);
}

struct vfs_waiter *vfs_waiter_find(struct vfs_file *f, uint64_t id)
{
	struct vfs_waiter *w = f->waiters.first;

	while (w && w->id != id)
		w = w->next;
	return w;
}

static void wait_fill_conflict(struct vfs_conflict *c, const struct vfs_waiter *w)
{
	if (c)
		*c = (struct vfs_conflict){ .type = w->type,
					    .offset = w->span.start,
					    .length = vfs_span_length(&w->span),
					    .kept = true };
}

/* True if the range of r is kept for an earlier waiter. Then c, if not NULL, has what that one
 * wants. */
static bool vfs_wait_kept(struct vfs_file *f, const struct vfs_lock_request *r,
			  const struct vfs_span *span, struct vfs_conflict *c)
{
	const struct vfs_waiter *at;
	int64_t now;

	if (!f->waiters.first)
		return false;
	now = (int64_t)rn_now_ms();
	drop_expired(f, now);
	for (at = f->waiters.first; at && (r->waiter == 0 || at->id != r->waiter);
	     at = at ? at->next : NULL) {
		const struct vfs_waiter w = *at;

		if (!in_the_way(&w, r, span))
			continue;
		if (is_its_turn(f, w, now)) {
			wait_fill_conflict(c, &w);
			return true;
		}
		at = vfs_waiter_find(f, w.id);
	}
	return false;
}

static void ask_again(struct vfs_waiter *w, const struct vfs_lock_request *r,
		      const struct vfs_span *span, int64_t now)
{
	int64_t gap = now - w->asked_at;

	w->gap = gap < UINT32_MAX / 2 ? (uint32_t)gap : UINT32_MAX / 2;
	w->asked_at = now;
	w->asked++;
	w->told_at = 0;
	w->span = *span; /* an owner waits for one range at a time */
	w->type = (uint8_t)r->type;
}

struct vfs_waiter *vfs_waiter_add(struct vfs_file *f, uint64_t id, int64_t now)
{
	struct vfs_waiter **at = &f->waiters.first, *w;
	struct vfs_files *t = f->vfs->files;

	if (f->waiters.count >= VFS_WAITERS_MAX || atomic_load(&t->waiters) >= VFS_WAITERS_TOTAL)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	*w = (struct vfs_waiter){ .id = id, .asked_at = now };
	while (*at)
		at = &(*at)->next;
	*at = w;
	f->waiters.count++;
	atomic_fetch_add(&t->waiters, 1);
	return w;
}

/* True if no client's lock is in the way of w any more. */
static bool waiter_is_free(const struct vfs_file *f, const struct vfs_waiter *w)
{
	return !vfs_range_conflict(&f->ranges, w->notice->owner, w->type, &w->span);
}

static void waiter_tell(struct vfs_file *f, struct vfs_waiter *w)
{
	w->told_at = (int64_t)rn_now_ms();
	take_notice(f, w, &f->waiters.told);
}

void vfs_waiter_expect(struct vfs_file *f, struct vfs_waiter *w, struct vfs_lock_notice *n)
{
	w->notice = n;
	w->in_order = n->in_order;
	f->waiters.notices++;
}

static void set_notice(struct vfs_file *f, struct vfs_waiter *w, struct vfs_lock_notice *n)
{
	take_notice(f, w, &f->waiters.ended);
	if (!n)
		return;
	vfs_waiter_expect(f, w, n);
	if (n->held_by_client && waiter_is_free(f, w))
		waiter_tell(f, w);
}

/* Records that r was refused: it is queued behind the present waiters, or keeps its place. Only if
 * r waits. */
static void vfs_wait_remember(struct vfs_file *f, const struct vfs_lock_request *r,
			      const struct vfs_span *span, struct vfs_lock_notice *n)
{
	int64_t now = (int64_t)rn_now_ms();
	struct vfs_waiter *w = NULL;

	if (r->waiter != 0)
		w = vfs_waiter_find(f, r->waiter);
	if (r->waiter != 0 && !w)
		w = vfs_waiter_add(f, r->waiter, now);
	if (w) {
		ask_again(w, r, span, now);
		set_notice(f, w, n);
	} else if (n) {
		n->next = f->waiters.ended;
		f->waiters.ended = n;
	}
}

/* Locks were given up: the notices of waiters whose range is free now are due. */
static void vfs_wait_freed(struct vfs_file *f)
{
	struct vfs_waiter *w;

	for (w = f->waiters.first; w && f->waiters.notices > 0; w = w->next) {
		if (w->notice && waiter_is_free(f, w))
			waiter_tell(f, w);
	}
}

/* The notice of one waiter is due. */
static void vfs_wait_tell(struct vfs_file *f, uint64_t waiter)
{
	struct vfs_waiter *w = vfs_waiter_find(f, waiter);

	if (w && w->notice)
		waiter_tell(f, w);
}

void vfs_wait_unlock(struct vfs_file *f)
{
	struct vfs_lock_notice *told = f->waiters.told, *ended = f->waiters.ended, *n;

	f->waiters.told = f->waiters.ended = NULL;
	pthread_mutex_unlock(&f->lock);
	while ((n = told)) {
		told = n->next;
		n->ops->tell(n);
	}
	while ((n = ended)) {
		ended = n->next;
		n->ops->end(n);
	}
}

static void vfs_wait_forget(struct vfs_file *f, uint64_t waiter)
{
	struct vfs_waiter **at = &f->waiters.first;

	while (*at && (*at)->id != waiter)
		at = &(*at)->next;
	if (*at)
		waiter_drop(f, at);
}

void vfs_wait_forget_all(struct vfs_file *f)
{
	while (f->waiters.first)
		waiter_drop(f, &f->waiters.first);
}

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
#define EVENT_THREAD_RANGES 1000u

/* Before f->lock is taken, which others may hold as long. */
static void leave_crowd(const struct vfs_ctx *ctx, const struct vfs_file *f)
{
	if (f->remote ||
	    atomic_load_explicit(&f->ranges.count, memory_order_relaxed) > EVENT_THREAD_RANGES)
		rn_fiber_move(ctx->fiber);
}

static int to_span(uint64_t offset, uint64_t length, struct vfs_span *out)
{
	out->start = offset;
	out->end = length == UINT64_MAX ? UINT64_MAX : offset + length - 1;
	return length == 0 || (length != UINT64_MAX && offset > UINT64_MAX - (length - 1)) ? -EINVAL
											   : 0;
}

/* Makes a span, as to_span() does. -EFBIG: the kernel cannot lock the range, and the file is remote. A range to the end of all offsets is locked to the
 * kernel's last, as nobody can lock bytes behind it alone. */
static int to_mirrored_span(bool remote, uint64_t offset, uint64_t length, struct vfs_span *out)
{
	const int rc = to_span(offset, length, out);
	const bool is_beyond =
		out->start > INT64_MAX || (out->end > INT64_MAX && out->end != UINT64_MAX);

	return rc == 0 && remote && is_beyond ? -EFBIG : rc;
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

void vfs_lock_insert(struct vfs_lock_owner *o, struct vfs_range *r, const struct vfs_span *span,
		     uint8_t type)
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
		vfs_lock_insert(o, r, &head, type);
	if (has_tail)
		vfs_lock_insert(o, has_head ? spares->range[--spares->count] : r, &tail, type);
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

/*
 * A process that was killed may be gone before its files are: the kernel's threads of an io_uring close those of I/O that
 * was under way, and only then unlock them. So a lock of the run before may be in the way of its own reclaim. No
 * lock that the kernel has can be told from such a one. The time counts from the first that was met.
 */
#define LEFT_BEHIND_MS 5000u

static bool is_maybe_left_behind(struct vfs_files *t)
{
	const uint64_t now = rn_now_ms();
	uint64_t until = 0;

	if (atomic_compare_exchange_strong(&t->left_behind_until, &until, now + LEFT_BEHIND_MS))
		return true;
	return now < until;
}

/* Under the file's lock: all that may refuse. */
static int lock_check(struct vfs_lock_owner *o, const struct vfs_lock_request *r,
		      const struct vfs_span *span, struct vfs_conflict *c)
{
	struct vfs_file *f = o->file;
	struct vfs_range *other = vfs_range_lasting_conflict(&f->ranges, o, r->type, span);
	int rc;

	if (other) {
		lock_fill_conflict(c, other);
		return -RN_EDENIED;
	}
	if (vfs_wait_kept(f, r, span, c))
		return -RN_EDENIED;
	if (atomic_load(&f->vfs->files->locks) >= f->vfs->cfg.max_locks)
		return -ENOLCK;
	rc = vfs_mirror_lock(f, r->type, span, c);
	return rc == -RN_EDENIED && r->reclaim && is_maybe_left_behind(f->vfs->files) ? -RN_EYIELDS
										      : rc;
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
	vfs_lock_insert(o, spares->range[--spares->count], &wide, (uint8_t)r->type);
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

static int lock_in_turn(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_lock_owner *o,
			const struct vfs_lock_request *r, struct vfs_conflict *c)
{
	struct vfs_file_change change = { .count = NULL };
	struct vfs_file *f = o->file;
	struct vfs_span span;
	int rc = to_mirrored_span(f->remote, r->offset, r->length, &span);

	if (rc != 0)
		return rc;
	leave_crowd(ctx, f);
	vfs_mirror_begin(f);
	/* No delegation is given until the lock is there to see. Of a remote file none is given in a turn. */
	if (!f->remote)
		rc = vfs_file_change_count(ctx->vfs, &n->fh, &change);
	if (rc == 0)
		rc = vfs_deleg_check(ctx, n, lock_deleg_use(r));
	if (rc == 0)
		rc = vfs_mirror_prepare(ctx, n, f, r->type);
	if (rc == 0)
		rc = lock_take(o, r, &span, c);
	vfs_file_change_end(&change);
	vfs_mirror_end(f);
	return rc;
}

/* Counted before it asks: whoever forbids locks and then finds no call counted knows that later ones are refused. */
int vfs_lock(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_lock_owner *o,
	     const struct vfs_lock_request *r, struct vfs_conflict *c)
{
	const struct vfs_config *cfg = &ctx->vfs->cfg;
	_Atomic uint32_t *locking = &ctx->vfs->files->locking[r->reclaim];
	int rc = -RN_EGRACE;

	if (!cfg->may_lock)
		return lock_in_turn(ctx, n, o, r, c);
	atomic_fetch_add(locking, 1);
	if (cfg->may_lock(cfg->may_lock_ctx, r->reclaim))
		rc = lock_in_turn(ctx, n, o, r, c);
	atomic_fetch_sub(locking, 1);
	return rc;
}

void vfs_lock_settle(struct vfs *vfs, bool reclaim)
{
	const struct timespec pause = { .tv_nsec = (long)RN_NS_PER_MS };

	while (atomic_load(&vfs->files->locking[reclaim]) > 0)
		nanosleep(&pause, NULL);
}

int vfs_unlock(struct vfs_ctx *ctx, struct vfs_lock_owner *o, uint64_t offset, uint64_t length)
{
	struct vfs_file *f = o->file;
	struct spares spares;
	struct vfs_span span;
	int rc = to_mirrored_span(f->remote, offset, length, &span);
	int fd;

	if (rc != 0 || o->count == 0)
		return rc;
	leave_crowd(ctx, f);
	if (!spares_get(&spares)) {
		spares_free(&spares);
		return -ENOMEM;
	}
	vfs_mirror_begin(f);
	pthread_mutex_lock(&f->lock);
	lock_clear_span(o, &span, &spares, true);
	fd = vfs_file_release(f);
	vfs_wait_freed(f);
	vfs_wait_unlock(f);
	vfs_fd_close(f->vfs, fd);
	vfs_mirror_end(f);
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
	vfs_mirror_begin(f);
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
	vfs_mirror_end(f);
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
	struct vfs_range *other = vfs_range_lasting_conflict(&f->ranges, o, r->type, span);

	if (other) {
		lock_fill_conflict(c, other);
		return -RN_EDENIED;
	}
	*tested = f->held >= VFS_HELD_READ;
	return *tested ? vfs_mirror_test(f, f->fd, r->type, span, c) : 0;
}

int vfs_lock_test(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_lock_owner *o,
		  const struct vfs_lock_request *r, struct vfs_conflict *c)
{
	struct vfs_file *f;
	struct vfs_span span;
	const bool remote = !n->mnt->fs.local;
	bool tested = false;
	int fd, rc = to_mirrored_span(remote, r->offset, r->length, &span);

	if (rc == 0)
		rc = vfs_deleg_check(ctx, n, lock_deleg_use(r));
	if (rc != 0)
		return rc;
	f = vfs_file_find(n);
	if (f) {
		leave_crowd(ctx, f);
		vfs_mirror_begin(f);
		pthread_mutex_lock(&f->lock);
		rc = test_locked(f, o, r, &span, c, &tested);
		pthread_mutex_unlock(&f->lock);
		vfs_mirror_end(f);
	}
	vfs_file_put(f);
	if (rc != 0 || tested)
		return rc;
	/* Without a mirror any descriptor of the file will do. */
	if (remote)
		rn_fiber_move(ctx->fiber);
	fd = vfs_node_readable_fd(ctx, n);
	if (fd < 0)
		return remote ? fd : 0;
	return vfs_mirror_test(NULL, fd, r->type, &span, c);
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
