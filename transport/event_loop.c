/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event thread. Only the thread itself touches the base once it runs, so libevent needs no
 * locks; other threads use the inbox. All signals are blocked in the thread: they belong to the
 * daemon's main thread.
 */
#include "transport/event_loop.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/util.h"
#include "transport/turns.h"

struct ev_loop {
	struct event_base *base;
	struct event *wake; /* readable: the inbox has tasks */
	struct rn_inbox inbox;
	struct turns turns;
	pthread_t thread;
	struct ev_task stop_task;
	bool stopping; /* used by the loop's thread only */
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
	run_posted(loop);
	if (loop->stopping)
		event_base_loopbreak(loop->base);
}

static void on_stop(struct ev_task *t)
{
	struct ev_loop *loop = rn_container_of(t, struct ev_loop, stop_task);

	loop->stopping = true;
}

static void *loop_main(void *arg)
{
	struct ev_loop *loop = arg;

	while (!loop->stopping)
		event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
	while (run_posted(loop))
		;
	return NULL;
}

static int start_thread(struct ev_loop *loop, const char *name)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&loop->thread, NULL, loop_main, loop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return -rc;
	pthread_setname_np(loop->thread, name); /* a name over 15 bytes is refused: no harm */
	return 0;
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
	return turns_init(&loop->turns, loop->base);
}

static void release(struct ev_loop *loop)
{
	turns_fini(&loop->turns);
	if (loop->wake)
		event_free(loop->wake);
	if (loop->base)
		event_base_free(loop->base);
	rn_inbox_fini(&loop->inbox);
	free(loop);
}

int ev_loop_new(const char *thread_name, struct ev_loop **out)
{
	struct ev_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	int rc = rn_inbox_init(&loop->inbox);
	if (rc) {
		free(loop);
		return rc;
	}
	loop->stop_task.run = on_stop;
	rc = make_base(loop);
	if (!rc)
		rc = start_thread(loop, thread_name);
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
	pthread_join(loop->thread, NULL);
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

void ev_loop_post(struct ev_loop *loop, struct ev_task *t)
{
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
	if (pthread_equal(pthread_self(), loop->thread)) {
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
