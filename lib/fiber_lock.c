/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/fiber_lock.h"

#include <errno.h>
#include <semaphore.h>

#include "lib/fiber.h"

struct rn_lock_waiter {
	struct rn_fiber *fiber; /* NULL: a thread, which waits for woken */
	sem_t woken;
	STAILQ_ENTRY(rn_lock_waiter) link;
};

void rn_lock_init(struct rn_lock *l)
{
	pthread_mutex_init(&l->guard, NULL);
	l->held = false;
	STAILQ_INIT(&l->waiting);
}

void rn_lock_fini(struct rn_lock *l)
{
	pthread_mutex_destroy(&l->guard);
}

bool rn_lock_try(struct rn_lock *l)
{
	bool free;

	pthread_mutex_lock(&l->guard);
	free = !l->held;
	l->held = true;
	pthread_mutex_unlock(&l->guard);
	return free;
}

struct taking {
	struct rn_lock *lock;
	struct rn_lock_waiter waiter;
};

/* True if the caller has the lock, else it waits for it. */
static bool queue_up(struct rn_lock *l, struct rn_lock_waiter *w)
{
	bool free;

	pthread_mutex_lock(&l->guard);
	free = !l->held;
	l->held = true;
	if (!free)
		STAILQ_INSERT_TAIL(&l->waiting, w, link);
	pthread_mutex_unlock(&l->guard);
	return free;
}

/* The fiber is at rest: it can be woken at once. */
static void queue_fiber(void *arg)
{
	struct taking *t = arg;
	struct rn_fiber *f = t->waiter.fiber;

	if (queue_up(t->lock, &t->waiter))
		f->wake(f);
}

static void take_as_thread(struct taking *t)
{
	sem_init(&t->waiter.woken, 0, 0);
	if (!queue_up(t->lock, &t->waiter))
		while (sem_wait(&t->waiter.woken) != 0 && errno == EINTR)
			;
	sem_destroy(&t->waiter.woken);
}

void rn_lock_take(struct rn_lock *l)
{
	struct taking t = { .lock = l, .waiter.fiber = rn_fiber_current() };

	if (rn_lock_try(l))
		return;
	if (t.waiter.fiber)
		rn_fiber_wait(t.waiter.fiber, RN_WAIT_LOCK, queue_fiber, &t);
	else
		take_as_thread(&t);
}

/* The lock goes to the first who waits. */
void rn_lock_give(struct rn_lock *l)
{
	struct rn_lock_waiter *w;
	struct rn_fiber *f = NULL;

	pthread_mutex_lock(&l->guard);
	w = STAILQ_FIRST(&l->waiting);
	if (w) {
		STAILQ_REMOVE_HEAD(&l->waiting, link);
		f = w->fiber;
		if (!f)
			sem_post(&w->woken);
	} else {
		l->held = false;
	}
	pthread_mutex_unlock(&l->guard);
	if (f)
		f->wake(f);
}
