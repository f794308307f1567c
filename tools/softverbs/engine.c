/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While an application polls without pause, its own thread does the engine's work: that is fastest,
 * and with few processors a second busy thread would only compete. The engine's thread then checks
 * once a millisecond.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/softverbs/fabric.h"

#define IDLE_POLLS 16u /* empty polls in a row that mark a polling application */
#define BACK_OFF_NS 50000u
#define POLL_WAIT_NS 40000u /* less than BACK_OFF_NS, so that the engine's thread stays away */

uint64_t sv_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void engine_wake(struct sv_engine *e)
{
	uint64_t one = 1;

	(void)!write(e->wake_fd, &one, sizeof(one));
}

/* Called by the engine's thread only. A polling thread that took the wake-up would leave the engine's
 * thread asleep, without a look at the timers. */
static void drain_wake(struct sv_engine *e)
{
	uint64_t n;

	(void)!read(e->wake_fd, &n, sizeof(n));
}

static void engine_on_wake(struct sv_watch *w, uint32_t events)
{
	(void)w;
	(void)events;
}

int sv_watch_add(struct sv_watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	return epoll_ctl(sv_fabric.engine.epoll_fd, EPOLL_CTL_ADD, w->fd, &ev) < 0 ? -errno : 0;
}

int sv_watch_change(struct sv_watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	return epoll_ctl(sv_fabric.engine.epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) < 0 ? -errno : 0;
}

void sv_watch_remove(struct sv_watch *w)
{
	struct sv_engine *e = &sv_fabric.engine;

	epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	for (int i = 0; i < e->nbatch; i++)
		if (e->batch[i].data.ptr == w)
			e->batch[i].data.ptr = NULL;
}

void sv_timer_start(struct sv_timer *t, uint64_t usec, void (*fn)(void *arg), void *arg)
{
	struct sv_engine *e = &sv_fabric.engine;
	struct sv_timer *before;

	sv_timer_stop(t);
	t->due = sv_now() + usec * 1000;
	t->fn = fn;
	t->arg = arg;
	t->armed = true;
	/* Most timers have the same duration, so the right place is near the end. */
	TAILQ_FOREACH_REVERSE (before, &e->timers, sv_timers, link)
		if (before->due <= t->due)
			break;
	if (before)
		TAILQ_INSERT_AFTER(&e->timers, before, t, link);
	else
		TAILQ_INSERT_HEAD(&e->timers, t, link);
	if (t->due < atomic_load(&e->wakes_at))
		engine_wake(e);
}

void sv_timer_stop(struct sv_timer *t)
{
	if (t->armed)
		TAILQ_REMOVE(&sv_fabric.engine.timers, t, link);
	t->armed = false;
}

static void run_timers(struct sv_engine *e)
{
	struct sv_timer *t = TAILQ_FIRST(&e->timers);
	uint64_t now = t ? sv_now() : 0;

	for (; t && t->due <= now; t = TAILQ_FIRST(&e->timers)) {
		sv_timer_stop(t);
		t->fn(t->arg);
	}
}

/* Runs the callbacks of ready descriptors and due timers. A callback may remove watches of the same
 * batch. */
static void run_ready(struct sv_engine *e)
{
	int n = epoll_wait(e->epoll_fd, e->batch, SV_BATCH, 0);

	e->nbatch = n > 0 ? n : 0;
	for (int i = 0; i < e->nbatch; i++) {
		struct sv_watch *w = e->batch[i].data.ptr;
		if (w)
			w->fn(w, e->batch[i].events);
	}
	e->nbatch = 0;
	run_timers(e);
}

static bool polled_lately(struct sv_engine *e)
{
	return atomic_load(&e->idle_polls) >= IDLE_POLLS &&
	       sv_now() - atomic_load(&e->polled_at) < BACK_OFF_NS;
}

static void back_off(struct sv_engine *e)
{
	struct pollfd p = { .fd = e->wake_fd, .events = POLLIN };
	struct timespec ts = { .tv_nsec = BACK_OFF_NS };

	atomic_store(&e->backing_off, true);
	if (polled_lately(e))
		ppoll(&p, 1, &ts, NULL);
	atomic_store(&e->backing_off, false);
	drain_wake(e);
}

/* Returns milliseconds until the next timer; -1 for none. Lock held. */
static int until_timer(struct sv_engine *e)
{
	struct sv_timer *t = TAILQ_FIRST(&e->timers);
	uint64_t now = sv_now();

	atomic_store(&e->wakes_at, t ? t->due : UINT64_MAX);
	if (!t)
		return -1;
	if (t->due <= now)
		return 0;
	uint64_t ms = (t->due - now + 999999) / 1000000;
	return ms > 60000 ? 60000 : (int)ms;
}

static void *engine_main(void *arg)
{
	struct sv_engine *e = arg;
	struct epoll_event ev;

	prctl(PR_SET_NAME, "softverbs", 0, 0, 0);
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	for (;;) {
		/* This branch takes no lock: a thread that waits for the lock would delay the
		 * poller. */
		if (polled_lately(e)) {
			back_off(e);
			continue;
		}
		sv_lock();
		run_ready(e);
		int timeout = until_timer(e);
		sv_unlock();
		epoll_wait(e->epoll_fd, &ev, 1, timeout);
		atomic_store(&e->wakes_at, 0);
		drain_wake(e);
	}
	return NULL;
}

static int engine_start_thread(struct sv_engine *e)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&e->thread, NULL, engine_main, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

int sv_engine_start(struct sv_engine *e)
{
	TAILQ_INIT(&e->timers);
	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->epoll_fd < 0 || e->wake_fd < 0)
		return -errno;
	e->wake = (struct sv_watch){ .fd = e->wake_fd, .fn = engine_on_wake };
	int err = sv_watch_add(&e->wake, EPOLLIN);
	if (!err)
		err = engine_start_thread(e);
	e->running = !err;
	return err;
}

void sv_engine_forget(struct sv_engine *e)
{
	if (!e->running)
		return;
	close(e->epoll_fd);
	close(e->wake_fd);
	*e = (struct sv_engine){ 0 };
}

void sv_engine_drive(void)
{
	struct sv_engine *e = &sv_fabric.engine;

	atomic_store_explicit(&e->polled_at, sv_now(), memory_order_relaxed);
	unsigned polls = atomic_fetch_add_explicit(&e->idle_polls, 1, memory_order_relaxed);
	if (pthread_mutex_trylock(&sv_fabric.lock) == 0) {
		if (e->running && !e->nbatch)
			run_ready(e);
		sv_unlock();
	}
	/* With more pollers than processors, the one that has the data must run, too: what arrives
	 * ends the wait. */
	struct pollfd p = { .fd = e->epoll_fd, .events = POLLIN };
	struct timespec ts = { .tv_nsec = POLL_WAIT_NS };
	if (polls % 64 == 63)
		ppoll(&p, 1, &ts, NULL);
}

void sv_engine_waiter(void)
{
	struct sv_engine *e = &sv_fabric.engine;

	atomic_store(&e->idle_polls, 0);
	if (atomic_load(&e->backing_off))
		engine_wake(e);
}
