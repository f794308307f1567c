/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event thread. Only the thread that has the loop touches the base once it runs, so libevent
 * needs no locks; other threads use the inbox. It does work (struct ev_work) outside of libevent
 * only, so that it can lose the loop there: the base is then at rest. All signals are blocked in
 * the thread: they belong to the daemon's main thread.
 */
#include "transport/event_loop.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "transport/load.h"
#include "transport/second.h"
#include "transport/turns.h"

/* In ev_loop.owner: the thread is in work.run, and another one may take the loop. */
#define AT_WORK 1u
#define ROUNDS 4u /* of tasks and work before the loop looks at its descriptors */

struct ev_loop {
	struct event_base *base;
	struct event *wake; /* readable: the inbox has tasks */
	struct ev_second measure;
	struct rn_inbox inbox;
	struct turns turns;
	struct ev_load load;
	_Atomic uint64_t beats;
	struct ev_work work;
	char name[16];
	_Atomic pthread_t thread; /* the one that has the loop */
	/* Twice the number of threads that had the loop before, and perhaps AT_WORK. A thread that
	 * finds another number has lost the loop, and must not touch it. */
	_Atomic unsigned owner;
	_Atomic unsigned claim; /* owner that a new thread wants to replace; 0: none */
	pthread_mutex_t lock;	/* guards threads */
	pthread_cond_t ended;	/* a thread has ended */
	unsigned threads;	/* all that have not ended */
	struct ev_task stop_task;
	bool stopping; /* used by the thread that has the loop */
};

/* Runs one batch. Tasks posted meanwhile wait for the next pass, so that descriptors are served in
 * between. */
static bool run_posted(struct ev_loop *loop)
{
	struct rn_inbox_node *node = rn_inbox_take(&loop->inbox);
	bool any = node != NULL;

	while (node) {
		struct rn_inbox_node *next = node->next; /* run may post or free its task */
		struct ev_task *t = rn_container_of(node, struct ev_task, node);

		t->run(t);
		node = next;
	}
	return any;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct ev_loop *loop = arg;
	uint64_t n;
	ssize_t got = read(fd, &n, sizeof(n)); /* -EAGAIN: a spare wake-up */

	(void)got;
	(void)what;
	ev_load_awake(&loop->load);
	run_posted(loop);
}

static void on_measure(void *arg)
{
	struct ev_loop *loop = arg;

	ev_load_awake(&loop->load);
	ev_load_measure(&loop->load, rn_now_ns());
	atomic_fetch_add_explicit(&loop->beats, 1, memory_order_relaxed);
}

static void on_stop(struct ev_task *t)
{
	struct ev_loop *loop = rn_container_of(t, struct ev_loop, stop_task);

	loop->stopping = true;
}

/* Does one piece of work. False: another thread has the loop now. */
static bool do_piece(struct ev_loop *loop, unsigned me, void *state, void *piece)
{
	unsigned at_work = me | AT_WORK;

	atomic_store(&loop->owner, at_work);
	loop->work.run(loop->work.ctx, state, piece);
	return atomic_compare_exchange_strong(&loop->owner, &at_work, me);
}

static bool do_work(struct ev_loop *loop, unsigned me, void *state)
{
	void *piece;

	while (loop->work.take && (piece = loop->work.take(loop->work.ctx)) != NULL) {
		if (!do_piece(loop, me, state, piece))
			return false;
	}
	return true;
}

/* Does the work that waits and runs posted tasks, which leave each other more. *more: there may be
 * some left. False: another thread has the loop now. */
static bool do_all(struct ev_loop *loop, unsigned me, void *state, bool *more)
{
	*more = true;
	for (unsigned i = 0; i < ROUNDS && *more; i++) {
		if (!do_work(loop, me, state))
			return false;
		*more = run_posted(loop);
	}
	return true;
}

static void run_loop(struct ev_loop *loop, unsigned me, void *state)
{
	bool more;

	for (;;) {
		if (!do_all(loop, me, state, &more))
			return;
		if (loop->stopping)
			break;
		if (!more)
			ev_load_wait(&loop->load, rn_now_ns());
		event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY | EVLOOP_ONCE |
						    (more ? EVLOOP_NONBLOCK : 0));
		ev_load_awake(&loop->load);
	}
	while (run_posted(loop))
		;
}

/* The thread that has the loop, if it still does the piece of work of the claim, loses it to this
 * one. */
static bool take_over(struct ev_loop *loop, unsigned *me)
{
	unsigned was = atomic_load(&loop->claim);
	bool mine = true;

	*me = 0;
	if (was != 0) {
		*me = (was & ~AT_WORK) + 2;
		mine = atomic_compare_exchange_strong(&loop->owner, &was, *me);
	}
	if (mine)
		atomic_store(&loop->thread, pthread_self());
	atomic_store(&loop->claim, 0);
	return mine;
}

