/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/jobs.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"

TAILQ_HEAD(rn_job_list, rn_job);

/* A host with jobs that wait or run. */
struct rn_jobs_host {
	struct rn_host_entry of; /* in rn_jobs.hosts */
	struct rn_fq_flow flow;
	unsigned running;
};

struct rn_jobs {
	struct rn_jobs_config cfg;
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t wake, ended;
	struct rn_fq queue;
	struct rn_host_table hosts;
	struct rn_quota quota; /* of the jobs that wait */
	struct rn_job_list running;
	unsigned nthreads,
		idle; /* threads that have not ended; of them, those that wait for a job */
	bool closed;
	struct timespec closed_at; /* CLOCK_MONOTONIC */
};

/* Under the lock. NULL: no memory. */
static struct rn_jobs_host *jobs_host_get(struct rn_jobs *q, const struct rn_host *host)
{
	struct rn_host_entry *e = rn_host_find(&q->hosts, host);
	struct rn_jobs_host *h;

	if (e)
		return rn_container_of(e, struct rn_jobs_host, of);
	h = calloc(1, sizeof(*h));
	if (h) {
		h->of.host = *host;
		rn_fq_flow_init(&h->flow);
		rn_host_add(&q->hosts, &h->of);
	}
	return h;
}

/* Under the lock: frees a host without jobs. */
static void jobs_host_update(struct rn_jobs_host *h)
{
	if (h->running > 0 || rn_fq_waits(&h->flow))
		return;
	rn_host_remove(&h->of);
	free(h);
}

static struct rn_job *job_of(const struct rn_fq_item *turn)
{
	return rn_container_of((struct rn_fq_item *)turn, struct rn_job, turn);
}

/* True if the job's host may have one more thread. */
static bool job_may_run(void *ctx, const struct rn_fq_item *turn)
{
	const struct rn_jobs *q = ctx;

	return job_of(turn)->of->running < q->cfg.host_threads;
}

/* Under the lock: the next job that may run, which counts as running. */
static struct rn_job *jobs_take(struct rn_jobs *q)
{
	/* Hosts that have their threads are fewer than those. */
	struct rn_fq_item *turn = rn_fq_pop_if(&q->queue, q->cfg.threads, job_may_run, q);
	struct rn_job *job;

	if (!turn)
		return NULL;
	job = job_of(turn);
	rn_quota_remove(&q->quota, &job->place);
	job->of->running++;
	TAILQ_INSERT_TAIL(&q->running, job, link);
	return job;
}

/* Called and returns with the lock held, but releases it in between. */
static void jobs_run(struct rn_jobs *q, struct rn_job *job)
{
	pthread_mutex_unlock(&q->lock);
	job->run(job);
	pthread_mutex_lock(&q->lock);
	TAILQ_REMOVE(&q->running, job, link);
	job->of->running--;
	jobs_host_update(job->of);
	job->ran = true;
	pthread_mutex_unlock(&q->lock);
	job->done(job);
	pthread_mutex_lock(&q->lock);
}

/* Another job of the host that waits is taken by the thread that has run this one. */
static void *jobs_main(void *arg)
{
	struct rn_jobs *q = arg;

	if (q->cfg.nice)
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(), q->cfg.nice);
	pthread_mutex_lock(&q->lock);
	while (!q->closed) {
		struct rn_job *job = jobs_take(q);

		if (job) {
			jobs_run(q, job);
			continue;
		}
		q->idle++;
		pthread_cond_wait(&q->wake, &q->lock);
		q->idle--;
	}
	q->nthreads--;
	pthread_cond_signal(&q->ended);
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* Under the lock. Threads are detached: one that hangs in its job is left behind by the end of the process. They take no
 * signals, whose handlers are other threads'. */
