/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/names/names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/jobs.h"
#include "lib/log_ids.h"
#include "lib/util.h"

#define WAITING_MAX 16384u   /* questions of a kind that wait */
#define WAITING_NETWORK 256u /* of them, of one network */
#define SLOW_SECONDS 2	     /* seconds after which an answer that has not come is logged */
#define QUIET_SECONDS 60     /* between two messages */
#define LEAVING_SECONDS 5    /* longest wait for answers once the server stops */

static const unsigned threads_of[ASK_KINDS] = {
	[ASK_HOSTS] = 16, [ASK_GROUPS] = 8, [ASK_OWNERS] = 8
};

struct question {
	struct rn_job job;
	struct askers *askers;
	enum asker_kind kind;
	void (*run)(void *arg, bool cancelled);
	void *arg;
	time_t took;
};

struct askers {
	struct askers_config cfg;
	struct rn_jobs *jobs[ASK_KINDS]; /* by network in place of host */
	pthread_mutex_t lock;		 /* guards warned; a leaf */
	time_t warned;			 /* 0: never */
};

struct askers *askers_new(const struct askers_config *cfg)
{
	struct askers *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->cfg = *cfg;
	pthread_mutex_init(&a->lock, NULL);
	for (unsigned k = 0; k < ASK_KINDS; k++) {
		const struct rn_jobs_config jobs = {
			.name = "asker",
			.threads = threads_of[k],
			.host_threads = threads_of[k] / 4,
			.max = WAITING_MAX,
			.host_max = WAITING_NETWORK,
			.keep_oldest = true,
			.on_demand = true,
		};

		a->jobs[k] = rn_jobs_new(&jobs);
		if (!a->jobs[k]) {
			askers_free(a);
			return NULL;
		}
	}
	return a;
}

static bool warn_due(struct askers *a, time_t took)
{
	const time_t now = (time_t)rn_now_seconds();

	pthread_mutex_lock(&a->lock);
	const bool due = took >= SLOW_SECONDS && (!a->warned || now - a->warned >= QUIET_SECONDS);

	if (due)
		a->warned = now;
	pthread_mutex_unlock(&a->lock);
	return due;
}

static void question_run(struct rn_job *job)
{
	struct question *q = rn_container_of(job, struct question, job);
	const time_t began = (time_t)rn_now_seconds();

	q->run(q->arg, false);
	q->took = (time_t)rn_now_seconds() - began;
}

/* Uses a->cfg only while the queue is open: what it points to may be freed once askers_free() has given up on this thread. */
static void question_done(struct rn_job *job)
{
	struct question *q = rn_container_of(job, struct question, job);
	struct askers *a = q->askers;
	const time_t took = q->took;

	if (!job->ran)
		q->run(q->arg, true);
	const bool tells = job->ran && !rn_jobs_closed(a->jobs[q->kind]);

	free(q);
	if (!tells)
		return;
	if (warn_due(a, took))
		rn_log_event(a->cfg.log, RN_WARNING,
			     &(struct rn_log_event){ .id = RN_ID_NAMES_SLOW },
			     "a name service took %lld s for an answer; calls that need one wait",
			     (long long)took);
	if (a->cfg.answered)
		a->cfg.answered(a->cfg.ctx);
}

bool askers_ask(struct askers *a, enum asker_kind kind, const struct sockaddr *peer,
		void (*run)(void *job, bool cancelled), void *job)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return false;
	q->job.run = question_run;
	q->job.done = question_done;
	q->job.admitted = !peer; /* the server's own questions make no room for others */
	if (peer)
		rn_network_of(peer, &q->job.host);
	else
		memset(&q->job.host, 0xff, sizeof(q->job.host));
	q->askers = a;
	q->kind = kind;
	q->run = run;
	q->arg = job;
	if (rn_jobs_submit(a->jobs[kind], &q->job))
		return true;
	free(q);
	return false;
}

void askers_close(struct askers *a)
{
	for (unsigned k = 0; k < ASK_KINDS; k++)
		if (a->jobs[k])
			rn_jobs_close(a->jobs[k]);
}

bool askers_free(struct askers *a)
{
	bool all = true;

	askers_close(a);
	for (unsigned k = 0; k < ASK_KINDS; k++)
		all &= rn_jobs_free(a->jobs[k], LEAVING_SECONDS);
	if (!all)
		return false;
	pthread_mutex_destroy(&a->lock);
	free(a);
	return true;
}
