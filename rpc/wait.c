/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A waiting call is in a bucket, by what it waits for; in the list of all, by when it is looked at; and in the quota,
 * if it is of rpc_try_later(). One thread ends waits whose time is over or whose client has gone, and wakes by kind.
 */
#include "rpc/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/quota.h"
#include "lib/util.h"
#include "rpc/client.h"
#include "rpc/program.h"

#define PLACES 256u
#define PLACES_OF_HOST 16u
/* Longest time since the call arrived, as long as clients bear: less than their time-outs. */
#define PATIENCE_NS (12 * RN_NS_PER_SECOND)
/* Interval at which a waiting call is looked at, whether its client is still there. One of rpc_try_later() looks again
 * itself: the end of an expired client's state wakes nobody, and an answer may come just before the call begins to wait. */
#define LOOK_NS (250 * RN_NS_PER_MS)
#define PAUSE_NS (10 * RN_NS_PER_MS) /* between two wakes by kind, however many answers come */
#define BUCKETS 64u

enum { GOES, RESTS, WOKEN };

/* On the stack of the call. */
struct waiter {
	LIST_ENTRY(waiter) link;
	TAILQ_ENTRY(waiter) timed;
	struct waiter *next; /* of those that are woken at once */
	struct rpc_request *req;
	const void *of;
	uint64_t until_ns; /* 0: no limit */
	uint64_t look_ns;
	struct rn_quota_item place;
	bool counted; /* the wait is counted in the quota */
	int rc;
	_Atomic int state;
};
LIST_HEAD(waiters, waiter);

struct rpc_waits {
	pthread_mutex_t lock; /* guards everything below; a leaf */
	pthread_cond_t changed;
	pthread_t thread;
	struct waiters bucket[BUCKETS];
	TAILQ_HEAD(timed_list, waiter) timed; /* in the order of look_ns */
	struct rn_quota quota;
	const struct rn_logger *log;
	unsigned kinds;	 /* that are to look again */
	unsigned closed; /* kinds */
	bool stop;
	char any[RN_WAITS]; /* addresses for waiter.of */
};

static struct waiters *rpc_wait_bucket(struct rpc_waits *w, const void *of)
{
	const uint64_t h = (uint64_t)(uintptr_t)of * UINT64_C(0x9e3779b97f4a7c15);

	return &w->bucket[h >> 58];
}
_Static_assert(BUCKETS == 1u << (64 - 58), "bucket_of");

/* Under the lock. Takes x out, and into the list of those to be woken. */
static void rpc_wait_end_locked(struct rpc_waits *w, struct waiter *x, int rc,
				struct waiter **woken)
{
	LIST_REMOVE(x, link);
	TAILQ_REMOVE(&w->timed, x, timed);
	if (x->counted)
		rn_quota_remove(&w->quota, &x->place);
	x->rc = rc;
	x->next = *woken;
	*woken = x;
}

/* Without the lock. A call that is not at rest yet wakes itself. */
static void rpc_waiters_resume(struct waiter *x)
{
	while (x) {
		struct waiter *next = x->next; /* x is gone when its call goes on */
		struct rn_fiber *f = x->req->fiber;

		if (atomic_exchange(&x->state, WOKEN) == RESTS)
			f->wake(f);
		x = next;
	}
}

/* On the thread that the call has left. */
static void rpc_waiter_at_rest(void *arg)
{
	struct waiter *x = arg;
	struct rn_fiber *f = x->req->fiber;

	if (atomic_exchange(&x->state, RESTS) == WOKEN)
		f->wake(f);
}

/* Under the lock. */
static void rpc_waiter_set_look(struct rpc_waits *w, struct waiter *x, uint64_t now)
{
	struct waiter *before = TAILQ_LAST(&w->timed, timed_list);

	x->look_ns = now + LOOK_NS;
	if (x->until_ns)
		x->look_ns = rn_min(x->look_ns, x->until_ns);
	while (before && before->look_ns > x->look_ns)
		before = TAILQ_PREV(before, timed_list, timed);
	if (before)
		TAILQ_INSERT_AFTER(&w->timed, before, x, timed);
	else
		TAILQ_INSERT_HEAD(&w->timed, x, timed);
	if (!before)
		pthread_cond_signal(&w->changed);
}

