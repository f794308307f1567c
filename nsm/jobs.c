/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that other threads ask for, until the messenger begins them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "nsm/nsm_private.h"

#define JOBS_MAX 1024u
#define OF_HOST 4u /* calls to one address at a time */

struct nsm_job {
	TAILQ_ENTRY(nsm_job) link;
	struct nsm_callee to;
	struct nsm_call_end end;
	uint32_t len;
	uint8_t args[];
};

int nsm_submit(struct nsm *n, const struct nsm_callee *to, const uint8_t *args, uint32_t len,
	       const struct nsm_call_end *end)
{
	struct nsm_job *job = malloc(sizeof(*job) + len);
	int rc = 0;

	if (!job)
		return -ENOMEM;
	job->to = *to;
	job->end = *end;
	job->len = len;
	memcpy(job->args, args, len);
	pthread_mutex_lock(&n->lock);
	if (n->stop || !n->messaging)
		rc = -ENOTCONN;
	else if (n->njobs >= JOBS_MAX)
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

/* The first call whose host has not too many under way, taken from the list; or NULL. */
static struct nsm_job *take(struct nsm *n)
{
	struct nsm_job *job;

	pthread_mutex_lock(&n->lock);
	TAILQ_FOREACH (job, &n->jobs, link) {
		if (nsm_calls_to(&n->calls, &job->to.peer) < OF_HOST)
			break;
	}
	if (job) {
		TAILQ_REMOVE(&n->jobs, job, link);
		n->njobs--;
	}
	pthread_mutex_unlock(&n->lock);
	return job;
}

void nsm_jobs_begin(struct nsm *n)
{
	struct nsm_job *job;

	while (n->calls.n < NSM_CALLS_MAX && (job = take(n)) != NULL) {
		const int rc = nsm_call(&n->calls, &job->to, job->args, job->len, &job->end);

		if (rc)
			job->end.done(job->end.ctx, rc, NULL);
		free(job);
	}
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