static void jobs_start_thread(struct rn_jobs *q)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;

	if (q->nthreads == q->cfg.threads)
		return;
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, &attr, jobs_main, q) == 0) {
		pthread_setname_np(thread, q->cfg.name);
		q->nthreads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

struct rn_jobs *rn_jobs_new(const struct rn_jobs_config *cfg)
{
	struct rn_jobs *q = calloc(1, sizeof(*q));
	pthread_condattr_t attr;

	if (!q)
		return NULL;
	q->cfg = *cfg;
	if (q->cfg.host_threads == 0)
		q->cfg.host_threads = cfg->threads;
	rn_fq_init(&q->queue, 1);
	rn_host_table_init(&q->hosts);
	rn_quota_init(&q->quota, cfg->max, cfg->host_max);
	TAILQ_INIT(&q->running);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->wake, &attr);
	pthread_cond_init(&q->ended, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_lock(&q->lock);
	for (unsigned i = 0; !cfg->on_demand && i < cfg->threads; i++)
		jobs_start_thread(q);
	const bool ok = cfg->on_demand || q->nthreads > 0;

	pthread_mutex_unlock(&q->lock);
	if (ok)
		return q;
	rn_jobs_free(q, 0);
	return NULL;
}

static void job_abandon(struct rn_job *job)
{
	job->abandoned = true;
	if (job->abandon)
		job->abandon(job);
}

/* Without the lock: jobs that never ran. */
static void jobs_end(struct rn_job_list *list, bool made_room)
{
	struct rn_job *job;

	while ((job = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, job, link);
		job->made_room = made_room;
		job_abandon(job);
		job->done(job);
	}
}

/* Under the lock: takes a job that waits out of the queue, and into list (NULL: none). */
static void jobs_remove(struct rn_jobs *q, struct rn_job *job, struct rn_job_list *list)
{
	rn_fq_remove(&q->queue, &job->turn);
	rn_quota_remove(&q->quota, &job->place);
	jobs_host_update(job->of);
	if (list)
		TAILQ_INSERT_TAIL(list, job, link);
}

/* Under the lock. Jobs that make room are moved to out. */
static bool jobs_take_in(struct rn_jobs *q, struct rn_job *job, struct rn_job_list *out)
{
	struct rn_quota_item *old;

	if (q->cfg.keep_oldest && rn_quota_of(&q->quota, &job->host) >= q->quota.of_host)
		return false;
	while ((old = rn_quota_in_the_way(&q->quota, &job->host, job->admitted, 1)) != NULL)
		jobs_remove(q, rn_container_of(old, struct rn_job, place), out);
	if (!rn_quota_add(&q->quota, &job->host, job->admitted, &job->place, 1))
		return false;
	job->of = jobs_host_get(q, &job->host);
	if (!job->of) {
		rn_quota_remove(&q->quota, &job->place);
		return false;
	}
	rn_fq_push(&q->queue, &job->of->flow, &job->turn, 1);
	return true;
}

bool rn_jobs_submit(struct rn_jobs *q, struct rn_job *job)
{
	struct rn_job_list out = TAILQ_HEAD_INITIALIZER(out);

	job->ran = job->abandoned = job->made_room = false;
	pthread_mutex_lock(&q->lock);
	bool taken = !q->closed && jobs_take_in(q, job, &out);

	if (taken && q->idle > 0) {
		pthread_cond_signal(&q->wake);
	} else if (taken) {
		jobs_start_thread(q);
		taken = q->nthreads > 0; /* one that runs takes it later */
		if (!taken)
			jobs_remove(q, job, NULL);
	}
	pthread_mutex_unlock(&q->lock);
	jobs_end(&out, true);
	return taken;
}

void rn_jobs_close(struct rn_jobs *q)
{
	struct rn_job_list left = TAILQ_HEAD_INITIALIZER(left);
	struct rn_fq_item *turn;
	struct rn_job *job;

	pthread_mutex_lock(&q->lock);
	if (!q->closed) {
		q->closed_at = rn_clock_read(CLOCK_MONOTONIC);
		TAILQ_FOREACH (job, &q->running, link)
			job_abandon(job);
	}
	q->closed = true;
	while ((turn = rn_fq_pop(&q->queue)) != NULL) {
		job = job_of(turn);
		rn_quota_remove(&q->quota, &job->place);
		jobs_host_update(job->of);
		TAILQ_INSERT_TAIL(&left, job, link);
	}
	pthread_cond_broadcast(&q->wake);
	pthread_mutex_unlock(&q->lock);
	jobs_end(&left, false);
}

bool rn_jobs_closed(struct rn_jobs *q)
{
	pthread_mutex_lock(&q->lock);
	const bool closed = q->closed;

	pthread_mutex_unlock(&q->lock);
	return closed;
}

bool rn_jobs_free(struct rn_jobs *q, unsigned seconds)
{
	int rc = 0;

	if (!q)
		return true;
	rn_jobs_close(q);
	struct timespec limit = q->closed_at;

	limit.tv_sec += seconds;
	pthread_mutex_lock(&q->lock);
	while (q->nthreads > 0 && !rc)
		rc = pthread_cond_timedwait(&q->ended, &q->lock, &limit);
	const bool all = q->nthreads == 0;

	pthread_mutex_unlock(&q->lock);
	if (!all)
		return false;
	pthread_cond_destroy(&q->wake);
	pthread_cond_destroy(&q->ended);
	pthread_mutex_destroy(&q->lock);
	rn_quota_fini(&q->quota);
	free(q);
	return true;
}
