/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that other threads ask for, until the messenger begins them. Each host has a queue of its own: so many of
 * its calls are under way at a time, and hosts take turns. A call that is put off is in no queue before it is due.
 *
 * An IPv6 /64 may be one machine with many addresses or a whole network, so it has more calls at a time, and each of
 * its addresses as many as an IPv4 address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/host.h"
#include "lib/util.h"
#include "nsm/nsm_private.h"

#define OF_ADDRESS 4u  /* calls to one address at a time */
#define OF_NETWORK 32u /* calls to an IPv6 /64 */
#define LOOK_AT 64u    /* calls of a queue that are looked at for one that may begin */
#define ANSWERS_OF_HOST                                                                            \
	16u /* that wait; older ones are dropped, as the host sends its messages again */
#define ANSWERS_MAX 2048u
#define JOBS_MAX 16384u /* with all others, whose callers have bounds of their own */

struct nsm_call_queue;

struct nsm_job {
	TAILQ_ENTRY(nsm_job) link;  /* of its host's queue, or of nsm.later */
	struct rn_quota_item place; /* in nsm.answers, of an answer that waits */
	struct nsm *nsm;
	struct nsm_call_queue *queue; /* NULL: not due yet */
	struct nsm_callee to;
	struct nsm_call_end end;
	uint64_t due_ns;
	uint32_t len;
	uint8_t args[];
};

/* Under nsm.lock. It is there while it has calls that wait, or are under way. */
struct nsm_call_queue {
	struct rn_host_entry of; /* in the table */
	TAILQ_ENTRY(nsm_call_queue) ready;
	bool is_ready; /* in nsm.ready: one of its calls may begin */
	struct nsm_job_list jobs;
	unsigned active; /* calls under way */
};

static struct nsm_call_queue *find_or_make(struct nsm *n, const struct rpc_address *peer)
{
	struct nsm_call_queue *l;
	struct rn_host_entry *e;
	struct rn_host host;

	rn_host_of_mapped(peer->bytes, peer->scope, &host);
	e = rn_host_find(&n->call_queues, &host);
	if (e)
		return rn_container_of(e, struct nsm_call_queue, of);
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->of.host = host;
	TAILQ_INIT(&l->jobs);
	rn_host_add(&n->call_queues, &l->of);
	return l;
}

/* Sets whether the queue is ready, and frees one that is used no more. */
static void nsm_call_queue_update(struct nsm *n, struct nsm_call_queue *l)
{
	const unsigned most = rn_host_is_network(&l->of.host) ? OF_NETWORK : OF_ADDRESS;
	const bool ready = !TAILQ_EMPTY(&l->jobs) && l->active < most;

	if (ready && !l->is_ready)
		TAILQ_INSERT_TAIL(&n->ready, l, ready);
	else if (!ready && l->is_ready)
		TAILQ_REMOVE(&n->ready, l, ready);
	l->is_ready = ready;
	if (!TAILQ_EMPTY(&l->jobs) || l->active > 0)
		return;
	rn_host_remove(&l->of);
	free(l);
}

/* Puts a call that is due into its host's queue. */
static int nsm_job_enter(struct nsm *n, struct nsm_job *job)
{
	job->queue = find_or_make(n, &job->to.peer);
	if (!job->queue)
		return -ENOMEM;
	TAILQ_INSERT_TAIL(&job->queue->jobs, job, link);
	nsm_call_queue_update(n, job->queue);
	return 0;
}

/* Takes a call out of its queue, which stays until it is updated. */
static void nsm_job_leave(struct nsm *n, struct nsm_job *job)
{
	TAILQ_REMOVE(&job->queue->jobs, job, link);
	if (job->place.of)
		rn_quota_remove(&n->answers, &job->place);
}

void nsm_jobs_init(struct nsm *n)
{
	TAILQ_INIT(&n->ready);
	TAILQ_INIT(&n->later);
	rn_host_table_init(&n->call_queues);
	rn_quota_init(&n->answers, ANSWERS_MAX, ANSWERS_OF_HOST);
}

/* Under the lock. Answers that make room for this one are moved to *out. */
static bool nsm_job_take_in(struct nsm *n, struct nsm_job *job, struct nsm_job_list *out)
{
	struct rn_quota_item *old;
	struct rn_host host;

	rn_host_of_mapped(job->to.peer.bytes, job->to.peer.scope, &host);
	while ((old = rn_quota_in_the_way(&n->answers, &host, true, 1)) != NULL) {
		struct nsm_job *o = rn_container_of(old, struct nsm_job, place);

		nsm_job_leave(n, o);
		nsm_call_queue_update(n, o->queue);
		n->njobs--;
		TAILQ_INSERT_TAIL(out, o, link);
	}
	return rn_quota_add(&n->answers, &host, true, &job->place, 1);
}

/* Under the lock. */
static int nsm_job_add(struct nsm *n, struct nsm_job *job, struct nsm_job_list *out)
{
	int rc = 0;

	if (n->stop || !n->messaging)
		return -ENOTCONN;
	if (n->njobs >= JOBS_MAX || (job->to.answer && !nsm_job_take_in(n, job, out)))
		return -RN_EFULL;
	if (job->to.delay_ns > 0)
		TAILQ_INSERT_TAIL(&n->later, job, link);
	else
		rc = nsm_job_enter(n, job);
	if (rc && job->place.of)
		rn_quota_remove(&n->answers, &job->place);
	n->njobs += rc == 0;
	return rc;
}

