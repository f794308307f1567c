/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks after workers while there is work. A worker without progress for a while has stalled in a
 * system call: it gets no further requests, and counts for the file system that it is in. If it is an
 * event thread, another thread goes on with its loop. After seconds it is stuck, and its file system is silent.
 * Queues that wait without being served get further workers. A queue whose workers are all stuck
 * is blocked: its calls are answered "come again" until one of them comes back.
 */
#include <string.h>
#include <time.h>

#include "daemon/workers/worker_pool.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/log_ids.h"
#include "transport/event_loop.h"

#define LOOK_MS 50u
#define STALLED_MS 100u	    /* time without progress after which a worker has stalled */
#define STALLED_LOOP_MS 50u /* the same of an event thread, as clients wait for it */
#define STARVED_LOOKS 2u    /* looks without progress after which a queue gets a further worker */
#define QUIET_LOOKS 20u	    /* looks without work after which the watch sleeps */

/* Moves a worker that has stalled in another queue's file system to that queue, so that its former queue
 * may get another worker. */
static void change_fs_queue(struct worker *w)
{
	const unsigned in = atomic_load(&w->touching);
	uint32_t is = atomic_load(&w->hold);

	do {
		if (in == 0 || hold_count(is) == 0 || hold_fs_queue(is) == in)
			return;
	} while (!atomic_compare_exchange_weak(&w->hold, &is, in << 16 | hold_count(is)));
	atomic_fetch_add(&w->pool->bound[in], 1);
	atomic_fetch_sub(&w->pool->bound[hold_fs_queue(is)], 1);
}

/* The queue that the worker has stalled in. */
static unsigned fs_queue_of_stalled(const struct worker *w)
{
	return w->loop ? atomic_load(&w->touching) : hold_fs_queue(atomic_load(&w->hold));
}

/* Updates whether the worker has stalled, or is stuck: its beat stands still with work in hand. True: there is work. */
static bool worker_watch_check_one(struct worker *w)
{
	const uint64_t beat = atomic_load(&w->beat), seen = w->seen;
	/* Idle: it waits for work. A stalled one has been rid of it. */
	const bool waits =
		(beat & 1) == 0 && atomic_load(&w->waiting) == 0 && !atomic_load(&w->stalled);

	w->seen = beat;
	if (waits || beat != seen) {
		w->stalled_ms = 0;
		w->replaced = false;
		atomic_store(&w->stalled, false);
		atomic_store(&w->stuck, false);
		return !waits || beat != seen || hold_count(atomic_load(&w->hold)) > 0;
	}
	w->stalled_ms += LOOK_MS;
	if (w->stalled_ms < (w->loop ? STALLED_LOOP_MS : STALLED_MS))
		return true;
	atomic_store(&w->stalled, true);
	atomic_store(&w->stuck, w->stalled_ms >= STUCK_MS);
	if (!w->loop) {
		change_fs_queue(w);
		worker_rescue(w);
	}
	return true;
}

/* Number of workers that are stuck in the queue's file system. */
static unsigned count_stuck(struct workers *ws, unsigned fs_queue)
{
	unsigned n = 0;

	for (const struct worker *w = atomic_load(&ws->all); w; w = w->next) {
		const uint32_t is = atomic_load(&w->hold);

		n += w->stalled_ms >= STUCK_MS && hold_count(is) > 0 &&
		     hold_fs_queue(is) == fs_queue;
	}
	return n;
}

static void set_blocked(struct workers *ws, unsigned fs_queue, bool blocked)
{
	char name[FS_QUEUE_NAME];

	fs_queue_block(ws->cfg.fs_queues, fs_queue, blocked);
	fs_queue_name(ws->cfg.fs_queues, fs_queue, name);
	if (blocked)
		rn_warn(ws->cfg.log,
			"%s has all %u workers that wait for one file system: clients that call it "
			"are told to try again",
			name, ws->cfg.count);
	else
		rn_notice(ws->cfg.log, "%s is called again", name);
}

static void worker_watch_log_silent(struct workers *ws, unsigned fs_queue, bool silent)
{
	const struct rn_log_event event = { .id = silent ? RN_ID_FS_STUCK : RN_ID_FS_ANSWERS };
	uint64_t *since = &ws->watch.silent_since[fs_queue];
	const uint64_t now = rn_now_ns();
	char name[FS_QUEUE_NAME];

	fs_queue_name(ws->cfg.fs_queues, fs_queue, name);
	if (silent) {
		*since = now - STUCK_MS * 1000000ull;
		rn_log_event(ws->cfg.log, RN_WARNING, &event,
			     "%s does not answer: a call has waited for it for %u seconds", name,
			     STUCK_MS / 1000);
	} else {
		rn_log_event(ws->cfg.log, RN_NOTICE, &event, "%s answers again, after %u seconds",
			     name, (unsigned)((now - *since) / RN_NS_PER_SECOND));
	}
}

/* Logs which queues' file systems no longer answer, and which do again. */
static void log_changes(struct workers *ws, uint32_t silent)
{
	const uint32_t changed = ws->watch.silent ^ silent;

	for (unsigned i = 0; i < RPC_FS_QUEUES; i++)
		if (changed & 1u << i)
			worker_watch_log_silent(ws, i, silent & 1u << i);
	ws->watch.silent = silent;
}

/* True if what the queue's calls wait for are stacks, of which another worker would have none either. */
static bool lacks_stacks(const struct workers *ws)
{
	for (const struct worker *w = atomic_load(&ws->all); w; w = w->next)
		if (!w->loop && atomic_load(&w->no_stack) && !atomic_load(&w->stalled))
			return true;
	return false;
}

