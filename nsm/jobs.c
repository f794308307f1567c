/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that other threads ask for, until the messenger begins them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nsm/nsm_private.h"

#define JOBS_MAX 512u
#define JOBS_OF_HOST 64u /* so that one host that does not answer leaves room for others */
#define OF_HOST 4u	 /* calls to one host at a time */

struct nsm_job {
	TAILQ_ENTRY(nsm_job) link;
	struct nsm_callee to;
	struct nsm_call_end end;
	uint64_t due_ns;
	uint32_t len;
	uint8_t args[];
};

/* Under the lock. */
static bool has_room(const struct nsm *n, const struct rpc_address *peer)
{
	const struct nsm_job *job;
	unsigned count = 0;

	TAILQ_FOREACH (job, &n->jobs, link)
		count += nsm_same_host(&job->to.peer, peer);
	return n->njobs < JOBS_MAX && count < JOBS_OF_HOST;
}

int nsm_submit(struct nsm *n, const struct nsm_callee *to, const uint8_t *args, uint32_t len,
	       const struct nsm_call_end *end)
{
	struct nsm_job *job = malloc(sizeof(*job) + len);
	int rc = 0;

	if (!job)
		return -ENOMEM;
	job->to = *to;
	job->end = *end;
	job->due_ns = rn_now_ns() + to->delay_ns;
	job->len = len;
	memcpy(job->args, args, len);
	pthread_mutex_lock(&n->lock);
	if (n->stop || !n->messaging)
		rc = -ENOTCONN;
	else if (!has_room(n, &to->peer))
		rc = -EAGAIN;
	if (rc == 0) {
		TAILQ_INSERT_TAIL(&n->jobs, job, link);
		n->njobs++;
	}
	pthread_mutex_unlock(&n->lock);
	if (rc == 0)
		eventfd_write(n->wake, 1);
	else
		free(job);
	return rc;
}

/* The first call that is due and whose host has not too many under way, taken from the list; or NULL. */
static struct nsm_job *take(struct nsm *n, uint64_t now)
{
	struct nsm_job *job;

	pthread_mutex_lock(&n->lock);
	TAILQ_FOREACH (job, &n->jobs, link) {
		if (job->due_ns <= now && nsm_calls_to(&n->calls, &job->to.peer) < OF_HOST)
			break;
	}
	if (job) {
		TAILQ_REMOVE(&n->jobs, job, link);
		n->njobs--;
	}
	pthread_mutex_unlock(&n->lock);
	return job;
}

/* When the next call is due that was put off, ns. */
static uint64_t next_due(struct nsm *n, uint64_t now)
{
	const struct nsm_job *job;
	uint64_t due = UINT64_MAX;

	pthread_mutex_lock(&n->lock);
	TAILQ_FOREACH (job, &n->jobs, link) {
		if (job->due_ns > now)
			due = rn_min(due, job->due_ns);
	}
	pthread_mutex_unlock(&n->lock);
	return due;
}

static void begin(struct nsm *n, struct nsm_job *job)
{
	int rc = -ECANCELED;

	if (!job->end.wanted || job->end.wanted(job->end.ctx))
		rc = nsm_call(&n->calls, &job->to, job->args, job->len, &job->end);
	if (rc)
		job->end.done(job->end.ctx, rc, NULL);
	free(job);
}

uint64_t nsm_jobs_begin(struct nsm *n, uint64_t now)
{
	struct nsm_job *job;

	/* Room first: a job that ended to make room may come back. */
	while (nsm_calls_make_room(&n->calls, now) && (job = take(n, now)) != NULL)
		begin(n, job);
	return next_due(n, now);
}

void nsm_jobs_cancel(struct nsm *n)
{
	struct nsm_job *job;

	while ((job = TAILQ_FIRST(&n->jobs)) != NULL) {
		TAILQ_REMOVE(&n->jobs, job, link);
		n->njobs--;
		job->end.done(job->end.ctx, -ECANCELED, NULL);
		free(job);
	}
}
