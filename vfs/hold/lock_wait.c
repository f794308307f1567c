/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/lock_wait.h"

#include <stdlib.h>

#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/hold/file.h"
#include "vfs/hold/lock_mirror.h"

struct vfs_waiter {
	struct vfs_waiter *next;
	uint64_t id;
	struct vfs_span span;
	int64_t asked_at; /* rn_now_ms() */
	uint32_t gap;	  /* milliseconds between the last two times that it asked */
	uint32_t asked;
	uint8_t type;
	bool in_order;			/* of the last notice */
	int64_t told_at;		/* 0: not since it asked last */
	struct vfs_lock_notice *notice; /* or NULL */
};

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
 * hold up those whom it waits for. */
static bool is_its_turn(const struct vfs_file *f, const struct vfs_waiter *w, int64_t now)
{
	const bool waited = w->asked >= VFS_WAIT_PATIENCE || (w->told_at && w->in_order);

	return waited && comes_soon(w, now) &&
	       !vfs_range_conflict(&f->ranges, NULL, w->type, &w->span) &&
	       (f->held < VFS_HELD_READ || vfs_mirror_test(f->fd, w->type, &w->span, NULL) == 0);
}

bool vfs_wait_kept(struct vfs_file *f, const struct vfs_lock_request *r,
		   const struct vfs_span *span, struct vfs_conflict *c)
{
	const struct vfs_waiter *w;
	int64_t now;

	if (!f->waiters.first)
		return false;
	now = (int64_t)rn_now_ms();
	drop_expired(f, now);
	for (w = f->waiters.first; w && (r->waiter == 0 || w->id != r->waiter); w = w->next) {
		if (in_the_way(w, r, span) && is_its_turn(f, w, now))
			break;
	}
	if (!w || (r->waiter && w->id == r->waiter))
		return false;
	if (c)
		*c = (struct vfs_conflict){ .type = w->type,
					    .offset = w->span.start,
					    .length = vfs_span_length(&w->span),
					    .kept = true };
	return true;
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

static struct vfs_waiter *waiter_find(struct vfs_file *f, uint64_t id)
{
	struct vfs_waiter *w = f->waiters.first;

	while (w && w->id != id)
		w = w->next;
	return w;
}

/* Adds a waiter at the end of the list. NULL: there are too many, or there is no memory. */
static struct vfs_waiter *waiter_add(struct vfs_file *f, uint64_t id, int64_t now)
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

static void set_notice(struct vfs_file *f, struct vfs_waiter *w, struct vfs_lock_notice *n)
{
	take_notice(f, w, &f->waiters.ended);
	if (!n)
		return;
	w->notice = n;
	w->in_order = n->in_order;
	f->waiters.notices++;
	if (n->held_by_client && waiter_is_free(f, w))
		waiter_tell(f, w);
}

void vfs_wait_remember(struct vfs_file *f, const struct vfs_lock_request *r,
		       const struct vfs_span *span, struct vfs_lock_notice *n)
{
	int64_t now = (int64_t)rn_now_ms();
	struct vfs_waiter *w = NULL;

	if (r->waiter != 0)
		w = waiter_find(f, r->waiter);
	if (r->waiter != 0 && !w)
		w = waiter_add(f, r->waiter, now);
	if (w) {
		ask_again(w, r, span, now);
		set_notice(f, w, n);
	} else if (n) {
		n->next = f->waiters.ended;
		f->waiters.ended = n;
	}
}

void vfs_wait_freed(struct vfs_file *f)
{
	struct vfs_waiter *w;

	for (w = f->waiters.first; w && f->waiters.notices > 0; w = w->next) {
		if (w->notice && waiter_is_free(f, w))
			waiter_tell(f, w);
	}
}

void vfs_wait_tell(struct vfs_file *f, uint64_t waiter)
{
	struct vfs_waiter *w = waiter_find(f, waiter);

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

void vfs_wait_forget(struct vfs_file *f, uint64_t waiter)
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