/* Under the lock. */
static void put_in(struct rpc_waits *w, struct waiter *x)
{
	LIST_INSERT_HEAD(rpc_wait_bucket(w, x->of), x, link);
	rpc_waiter_set_look(w, x, rn_now_ns());
}

static int rpc_waiter_rest(struct waiter *x, enum rn_wait_for what)
{
	struct rn_fiber *f = x->req->fiber;

	if (atomic_load(&x->state) == WOKEN)
		return x->rc;
	atomic_store_explicit(&f->waits_until_ns, x->until_ns, memory_order_relaxed);
	rn_fiber_wait(f, what, rpc_waiter_at_rest, x);
	atomic_store_explicit(&f->waits_until_ns, 0, memory_order_relaxed);
	return x->rc;
}

int rpc_wait(struct rpc_request *req, enum rn_wait_for what, const void *of, uint64_t until_ns,
	     pthread_mutex_t *lock)
{
	struct rpc_waits *w = req->server->waits;
	struct waiter x = { .req = req, .of = of, .until_ns = until_ns };

	if (w) {
		pthread_mutex_lock(&w->lock);
		put_in(w, &x);
		pthread_mutex_unlock(&w->lock);
	}
	pthread_mutex_unlock(lock);
	return w ? rpc_waiter_rest(&x, what) : -ENOSYS;
}

/* Under the lock. */
static void end_all_of(struct rpc_waits *w, const void *of, struct waiter **woken)
{
	struct waiter *x, *next;

	for (x = LIST_FIRST(rpc_wait_bucket(w, of)); x; x = next) {
		next = LIST_NEXT(x, link);
		if (x->of == of)
			rpc_wait_end_locked(w, x, 0, woken);
	}
}

void rpc_wake(struct rpc_waits *w, const void *of)
{
	struct waiter *woken = NULL;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	end_all_of(w, of, &woken);
	pthread_mutex_unlock(&w->lock);
	rpc_waiters_resume(woken);
}

/* Under the lock. Calls that make room are woken. */
static bool take_place(struct rpc_waits *w, struct waiter *x, struct waiter **woken)
{
	const struct rn_host *host = &x->req->conn->client->key;
	const bool admitted = rpc_conn_admission(x->req->conn) == RPC_ADMITTED;
	struct rn_quota_item *old;

	while ((old = rn_quota_in_the_way(&w->quota, host, admitted, 1)) != NULL)
		rpc_wait_end_locked(w, rn_container_of(old, struct waiter, place), -ENOBUFS, woken);
	x->counted = rn_quota_add(&w->quota, host, admitted, &x->place, 1);
	return x->counted;
}

/* Under the lock. Of a call in rpc_try_later(). */
static bool rpc_wait_is_closed(const struct rpc_waits *w, const struct waiter *x)
{
	return w->closed & 1u << ((const char *)x->of - w->any);
}

/* True if x waits. */
static bool begin_shared(struct rpc_waits *w, struct waiter *x)
{
	struct waiter *woken = NULL;
	struct rn_quota_line line;
	bool taken, tell;

	pthread_mutex_lock(&w->lock);
	taken = !rpc_wait_is_closed(w, x) && x->req->conn->client && take_place(w, x, &woken);
	if (taken)
		put_in(w, x);
	tell = rn_quota_line_due(&w->quota, rn_now_ns(), &line);
	pthread_mutex_unlock(&w->lock);
	rpc_waiters_resume(woken);
	if (tell)
		rn_quota_tell(w->log, "calls that wait for an answer", &line);
	return taken;
}

bool rpc_try_later(struct rpc_request *req, enum rn_wait_for what, uint64_t patience_ns)
{
	struct rpc_waits *w = req->server->waits;
	const uint64_t now = rn_now_ns();
	struct waiter x = { .req = req };

	/* The call would wait for nobody, and keep others of its host from waiting. */
	req->waited |= !w || atomic_load(&req->conn->closing);
	if (req->waited)
		return false;
	if (req->wait_until_ns == 0)
		req->wait_until_ns =
			patience_ns ? now + patience_ns : req->arrived_ns + PATIENCE_NS;
	x.of = &w->any[what];
	x.until_ns = req->wait_until_ns;
	req->waited = now >= req->wait_until_ns || !begin_shared(w, &x);
	if (req->waited)
		return false;
	/* One that may not wait any longer looks once more. */
	req->waited = rpc_waiter_rest(&x, what) == -ENOBUFS || rn_now_ns() >= req->wait_until_ns;
	return true;
}

