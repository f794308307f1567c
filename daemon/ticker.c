/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/ticker.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "lib/clock.h"

struct ticker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void (*tick)(void *ctx);
	void *ctx;
	bool stop, hurry;
};

/* Under the lock. */
static void wait_a_second(struct ticker *t)
{
	const struct timespec until = rn_after_seconds(1);
	int rc = 0;

	while (!t->stop && !t->hurry && rc == 0)
		rc = pthread_cond_timedwait(&t->changed, &t->lock, &until);
}

static void *ticker_main(void *arg)
{
	struct ticker *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->stop) {
		t->hurry = false;
		pthread_mutex_unlock(&t->lock);
		t->tick(t->ctx);
		pthread_mutex_lock(&t->lock);
		wait_a_second(t);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void ticker_free(struct ticker *t)
{
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int ticker_start(const char *name, void (*tick)(void *ctx), void *ctx, struct ticker **out)
{
	struct ticker *t = calloc(1, sizeof(*t));
	pthread_condattr_t attr;
	int rc;

	if (!t)
		return -ENOMEM;
	t->tick = tick;
	t->ctx = ctx;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = -pthread_create(&t->thread, NULL, ticker_main, t);
	if (rc) {
		ticker_free(t);
		return rc;
	}
	pthread_setname_np(t->thread, name);
	*out = t;
	return 0;
}

void ticker_hurry(struct ticker *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->hurry = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void ticker_stop(struct ticker *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	ticker_free(t);
}
