/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event thread. Only the thread that has the loop touches the base once it runs, so libevent
 * needs no locks; other threads use the inbox. It makes calls (struct ev_calls) outside of libevent
 * only, so that it can lose the loop there: the base is then at rest. All signals are blocked in
 * the thread: they belong to the daemon's main thread.
 */
#include "transport/event_loop.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "transport/turns.h"

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct ev_second *s = arg;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		s->tick(s->arg);
}

int ev_second_start(struct ev_second *s, struct event_base *base, void (*tick)(void *arg),
		    void *arg)
{
	const struct itimerspec every = { .it_interval = { .tv_sec = 1 },
					  .it_value = { .tv_sec = 1 } };

	s->tick = tick;
	s->arg = arg;
	s->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	s->ev = event_new(base, s->fd, EV_READ | EV_PERSIST, on_second, s);
	if (s->ev && timerfd_settime(s->fd, 0, &every, NULL) == 0 && event_add(s->ev, NULL) == 0)
		return 0;
	if (s->ev)
		event_free(s->ev);
	s->ev = NULL;
	close(s->fd);
	return -ENOMEM;
}

void ev_second_stop(struct ev_second *s)
{
	if (!s->ev)
		return;
	event_free(s->ev);
	s->ev = NULL;
	close(s->fd);
}

void ev_load_init(struct ev_loop *l, uint64_t now)
{
	l->awake_ns = l->measured_ns = now;
}

void ev_load_wait(struct ev_loop *l, uint64_t now)
{
	if (l->awake_ns)
		l->busy_ns += now - l->awake_ns;
	l->awake_ns = 0;
	l->waits_ns = now;
}

void ev_load_work(struct ev_loop *l, uint64_t now)
{
	if (!l->awake_ns)
		l->awake_ns = now - l->waits_ns < EV_LOAD_SLEEP_NS ? l->waits_ns : now;
}

void ev_load_measure(struct ev_loop *l, uint64_t now)
{
	const uint64_t span = now - l->measured_ns;
	uint64_t busy = l->busy_ns;

	if (l->awake_ns) {
		busy += now - l->awake_ns;
		l->awake_ns = now;
	}
	if (span == 0)
		return;
	busy = rn_min(busy, span);
	l->busy_ns = 0;
	l->measured_ns = now;
	atomic_store_explicit(&l->measured, (unsigned)(busy * EV_LOAD_FULL / span),
			      memory_order_relaxed);
	atomic_store_explicit(&l->expected, 0, memory_order_relaxed);
}

struct rank {
	unsigned load, conns;
};

static struct rank rank_of(const struct ev_loop *l)
{
	const bool idle = ev_load_measured(l) < EV_PLACE_IDLE;

	return (struct rank){ idle ? 0 : ev_load_expected(l),
			      atomic_load_explicit(&l->conns, memory_order_relaxed) };
}

static bool ev_rank_is_better(struct rank a, struct rank b)
{
	return a.load < b.load || (a.load == b.load && a.conns < b.conns);
}

unsigned ev_place(struct ev_loop *const *loops, unsigned n)
{
	struct rank best = rank_of(loops[0]);
	unsigned at = 0;

	for (unsigned i = 1; i < n; i++) {
		const struct rank r = rank_of(loops[i]);

		if (ev_rank_is_better(r, best)) {
			best = r;
			at = i;
		}
	}
	ev_load_join(loops[at]);
	ev_load_expect(loops[at], EV_LOAD_NEW);
	return at;
}

unsigned ev_place_least(struct ev_loop *const *loops, unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 1; i < n; i++)
		if (ev_load_expected(loops[i]) < ev_load_expected(loops[at]))
			at = i;
	return at;
}

/* In ev_loop.owner: the thread is in calls.run, and another one may take the loop. */
#define AT_WORK 1u
#define ROUNDS 4u /* of calls and tasks before the loop looks at its descriptors */

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

static void ev_loop_on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct ev_loop *loop = arg;
	uint64_t n;
	ssize_t got = read(fd, &n, sizeof(n)); /* -EAGAIN: a spare wake-up */

	(void)got;
	(void)what;
	ev_load_awake(loop);
	run_posted(loop);
}

static void on_measure(void *arg)
{
	struct ev_loop *loop = arg;

	ev_load_awake(loop);
	ev_load_measure(loop, rn_now_ns());
	atomic_fetch_add_explicit(&loop->beats, 1, memory_order_relaxed);
}

static void ev_loop_on_stop(struct ev_task *t)
{
	struct ev_loop *loop = rn_container_of(t, struct ev_loop, stop_task);

	loop->stopping = true;
}

static struct rn_inbox_node *ev_loop_next_call(struct ev_loop *loop)
{
	struct rn_inbox_node *call = loop->first;

	if (!call)
		return NULL;
	loop->first = call->next;
	if (!loop->first)
		loop->last = &loop->first;
	return call;
}

