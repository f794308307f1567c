/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/recovery/wheel.h"

#include "lib/clock.h"

uint64_t nfs4_now(void)
{
	return rn_now_coarse_seconds();
}

void nfs4_wheel_init(struct nfs4_wheel *w, uint64_t now)
{
	pthread_mutex_init(&w->lock, NULL);
	w->now = now;
	for (unsigned i = 0; i < NFS4_WHEEL_SLOTS; i++)
		w->slot[i] = NULL;
}

static void unlink_timer(struct nfs4_timer *t)
{
	*t->at = t->next;
	if (t->next)
		t->next->at = t->at;
	t->next = NULL;
	t->at = NULL;
}

static void link_timer(struct nfs4_timer **list, struct nfs4_timer *t)
{
	t->next = *list;
	t->at = list;
	if (t->next)
		t->next->at = &t->next;
	*list = t;
}

void nfs4_wheel_fini(struct nfs4_wheel *w)
{
	for (unsigned i = 0; i < NFS4_WHEEL_SLOTS; i++) {
		while (w->slot[i])
			unlink_timer(w->slot[i]);
	}
	pthread_mutex_destroy(&w->lock);
}

void nfs4_timer_init(struct nfs4_timer *t)
{
	t->next = NULL;
	t->at = NULL;
	atomic_init(&t->due, 0);
}

/* A timer due in the current second is filed for the next: the slot of this one has been passed. */
static void file(struct nfs4_wheel *w, struct nfs4_timer *t)
{
	uint64_t due = atomic_load_explicit(&t->due, memory_order_relaxed);

	if (due <= w->now)
		due = w->now + 1;
	link_timer(&w->slot[due % NFS4_WHEEL_SLOTS], t);
}

void nfs4_wheel_add(struct nfs4_wheel *w, struct nfs4_timer *t, uint64_t due)
{
	atomic_store_explicit(&t->due, due, memory_order_relaxed);
	pthread_mutex_lock(&w->lock);
	file(w, t);
	pthread_mutex_unlock(&w->lock);
}

bool nfs4_wheel_cancel(struct nfs4_wheel *w, struct nfs4_timer *t)
{
	bool filed;

	pthread_mutex_lock(&w->lock);
	filed = t->at != NULL;
	if (filed)
		unlink_timer(t);
	pthread_mutex_unlock(&w->lock);
	return filed;
}

/* Walks a slot: timers due up to now move to fired, renewed ones to the slot of their new time. */
static void pass_slot(struct nfs4_wheel *w, uint64_t now, struct nfs4_timer **list,
		      struct nfs4_timer **fired)
{
	struct nfs4_timer *t, *next;

	for (t = *list; t; t = next) {
		next = t->next;
		unlink_timer(t);
		if (atomic_load_explicit(&t->due, memory_order_relaxed) > now) {
			file(w, t);
		} else {
			t->next = *fired;
			*fired = t;
		}
	}
}

/*
 * Removes the due timers from the wheel and returns them, linked by next. A timer may be filed
 * again in the slot that is being passed. It is put in front, so the walk does not meet it twice.
 */
static struct nfs4_timer *take_due(struct nfs4_wheel *w, uint64_t now)
{
	struct nfs4_timer *fired = NULL;
	uint64_t from, span;

	pthread_mutex_lock(&w->lock);
	from = w->now + 1;
	span = now > w->now ? now - w->now : 0;
	if (span > NFS4_WHEEL_SLOTS)
		span = NFS4_WHEEL_SLOTS;
	if (now > w->now)
		w->now = now;
	for (uint64_t i = 0; i < span; i++)
		pass_slot(w, now, &w->slot[(from + i) % NFS4_WHEEL_SLOTS], &fired);
	pthread_mutex_unlock(&w->lock);
	return fired;
}

void nfs4_wheel_tick(struct nfs4_wheel *w, uint64_t now,
		     void (*fire)(void *ctx, struct nfs4_timer *t), void *ctx)
{
	struct nfs4_timer *t = take_due(w, now);

	while (t) {
		struct nfs4_timer *next = t->next;

		t->next = NULL;
		fire(ctx, t);
		t = next;
	}
}