/* Gives the queue's waiting calls to a worker with room, or starts another worker. Queue 0, for calls
 * that name no file, may have all workers. */
static void worker_watch_feed_fs_queue(struct workers *ws, unsigned fs_queue)
{
	const unsigned most = fs_queue ? ws->cfg.count : ws->most;
	int rc;

	if (worker_feed(ws, fs_queue) || atomic_load(&ws->bound[fs_queue]) >= most ||
	    lacks_stacks(ws))
		return;
	rc = worker_start(ws);
	if (!rc)
		rn_info(ws->cfg.log,
			"started worker %u, as the others have calls of other file systems",
			atomic_load(&ws->count));
	else if (rc != -RN_EFULL)
		rn_warn(ws->cfg.log, "cannot start a further worker: %s", strerror(-rc));
}

static void look_at_fs_queue(struct workers *ws, unsigned fs_queue)
{
	struct worker_watch *watch = &ws->watch;
	const uint64_t popped = atomic_load(&ws->popped[fs_queue]);
	const bool waits = call_queue_waiting(&ws->calls, fs_queue) > 0;
	bool blocked;

	watch->starved[fs_queue] =
		waits && popped == watch->popped[fs_queue] ? watch->starved[fs_queue] + 1 : 0;
	watch->popped[fs_queue] = popped;
	if (fs_queue > 0) {
		blocked = count_stuck(ws, fs_queue) >= ws->cfg.count;
		if (blocked != fs_queue_blocked(ws->cfg.fs_queues, fs_queue))
			set_blocked(ws, fs_queue, blocked);
		if (blocked) {
			worker_divert(ws, fs_queue);
			return;
		}
	}
	if (watch->starved[fs_queue] >= STARVED_LOOKS)
		worker_watch_feed_fs_queue(ws, fs_queue);
}

/* Looks at all workers. *stalled, *silent: the queues in which some have stalled, and are stuck, as bits. True: there is work. */
static bool worker_watch_check_all(struct workers *ws, uint32_t *stalled, uint32_t *silent)
{
	bool busy = false;

	for (struct worker *w = atomic_load(&ws->all); w; w = w->next) {
		busy |= worker_watch_check_one(w);
		if (atomic_load(&w->stalled))
			*stalled |= 1u << fs_queue_of_stalled(w);
		if (atomic_load(&w->stuck))
			*silent |= 1u << fs_queue_of_stalled(w);
	}
	return busy;
}

/* Has other threads go on with the loops of stalled ones. A thread that has lost its loop and goes on to stall says nothing of
 * the present one. */
static void replace_stalled(struct workers *ws)
{
	for (struct worker *w = atomic_load(&ws->all); w; w = w->next)
		if (w->loop && !w->replaced && atomic_load(&w->stalled))
			w->replaced = ev_loop_replace(w->loop) == 0;
}

/* True if there is work. */
static bool worker_watch_check(struct workers *ws)
{
	uint32_t stalled = 0, silent = 0;
	bool busy = worker_watch_check_all(ws, &stalled, &silent);

	/* The next thread of a loop must know which calls are not for it. */
	for (unsigned i = 1; i < RPC_FS_QUEUES; i++)
		fs_queue_doubt(ws->cfg.fs_queues, i, stalled & 1u << i);
	replace_stalled(ws);
	if (silent != ws->watch.silent)
		log_changes(ws, silent);
	for (unsigned i = 0; i < RPC_FS_QUEUES; i++) {
		look_at_fs_queue(ws, i);
		busy |= call_queue_waiting(&ws->calls, i) > 0;
	}
	return busy;
}

/* Sleeps until worker_watch_wake() or worker_watch_stop(). The caller holds the lock. */
static void wait_for_work(struct worker_watch *watch)
{
	atomic_store(&watch->asleep, true);
	while (!watch->stop && atomic_load(&watch->asleep))
		pthread_cond_wait(&watch->woken, &watch->lock);
	atomic_store(&watch->asleep, false);
}

static void *watch_main(void *arg)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000 };
	struct workers *ws = arg;
	struct worker_watch *watch = &ws->watch;
	unsigned quiet = 0;

	pthread_mutex_lock(&watch->lock);
	while (!watch->stop) {
		if (quiet > QUIET_LOOKS)
			wait_for_work(watch);
		pthread_mutex_unlock(&watch->lock);
		nanosleep(&pause, NULL);
		quiet = worker_watch_check(ws) ? 0 : quiet + 1;
		pthread_mutex_lock(&watch->lock);
	}
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

int worker_watch_start(struct workers *ws)
{
	struct worker_watch *watch = &ws->watch;
	int rc;

	pthread_mutex_init(&watch->lock, NULL);
	pthread_cond_init(&watch->woken, NULL);
	rc = -pthread_create(&watch->thread, NULL, watch_main, ws);
	if (rc)
		return rc;
	watch->started = true;
	pthread_setname_np(watch->thread, "watch");
	return 0;
}

void worker_watch_stop(struct workers *ws)
{
	struct worker_watch *watch = &ws->watch;

	if (!watch->started)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->stop = true;
	pthread_cond_signal(&watch->woken);
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	watch->started = false;
	pthread_cond_destroy(&watch->woken);
	pthread_mutex_destroy(&watch->lock);
}

void worker_watch_wake(struct workers *ws)
{
	struct worker_watch *watch = &ws->watch;

	pthread_mutex_lock(&watch->lock);
	atomic_store(&watch->asleep, false);
	pthread_cond_signal(&watch->woken);
	pthread_mutex_unlock(&watch->lock);
}