static void *loop_main(void *arg)
{
	struct ev_loop *loop = arg;
	void *state = loop->work.begin ? loop->work.begin(loop->work.ctx) : NULL;
	unsigned me;

	pthread_setname_np(pthread_self(), loop->name);
	if (take_over(loop, &me))
		run_loop(loop, me, state);
	if (loop->work.end)
		loop->work.end(state);
	/* Tasks that this thread posted did not wake the loop, as it meant to run them itself. */
	rn_inbox_wake(&loop->inbox);
	pthread_mutex_lock(&loop->lock);
	loop->threads--;
	pthread_cond_signal(&loop->ended);
	pthread_mutex_unlock(&loop->lock);
	return NULL;
}

static int start_thread(struct ev_loop *loop)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_mutex_lock(&loop->lock);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&thread, NULL, loop_main, loop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc) {
		pthread_detach(thread);
		loop->threads++;
	}
	pthread_mutex_unlock(&loop->lock);
	return -rc;
}

static int make_base(struct ev_loop *loop)
{
	struct event_config *cfg = event_config_new();

	if (!cfg)
		return -ENOMEM;
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
	/* Not select(), whatever the environment says: it ends the process at descriptor 1024. */
	event_config_require_features(cfg, EV_FEATURE_O1);
	loop->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (!loop->base)
		return -ENOMEM;
	loop->wake = event_new(loop->base, loop->inbox.fd, EV_READ | EV_PERSIST, on_wake, loop);
	if (!loop->wake || event_add(loop->wake, NULL) < 0)
		return -ENOMEM;
	int rc = ev_second_start(&loop->measure, loop->base, on_measure, loop);
	if (rc)
		return rc;
	ev_load_init(&loop->load, rn_now_ns());
	return turns_init(&loop->turns, loop->base, &loop->load);
}

static void release(struct ev_loop *loop)
{
	turns_fini(&loop->turns);
	if (loop->wake)
		event_free(loop->wake);
	ev_second_stop(&loop->measure);
	if (loop->base)
		event_base_free(loop->base);
	rn_inbox_fini(&loop->inbox);
	pthread_cond_destroy(&loop->ended);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

int ev_loop_new(const char *thread_name, const struct ev_work *work, struct ev_loop **out)
{
	struct ev_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	int rc = rn_inbox_init(&loop->inbox);
	if (rc) {
		free(loop);
		return rc;
	}
	pthread_mutex_init(&loop->lock, NULL);
	pthread_cond_init(&loop->ended, NULL);
	snprintf(loop->name, sizeof(loop->name), "%s", thread_name);
	if (work)
		loop->work = *work;
	loop->stop_task.run = on_stop;
	rc = make_base(loop);
	if (!rc)
		rc = start_thread(loop);
	if (rc) {
		release(loop);
		return rc;
	}
	*out = loop;
	return 0;
}

void ev_loop_free(struct ev_loop *loop)
{
	if (!loop)
		return;
	ev_loop_post(loop, &loop->stop_task);
	pthread_mutex_lock(&loop->lock);
	while (loop->threads > 0)
		pthread_cond_wait(&loop->ended, &loop->lock);
	pthread_mutex_unlock(&loop->lock);
	release(loop);
}

struct event_base *ev_loop_base(struct ev_loop *loop)
{
	return loop->base;
}

struct turns *ev_loop_turns(struct ev_loop *loop)
{
	return &loop->turns;
}

struct ev_load *ev_loop_load(struct ev_loop *loop)
{
	return &loop->load;
}

bool ev_loop_is_current(struct ev_loop *loop)
{
	return pthread_equal(pthread_self(), atomic_load(&loop->thread));
}

int ev_loop_replace(struct ev_loop *loop)
{
	unsigned owner = atomic_load(&loop->owner), none = 0;
	int rc;

	if (!(owner & AT_WORK) || !atomic_compare_exchange_strong(&loop->claim, &none, owner))
		return -EALREADY;
	rc = start_thread(loop);
	if (rc)
		atomic_store(&loop->claim, 0);
	return rc;
}

/* The loop's own thread looks into the inbox before it sleeps, or wakes the one that has taken its
 * place. */
void ev_loop_post(struct ev_loop *loop, struct ev_task *t)
{
	if (ev_loop_is_current(loop))
		rn_inbox_post_quiet(&loop->inbox, &t->node);
	else
		rn_inbox_post(&loop->inbox, &t->node);
}

struct call {
	struct ev_task task;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void run_call(struct ev_task *t)
{
	struct call *c = rn_container_of(t, struct call, task);

	c->fn(c->arg);
	sem_post(&c->done); /* c is gone after this */
}

void ev_loop_call(struct ev_loop *loop, void (*fn)(void *arg), void *arg)
{
	if (ev_loop_is_current(loop)) {
		fn(arg);
		return;
	}
	struct call c = { .task.run = run_call, .fn = fn, .arg = arg };

	sem_init(&c.done, 0, 0);
	ev_loop_post(loop, &c.task);
	while (sem_wait(&c.done) < 0 && errno == EINTR)
		;
	sem_destroy(&c.done);
}

void ev_loop_stats(struct ev_loop *loop, struct ev_loop_stats *out)
{
	out->connections = atomic_load(&loop->load.conns);
	out->busy_ms = ev_load_measured(&loop->load) * RN_MS_PER_SECOND / EV_LOAD_FULL;
	out->beats = atomic_load_explicit(&loop->beats, memory_order_relaxed);
}
