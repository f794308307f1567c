/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/acceptor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"

STAILQ_HEAD(job_list, gss_job);

struct gss_acceptor {
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t wake, ended;
	struct job_list queue;
	struct rn_shares shares; /* of the queue */
	bool closed;
	unsigned nthreads; /* threads that have not ended */
	struct gss_job *running[GSS_THREADS];
	unsigned nrunning;
};

static unsigned running_of(const struct gss_acceptor *a, const struct rn_host *host)
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->nrunning; i++)
		n += rn_host_equal(&a->running[i]->host, host);
	return n;
}

/* Under the lock: the oldest job of a host that may have one more thread. */
static struct gss_job *gss_acceptor_take(struct gss_acceptor *a)
{
	struct gss_job *j;

	STAILQ_FOREACH(j, &a->queue, link)
	{
		if (running_of(a, &j->host) < GSS_HOST_THREADS)
			break;
	}
	if (!j)
		return NULL;
	STAILQ_REMOVE(&a->queue, j, gss_job, link);
	rn_shares_remove(&a->shares, &j->place);
	a->running[a->nrunning++] = j;
	return j;
}

/* Under the lock. */
static void ran(struct gss_acceptor *a, const struct gss_job *job)
{
	unsigned i = 0;

	while (a->running[i] != job)
		i++;
	a->running[i] = a->running[--a->nrunning];
	/* Jobs of the host may have been passed over. */
	pthread_cond_broadcast(&a->wake);
}

static void *acceptor_main(void *arg)
{
	struct gss_acceptor *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->closed) {
		struct gss_job *j = gss_acceptor_take(a);

		if (!j) {
			pthread_cond_wait(&a->wake, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		j->run(j);
		pthread_mutex_lock(&a->lock);
		ran(a, j);
		pthread_mutex_unlock(&a->lock);
		j->done(j);
		pthread_mutex_lock(&a->lock);
	}
	a->nthreads--;
	pthread_cond_signal(&a->ended);
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Threads are detached: one that hangs in the library is left behind by the end of the process. */
static void gss_acceptor_start_threads(struct gss_acceptor *a)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_mutex_lock(&a->lock);
	while (a->nthreads < GSS_THREADS && pthread_create(&thread, &attr, acceptor_main, a) == 0) {
		pthread_setname_np(thread, "gss");
		a->nthreads++;
	}
	pthread_mutex_unlock(&a->lock);
	pthread_attr_destroy(&attr);
}

struct gss_acceptor *gss_acceptor_new(void)
{
	struct gss_acceptor *a = calloc(1, sizeof(*a));
	pthread_condattr_t attr;

	if (!a)
		return NULL;
	STAILQ_INIT(&a->queue);
	rn_shares_init(&a->shares, GSS_JOBS, GSS_HOST_JOBS);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, &attr);
	pthread_cond_init(&a->ended, &attr);
	pthread_condattr_destroy(&attr);
	gss_acceptor_start_threads(a);
	if (a->nthreads == 0) {
		gss_acceptor_free(a, 0);
		return NULL;
	}
	return a;
}

static void gss_job_abandon(struct gss_job *j)
{
	j->abandoned = true;
	if (j->abandon)
		j->abandon(j);
}

void gss_acceptor_close(struct gss_acceptor *a)
{
	struct job_list left = STAILQ_HEAD_INITIALIZER(left);
	struct gss_job *j;

	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; !a->closed && i < a->nrunning; i++)
		gss_job_abandon(a->running[i]);
	a->closed = true;
	STAILQ_FOREACH(j, &a->queue, link)
	rn_shares_remove(&a->shares, &j->place);
	STAILQ_CONCAT(&left, &a->queue);
	pthread_cond_broadcast(&a->wake);
	pthread_mutex_unlock(&a->lock);
	while ((j = STAILQ_FIRST(&left))) {
		STAILQ_REMOVE_HEAD(&left, link);
		gss_job_abandon(j);
		j->done(j);
	}
}

bool gss_acceptor_free(struct gss_acceptor *a, unsigned seconds)
{
	const struct timespec limit = rn_after_seconds(seconds);
	int rc = 0;

	if (!a)
		return true;
	gss_acceptor_close(a);
	pthread_mutex_lock(&a->lock);
	while (a->nthreads > 0 && !rc)
		rc = pthread_cond_timedwait(&a->ended, &a->lock, &limit);
	const bool all = a->nthreads == 0;
	pthread_mutex_unlock(&a->lock);
	if (!all)
		return false;
	pthread_cond_destroy(&a->wake);
	pthread_cond_destroy(&a->ended);
	pthread_mutex_destroy(&a->lock);
	rn_shares_fini(&a->shares);
	free(a);
	return true;
}

/* Takes a job into the queue. Those that make room are moved to out. Under the lock. */
static bool queue_job(struct gss_acceptor *a, struct gss_job *job, struct job_list *out)
{
	struct rn_share_item *old;

	if (a->closed)
		return false;
	while ((old = rn_shares_in_the_way(&a->shares, &job->host, job->admitted, 1)) != NULL) {
		struct gss_job *j = rn_container_of(old, struct gss_job, place);

		STAILQ_REMOVE(&a->queue, j, gss_job, link);
		rn_shares_remove(&a->shares, old);
		STAILQ_INSERT_TAIL(out, j, link);
	}
	if (!rn_shares_add(&a->shares, &job->host, job->admitted, &job->place, 1))
		return false;
	STAILQ_INSERT_TAIL(&a->queue, job, link);
	return true;
}

bool gss_acceptor_submit(struct gss_acceptor *a, struct gss_job *job)
{
	struct job_list out = STAILQ_HEAD_INITIALIZER(out);
	struct gss_job *j;
	bool ok;

	job->abandoned = job->made_room = false;
	pthread_mutex_lock(&a->lock);
	ok = queue_job(a, job, &out);
	if (ok)
		pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	while ((j = STAILQ_FIRST(&out))) {
		STAILQ_REMOVE_HEAD(&out, link);
		j->made_room = true;
		gss_job_abandon(j);
		j->done(j);
	}
	return ok;
}