/* False: another thread has the loop now. */
static bool make_call(struct ev_loop *loop, unsigned me, void *state, struct rn_inbox_node *call)
{
	unsigned at_work = me | AT_WORK;

	atomic_store(&loop->owner, at_work);
	loop->calls.run(loop->calls.ctx, state, call);
	return atomic_compare_exchange_strong(&loop->owner, &at_work, me);
}

static bool make_calls(struct ev_loop *loop, unsigned me, void *state)
{
	struct rn_inbox_node *call;

	while ((call = ev_loop_next_call(loop)) != NULL) {
		if (!make_call(loop, me, state, call))
			return false;
	}
	return true;
}

/* Makes the calls that are kept and runs posted tasks, which leave each other more. *more: there
 * may be some left. False: another thread has the loop now. */
static bool do_all(struct ev_loop *loop, unsigned me, void *state, bool *more)
{
	*more = true;
	for (unsigned i = 0; i < ROUNDS && *more; i++) {
		if (!make_calls(loop, me, state))
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
			ev_load_wait(loop, rn_now_ns());
		event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY | EVLOOP_ONCE |
						    (more ? EVLOOP_NONBLOCK : 0));
		ev_load_awake(loop);
	}
	while (run_posted(loop))
		;
}

/* The thread that has the loop, if it is still in the call of the claim, loses it to this one. */
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
	void *state = loop->calls.begin ? loop->calls.begin(loop->calls.ctx, loop) : NULL;
	unsigned me;

	pthread_setname_np(pthread_self(), loop->name);
	if (take_over(loop, &me))
		run_loop(loop, me, state);
	if (loop->calls.end)
		loop->calls.end(state);
	/* Tasks that this thread posted did not wake the loop, as it meant to run them itself. */
	rn_inbox_wake(&loop->inbox);
	pthread_mutex_lock(&loop->lock);
	loop->threads--;
	pthread_cond_signal(&loop->ended);
	pthread_mutex_unlock(&loop->lock);
	return NULL;
}

static int ev_loop_start_thread(struct ev_loop *loop)
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

static int ev_loop_make_base(struct ev_loop *loop)
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
	loop->wake =
		event_new(loop->base, loop->inbox.fd, EV_READ | EV_PERSIST, ev_loop_on_wake, loop);
	if (!loop->wake || event_add(loop->wake, NULL) < 0)
		return -ENOMEM;
	int rc = ev_second_start(&loop->measure, loop->base, on_measure, loop);
	if (rc)
		return rc;
	ev_load_init(loop, rn_now_ns());
	return turns_init(loop);
}

static void ev_loop_release(struct ev_loop *loop)
{
	turns_fini(loop);
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

int ev_loop_new(const char *thread_name, const struct ev_calls *calls, struct ev_loop **out)
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
	if (calls)
		loop->calls = *calls;
	loop->last = &loop->first;
	loop->stop_task.run = ev_loop_on_stop;
	rc = ev_loop_make_base(loop);
	if (!rc)
		rc = ev_loop_start_thread(loop);
	if (rc) {
		ev_loop_release(loop);
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
	ev_loop_release(loop);
}

bool ev_loop_is_current(struct ev_loop *loop)
{
	return pthread_equal(pthread_self(), atomic_load(&loop->thread));
}

void ev_loop_keep(struct ev_loop *loop, struct rn_inbox_node *call)
{
	call->next = NULL;
	*loop->last = call;
	loop->last = &call->next;
}

int ev_loop_replace(struct ev_loop *loop)
{
	unsigned owner = atomic_load(&loop->owner), none = 0;
	int rc;

	if (!(owner & AT_WORK) || !atomic_compare_exchange_strong(&loop->claim, &none, owner))
		return -EALREADY;
	rc = ev_loop_start_thread(loop);
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

struct handed {
	struct ev_task task;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void run_handed(struct ev_task *t)
{
	struct handed *c = rn_container_of(t, struct handed, task);

	c->fn(c->arg);
	sem_post(&c->done); /* c is gone after this */
}

void ev_loop_call(struct ev_loop *loop, void (*fn)(void *arg), void *arg)
{
	if (ev_loop_is_current(loop)) {
		fn(arg);
		return;
	}
	struct handed c = { .task.run = run_handed, .fn = fn, .arg = arg };

	sem_init(&c.done, 0, 0);
	ev_loop_post(loop, &c.task);
	while (sem_wait(&c.done) < 0 && errno == EINTR)
		;
	sem_destroy(&c.done);
}

void ev_loop_stats(struct ev_loop *loop, struct ev_loop_stats *out)
{
	out->connections = atomic_load(&loop->conns);
	out->busy_ms = ev_load_measured(loop) * RN_MS_PER_SECOND / EV_LOAD_FULL;
	out->beats = atomic_load_explicit(&loop->beats, memory_order_relaxed);
}
