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
};

/* Clients double the time between two questions; so much later yet, and its turn passes. */
#define SLACK_MS 1000

static void drop(struct vfs_file *f, struct vfs_waiter **at)
{
	struct vfs_waiter *w = *at;

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
			drop(f, at);
		else
			at = &(*at)->next;
	}
}

static bool in_the_way(const struct vfs_waiter *w, const struct vfs_lock_request *r,
		       const struct vfs_span *span)
{
	return w->span.start <= span->end && w->span.end >= span->start &&
	       (w->type == VFS_LOCK_WRITE || r->type == VFS_LOCK_WRITE);
}

/* True if it is time to keep the range for the waiter: it has waited long enough and will ask again
 * soon, and could have the range but for the one who asks now. A waiter that could not must not
 * hold up those whom it waits for. */
static bool is_its_turn(const struct vfs_file *f, const struct vfs_waiter *w, int64_t now)
{
	return w->asked >= VFS_WAIT_PATIENCE &&
	       now - w->asked_at <= 2 * (int64_t)w->gap + SLACK_MS &&
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
					    .length = vfs_span_length(&w->span) };
	return true;
}

static void ask_again(struct vfs_waiter *w, const struct vfs_lock_request *r,
		      const struct vfs_span *span, int64_t now)
{
	int64_t gap = now - w->asked_at;

	w->gap = gap < UINT32_MAX / 2 ? (uint32_t)gap : UINT32_MAX / 2;
	w->asked_at = now;
	w->asked++;
	w->span = *span; /* an owner waits for one range at a time */
	w->type = (uint8_t)r->type;
}

void vfs_wait_remember(struct vfs_file *f, const struct vfs_lock_request *r,
		       const struct vfs_span *span)
{
	struct vfs_files *t = f->vfs->files;
	struct vfs_waiter **at = &f->waiters.first, *w;
	int64_t now = (int64_t)rn_now_ms();

	if (r->waiter == 0)
		return;
	while (*at && (*at)->id != r->waiter)
		at = &(*at)->next;
	if (*at) {
		ask_again(*at, r, span, now);
		return;
	}
	if (f->waiters.count >= VFS_WAITERS_MAX || atomic_load(&t->waiters) >= VFS_WAITERS_TOTAL)
		return;
	w = calloc(1, sizeof(*w));
	if (!w)
		return;
	*w = (struct vfs_waiter){ .id = r->waiter, .asked_at = now };
	ask_again(w, r, span, now);
	*at = w;
	f->waiters.count++;
	atomic_fetch_add(&t->waiters, 1);
}

void vfs_wait_forget(struct vfs_file *f, uint64_t waiter)
{
	struct vfs_waiter **at = &f->waiters.first;

	while (*at && (*at)->id != waiter)
		at = &(*at)->next;
	if (*at)
		drop(f, at);
}

void vfs_wait_forget_all(struct vfs_file *f)
{
	while (f->waiters.first)
		drop(f, &f->waiters.first);
}