bool rpc_has_time(const struct rpc_request *req)
{
	return rn_now_ns() < req->arrived_ns + PATIENCE_NS && !atomic_load(&req->conn->closing);
}

void rpc_wake_all(struct rpc_waits *w, unsigned kinds)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->kinds |= kinds;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* Under the lock: waits until there is something to do. */
static void wait_for_change(struct rpc_waits *w)
{
	while (!w->stop && !w->kinds) {
		const struct waiter *first = TAILQ_FIRST(&w->timed);

		if (!first) {
			pthread_cond_wait(&w->changed, &w->lock);
			continue;
		}
		const uint64_t at = first->look_ns;
		const struct timespec until = { .tv_sec = (time_t)(at / RN_NS_PER_SECOND),
						.tv_nsec = (long)(at % RN_NS_PER_SECOND) };

		if (rn_now_ns() >= at)
			break;
		pthread_cond_timedwait(&w->changed, &w->lock, &until);
	}
}

/* Under the lock. */
static void rpc_waiter_look_at(struct rpc_waits *w, struct waiter *x, uint64_t now,
			       struct waiter **woken)
{
	if (x->counted || (x->until_ns && x->until_ns <= now)) {
		rpc_wait_end_locked(w, x, -ETIMEDOUT, woken);
	} else if (atomic_load(&x->req->conn->closing)) {
		rpc_wait_end_locked(w, x, -RN_EGONE, woken);
	} else {
		TAILQ_REMOVE(&w->timed, x, timed);
		rpc_waiter_set_look(w, x, now);
	}
}

/* Under the lock. */
static struct waiter *end_due(struct rpc_waits *w)
{
	const uint64_t now = rn_now_ns();
	struct waiter *woken = NULL, *x;

	for (unsigned what = 0; what < RN_WAITS; what++)
		if (w->kinds & 1u << what)
			end_all_of(w, &w->any[what], &woken);
	w->kinds = 0;
	while ((x = TAILQ_FIRST(&w->timed)) != NULL && x->look_ns <= now)
		rpc_waiter_look_at(w, x, now, &woken);
	return woken;
}

static void *waits_main(void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct rpc_waits *w = arg;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		wait_for_change(w);
		const bool by_kind = w->kinds;
		struct waiter *woken = end_due(w);
		const bool pauses = by_kind && woken;

		pthread_mutex_unlock(&w->lock);
		rpc_waiters_resume(woken);
		if (pauses)
			nanosleep(&pause, NULL);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int rpc_waits_new(const struct rn_logger *log, struct rpc_waits **out)
{
	struct rpc_waits *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int rc;

	if (!w)
		return -ENOMEM;
	w->log = log;
	TAILQ_INIT(&w->timed);
	rn_quota_init(&w->quota, PLACES, PLACES_OF_HOST);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = -pthread_create(&w->thread, NULL, waits_main, w);
	if (rc) {
		pthread_cond_destroy(&w->changed);
		pthread_mutex_destroy(&w->lock);
		free(w);
		return rc;
	}
	pthread_setname_np(w->thread, "waits");
	*out = w;
	return 0;
}

void rpc_waits_free(struct rpc_waits *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	rn_quota_fini(&w->quota);
	free(w);
}

void rpc_waits_close(struct rpc_waits *w, unsigned kinds)
{
	struct waiter *woken = NULL, *x, *next;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->closed |= kinds;
	for (x = TAILQ_FIRST(&w->timed); x; x = next) {
		next = TAILQ_NEXT(x, timed);
		if (x->counted && rpc_wait_is_closed(w, x))
			rpc_wait_end_locked(w, x, -ENOBUFS, &woken);
	}
	pthread_mutex_unlock(&w->lock);
	rpc_waiters_resume(woken);
}

unsigned rpc_waits_count(struct rpc_waits *w)
{
	pthread_mutex_lock(&w->lock);
	const unsigned n = (unsigned)w->quota.used;
	pthread_mutex_unlock(&w->lock);
	return n;
}