int nsm_submit(struct nsm *n, const struct nsm_callee *to, const uint8_t *args, uint32_t len,
	       const struct nsm_call_end *end)
{
	struct nsm_job_list out = TAILQ_HEAD_INITIALIZER(out);
	struct nsm_job *job = calloc(1, sizeof(*job) + len), *old;
	int rc;

	if (!job)
		return -ENOMEM;
	job->nsm = n;
	job->to = *to;
	job->end = *end;
	job->due_ns = rn_now_ns() + to->delay_ns;
	job->len = len;
	if (len > 0)
		memcpy(job->args, args, len);
	pthread_mutex_lock(&n->lock);
	rc = nsm_job_add(n, job, &out);
	pthread_mutex_unlock(&n->lock);
	while ((old = TAILQ_FIRST(&out)) != NULL) {
		TAILQ_REMOVE(&out, old, link);
		old->end.done(old->end.ctx, -ECANCELED, NULL);
		free(old);
	}
	if (rc == 0)
		nsm_wake(n);
	else
		free(job);
	return rc;
}

/* The first call of the queue whose address has not too many under way; or NULL, if the end of a call of the queue
 * will tell. */
static struct nsm_job *nsm_call_queue_first_job(const struct nsm *n, struct nsm_call_queue *l)
{
	struct nsm_job *job = TAILQ_FIRST(&l->jobs);

	if (l->active == 0)
		return job;
	for (unsigned i = 0; job && i < LOOK_AT; i++) {
		if (nsm_calls_to(&n->calls, &job->to.peer) < OF_ADDRESS)
			return job;
		job = TAILQ_NEXT(job, link);
	}
	return NULL;
}

/* A call of the queue whose turn it is, which counts as under way from now on; or NULL. A queue that has none waits
 * for the end of one of its calls. */
static struct nsm_job *nsm_job_take(struct nsm *n)
{
	struct nsm_job *job = NULL;
	struct nsm_call_queue *l;

	pthread_mutex_lock(&n->lock);
	while (!job && (l = TAILQ_FIRST(&n->ready)) != NULL) {
		/* Behind the others, if it stays ready. */
		TAILQ_REMOVE(&n->ready, l, ready);
		l->is_ready = false;
		job = nsm_call_queue_first_job(n, l);
		if (!job)
			continue;
		nsm_job_leave(n, job);
		l->active++;
		nsm_call_queue_update(n, l);
	}
	pthread_mutex_unlock(&n->lock);
	return job;
}

static void nsm_job_finish(void *ctx, int rc, struct xdr_in *results)
{
	struct nsm_job *job = ctx;
	struct nsm *n = job->nsm;

	pthread_mutex_lock(&n->lock);
	job->queue->active--;
	nsm_call_queue_update(n, job->queue);
	n->njobs--;
	pthread_mutex_unlock(&n->lock);
	job->end.done(job->end.ctx, rc, results);
	free(job);
}

static void nsm_job_begin(struct nsm *n, struct nsm_job *job)
{
	const struct nsm_call_end end = { .done = nsm_job_finish, .ctx = job };
	int rc = -ECANCELED;

	if (!job->end.wanted || job->end.wanted(job->end.ctx))
		rc = nsm_call(&n->calls, &job->to, job->args, job->len, &end);
	if (rc)
		nsm_job_finish(job, rc, NULL);
}

/* Moves calls that are due to their queues. Returns the time when the next one is. One for which there is no
 * memory is tried again. */
static uint64_t enter_due(struct nsm *n, uint64_t now)
{
	struct nsm_job *job, *next;
	uint64_t due = UINT64_MAX;

	pthread_mutex_lock(&n->lock);
	for (job = TAILQ_FIRST(&n->later); job; job = next) {
		next = TAILQ_NEXT(job, link);
		if (job->due_ns > now) {
			due = rn_min(due, job->due_ns);
			continue;
		}
		TAILQ_REMOVE(&n->later, job, link);
		if (nsm_job_enter(n, job)) {
			job->due_ns = now + RN_NS_PER_SECOND;
			TAILQ_INSERT_TAIL(&n->later, job, link);
		}
	}
	pthread_mutex_unlock(&n->lock);
	return due;
}

uint64_t nsm_jobs_begin(struct nsm *n, uint64_t now)
{
	const uint64_t due = enter_due(n, now);
	struct nsm_job *job;

	/* Room first: a call that has been taken begins. */
	while (nsm_calls_make_room(&n->calls, now) && (job = nsm_job_take(n)) != NULL)
		nsm_job_begin(n, job);
	return due;
}

void nsm_jobs_cancel(struct nsm *n)
{
	struct nsm_job *job;

	while ((job = nsm_job_take(n)) != NULL)
		nsm_job_finish(job, -ECANCELED, NULL);
	while ((job = TAILQ_FIRST(&n->later)) != NULL) {
		TAILQ_REMOVE(&n->later, job, link);
		n->njobs--;
		job->end.done(job->end.ctx, -ECANCELED, NULL);
		free(job);
	}
}
