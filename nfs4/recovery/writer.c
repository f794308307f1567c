/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that writes client records. It takes all waiting jobs, writes them as one transaction,
 * wakes the operations that wait for them, and starts again. Jobs that come in the meantime form
 * the next transaction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/recovery/recovery_private.h"
#include "lib/log_ids.h"
#include "nfs4/recovery/wheel.h"
#include "rpc/worker.h"

static int carry_out(struct nfs4_recovery *r, const struct nfs4_record_job *job)
{
	switch (job->kind) {
	case NFS4_JOB_PUT:
		return nfs4_db_put(r->db, &job->row);
	case NFS4_JOB_DELETE:
	case NFS4_JOB_REVOKE:
		return nfs4_db_delete(r->db, &job->row);
	case NFS4_JOB_END_GRACE:
		return nfs4_db_end_grace(r->db, r->srv->cfg.lease_seconds);
	}
	return -EINVAL;
}

static const struct rn_log_event fails = { .id = RN_ID_RECORDS_FAIL };
static const struct rn_log_event again = { .id = RN_ID_RECORDS_AGAIN };

static int transaction(struct nfs4_recovery *r, const struct nfs4_record_job *jobs)
{
	int rc = nfs4_db_begin(r->db);

	for (; !rc && jobs; jobs = jobs->next)
		rc = carry_out(r, jobs);
	if (!rc)
		rc = nfs4_db_commit(r->db);
	if (rc && !r->failing)
		rn_log_event(
			r->log, RN_ERROR, &fails,
			"client records cannot be written: new NFSv4 clients will not get their "
			"locks back after a restart: %s (%s)",
			strerror(-rc), nfs4_db_why(r->db));
	if (!rc && r->failing)
		rn_log_event(r->log, RN_NOTICE, &again, "client records can be written again");
	r->failing = rc != 0;
	if (rc)
		nfs4_db_rollback(r->db);
	return rc;
}

/* Gives up recording. An outdated record that cannot be changed would let its client reclaim state
 * that others were granted since. So the records are removed and no client may reclaim. */
static void give_up(struct nfs4_recovery *r)
{
	int rc = nfs4_db_remove(r->db);

	r->given_up = true;
	if (rc)
		rn_log_event(r->log, RN_ERROR, &fails,
			     "client records can neither be written nor removed (%s): "
			     "remove " NFS4_DB_NAME " in the state directory before the next start",
			     strerror(-rc));
	else
		rn_log_event(r->log, RN_ERROR, &fails,
			     "client records are removed: until ringnfsd has been restarted twice, "
			     "NFSv4 clients do not get their locks back after a restart");
}

/* True if others are given something as soon as the job is done, whether it failed or not. */
static bool is_needed(const struct nfs4_record_job *job)
{
	switch (job->kind) {
	case NFS4_JOB_REVOKE:
	case NFS4_JOB_END_GRACE:
		return true;
	case NFS4_JOB_PUT:
		return job->row.bits & (NFS4_RECORD_DELEG_LOST | NFS4_DB_SUSPECT);
	default:
		return false;
	}
}

static int write_all(struct nfs4_recovery *r, const struct nfs4_record_job *jobs)
{
	bool must = false;
	int rc;

	if (r->given_up)
		return -EIO;
	rc = transaction(r, jobs);
	for (; rc && jobs; jobs = jobs->next)
		must |= is_needed(jobs);
	if (must)
		give_up(r);
	return rc;
}

/* Updates the record after its job; with the lock held. */
static bool settle(struct nfs4_recovery *r, const struct nfs4_record_job *job, int rc)
{
	struct nfs4_record *rec = job->rec;

	if (job->kind == NFS4_JOB_END_GRACE)
		return nfs4_grace_ended(r);
	if (!rec)
		return false;
	if (job->kind != NFS4_JOB_PUT)
		atomic_store(&rec->durable, 0);
	else if (!rc || is_needed(job))
		atomic_store_explicit(&rec->durable, job->row.bits, memory_order_release);
	rec->job = NULL;
	return false;
}

/* A wait belongs to its request, which may be answered and freed as soon as it is posted. */
static void wake(struct nfs4_record_wait *w, int err)
{
	while (w) {
		struct nfs4_record_wait *next = w->next;

		w->rc = err;
		rpc_requeue(w->req, w->resume);
		w = next;
	}
}

static void log_end(struct nfs4_recovery *r)
{
	const struct nfs4_grace *g = &r->grace;

	rn_notice(r->log, "grace period is over after %llu s: %u of %u clients came back",
		  (unsigned long long)(nfs4_now() - g->began_s), g->back, g->expected);
}

static void finish(struct nfs4_recovery *r, struct nfs4_record_job *jobs, int rc)
{
	bool ended = false;

	pthread_mutex_lock(&r->lock);
	for (const struct nfs4_record_job *job = jobs; job; job = job->next)
		ended |= settle(r, job, rc);
	pthread_mutex_unlock(&r->lock);
	if (ended)
		log_end(r);
	while (jobs) {
		struct nfs4_record_job *next = jobs->next;

		wake(jobs->waiting, rc);
		free(jobs);
		jobs = next;
	}
}

/* Waits for jobs and takes them all. NULL: the thread must stop. */
static struct nfs4_record_job *take_all(struct nfs4_recovery *r)
{
	struct nfs4_record_job *jobs;

	pthread_mutex_lock(&r->lock);
	while (!r->first && !r->stop)
		pthread_cond_wait(&r->work, &r->lock);
	jobs = r->first;
	for (struct nfs4_record_job *job = jobs; job; job = job->next)
		job->taken = true;
	r->first = NULL;
	r->last = &r->first;
	pthread_mutex_unlock(&r->lock);
	return jobs;
}

static void *writer_main(void *arg)
{
	struct nfs4_recovery *r = arg;
	struct nfs4_record_job *jobs;

	while ((jobs = take_all(r)) != NULL)
		finish(r, jobs, write_all(r, jobs));
	return NULL;
}

int nfs4_writer_start(struct nfs4_recovery *r)
{
	int rc = pthread_create(&r->thread, NULL, writer_main, r);

	if (!rc)
		pthread_setname_np(r->thread, "records");
	return -rc;
}

void nfs4_writer_stop(struct nfs4_recovery *r)
{
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
}
