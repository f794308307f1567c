/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that writes client records, and its jobs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/log_ids.h"
#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"
#include "rpc/worker.h"

/* Jobs for the writing thread, in a queue, in order of arrival. A record points to its latest job
 * only; when that one is done, the record's state on disk is known. */

struct nfs4_record_job *nfs4_job_new(enum nfs4_job_kind kind, const struct nfs4_db_row *row)
{
	struct nfs4_record_job *job;

	if (row->id_len > NFS4_OPAQUE_LIMIT)
		return NULL;
	job = calloc(1, sizeof(*job) + row->id_len);
	if (!job)
		return NULL;
	job->kind = kind;
	job->row = *row;
	if (row->id_len > 0)
		memcpy(job->id, row->id, row->id_len);
	job->row.id = job->id;
	return job;
}

void nfs4_job_queue(struct nfs4_recovery *r, struct nfs4_record_job *job)
{
	*r->last = job;
	r->last = &job->next;
	nfs4_job_try_now(r);
}

void nfs4_job_try_now(struct nfs4_recovery *r)
{
	r->again = false;
	pthread_cond_signal(&r->work);
}

void nfs4_job_detach(struct nfs4_record *rec)
{
	if (rec->job)
		rec->job->rec = NULL;
	rec->job = NULL;
}

struct nfs4_record_job *nfs4_job_post(struct nfs4_recovery *r, struct nfs4_record *rec,
				      enum nfs4_job_kind kind, unsigned bits)
{
	struct nfs4_db_row row = {
		.id = rec->id,
		.id_len = rec->id_len,
		.sessions = rec->sessions,
		.bits = bits,
		.origin = rec->origin,
	};
	struct nfs4_record_job *job;

	memcpy(row.verifier, rec->verifier, sizeof(row.verifier));
	job = nfs4_job_new(kind, &row);
	if (!job)
		return NULL;
	nfs4_job_detach(rec);
	job->rec = rec;
	rec->job = job;
	nfs4_job_queue(r, job);
	return job;
}

struct nfs4_record_job *nfs4_job_for(struct nfs4_recovery *r, struct nfs4_record *rec,
				     unsigned bits)
{
	struct nfs4_record_job *job = rec->job;

	bits |= atomic_load(&rec->durable);
	if (job && job->kind == NFS4_JOB_PUT) {
		bits |= job->row.bits;
		if (job->row.bits == bits)
			return job;
		if (!job->taken) {
			job->row.bits = bits;
			return job;
		}
	}
	return nfs4_job_post(r, rec, NFS4_JOB_PUT, bits);
}

unsigned nfs4_record_coming_bits(const struct nfs4_record *rec)
{
	return rec->job ? rec->job->row.bits : atomic_load(&rec->durable);
}

void nfs4_record_suspect(struct nfs4_recovery *r, struct nfs4_record *rec, bool suspect)
{
	const unsigned bits = nfs4_record_coming_bits(rec);

	if (bits == 0)
		return;
	if (suspect)
		nfs4_job_post(r, rec, NFS4_JOB_PUT, bits | NFS4_DB_SUSPECT);
	else if (bits & NFS4_DB_SUSPECT)
		nfs4_job_post(r, rec, NFS4_JOB_PUT, bits & ~NFS4_DB_SUSPECT);
}

/*
 * The thread that writes client records. It takes all waiting jobs, writes them as one transaction,
 * wakes the operations that wait for them, and starts again. Jobs that come in the meantime form
 * the next transaction. Records that could not be written stay in the queue, and are tried
 * again with the next job or some seconds later; their operations go on without.
 */

#define AGAIN_S 5u /* time between attempts to write what could not be written */

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

/* Opens a database that could not be opened at the start, or was removed; some seconds after the last
 * attempt. Its records are of earlier runs: nobody may reclaim by them any more. */
static int open_again(struct nfs4_recovery *r)
{
	const struct nfs4_config *cfg = &r->srv->cfg;
	unsigned old_lease;

	if (nfs4_now() < r->open_at_s)
		return -EIO;
	r->open_at_s = nfs4_now() + AGAIN_S;
	r->begun = false;
	r->prune = !r->continues;
	return nfs4_db_open(cfg->state_dir, cfg->lease_seconds, r->log, true, &r->db, &old_lease);
}

static int write_jobs(struct nfs4_recovery *r, const struct nfs4_record_job *jobs)
{
	int rc = r->db ? 0 : open_again(r);

	if (!rc)
		rc = nfs4_db_begin(r->db);
	/* Also a change that shows whether the disk takes one, if there is no job. */
	if (!rc && (!r->begun || atomic_load(&r->failing)))
		rc = nfs4_db_begin_epoch(r->db);
	if (!rc && r->continues)
		rc = nfs4_db_continue(r->db);
	if (!rc && r->prune)
		rc = nfs4_db_end_grace(r->db, r->srv->cfg.lease_seconds);
	for (; !rc && jobs; jobs = jobs->next)
		rc = carry_out(r, jobs);
	return rc ? rc : nfs4_db_commit(r->db);
}

static int transaction(struct nfs4_recovery *r, const struct nfs4_record_job *jobs)
{
	const bool failing = atomic_load(&r->failing);
	const int rc = write_jobs(r, jobs);

	if (rc && !failing)
		rn_log_event(
			r->log, RN_ERROR, &fails,
			"client records cannot be written: new NFSv4 clients will not get their "
			"locks back after a restart; it is tried again: %s (%s)",
			strerror(-rc), r->db ? nfs4_db_why(r->db) : "not open");
	if (!rc && failing)
		rn_log_event(r->log, RN_NOTICE, &again, "client records can be written again");
	if (!rc && (failing || !r->begun))
		nfs4_db_reserve(r->db);
	atomic_store(&r->failing, rc != 0);
	if (!rc) {
		r->begun = true;
		r->continues = r->prune = false;
	} else if (r->db) {
		nfs4_db_rollback(r->db);
	}
	return rc;
}

int nfs4_writer_begin(struct nfs4_recovery *r)
{
	return transaction(r, NULL);
}

static void log_removal(const struct nfs4_recovery *r, int rc)
{
	if (rc)
		rn_log_event(r->log, RN_ERROR, &fails,
			     "client records can neither be written nor removed (%s): "
			     "remove " NFS4_DB_NAME " in the state directory before the next start",
			     strerror(-rc));
	else
		rn_log_event(r->log, RN_ERROR, &fails,
			     "client records are removed: until they can be written again, NFSv4 "
			     "clients do not get their locks back after a restart");
}

/* Removes the records. An outdated one that cannot be changed would let its client reclaim state
 * that others were granted since. Those of this run are written anew into a new database; a database
 * that could not be opened has none of them, and loses the others when it can. */
static void remove_all(struct nfs4_recovery *r)
{
	if (r->db)
		log_removal(r, nfs4_db_remove(r->db));
	nfs4_db_close(r->db);
	r->db = NULL;
	pthread_mutex_lock(&r->lock);
	r->lost = true;
	pthread_mutex_unlock(&r->lock);
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

static int nfs4_record_write_jobs(struct nfs4_recovery *r, const struct nfs4_record_job *jobs)
{
	const int rc = transaction(r, jobs);
	bool must = false;

	for (; rc && jobs; jobs = jobs->next)
		must |= is_needed(jobs);
	if (must)
		remove_all(r);
	return rc;
}

/* Updates the record after its job; with the lock held. */
static bool nfs4_record_settle(struct nfs4_recovery *r, const struct nfs4_record_job *job, int rc)
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

/* True if the job, which has failed, is to be tried again: the record of a client that others do not
 * wait for. There is one for each client at most. With the lock held. */
static bool is_kept(const struct nfs4_recovery *r, const struct nfs4_record_job *job)
{
	return job->kind == NFS4_JOB_PUT && job->rec && !is_needed(job) && !r->stop;
}

/* Puts failed jobs in front of those that came since. With the lock held. */
static void nfs4_record_keep_jobs(struct nfs4_recovery *r, struct nfs4_record_job *jobs)
{
	struct nfs4_record_job **end = &jobs;

	r->again = jobs && !r->first;
	while (*end)
		end = &(*end)->next;
	*end = r->first;
	if (!r->first)
		r->last = end == &jobs ? &r->first : end;
	r->first = jobs;
}

static void log_end(struct nfs4_recovery *r)
{
	const struct nfs4_grace *g = &r->grace;

	rn_notice(r->log, "grace period is over after %llu s: %u of %u clients came back",
		  (unsigned long long)(nfs4_now() - g->began_s), g->back, g->expected);
}

static void nfs4_record_finish_jobs(struct nfs4_recovery *r, struct nfs4_record_job *jobs, int rc)
{
	struct nfs4_record_job *kept = NULL, **last = &kept, *done = NULL, *next;
	struct rpc_waits *waits = r->srv->cfg.waits;
	bool ended = false;

	pthread_mutex_lock(&r->lock);
	for (; jobs; jobs = next) {
		next = jobs->next;
		jobs->next = NULL;
		if (rc && is_kept(r, jobs)) {
			rpc_wake(waits, jobs);
			jobs->taken = false;
			*last = jobs;
			last = &jobs->next;
			continue;
		}
		ended |= nfs4_record_settle(r, jobs, rc);
		jobs->next = done;
		done = jobs;
	}
	nfs4_record_keep_jobs(r, kept);
	pthread_mutex_unlock(&r->lock);
	if (ended)
		log_end(r);
	for (; done; done = next) {
		next = done->next;
		rpc_wake(waits, done);
		free(done);
	}
}

/* Waits for something to write: false if the thread must stop. After a failure it also goes on when
 * time has passed. */
static bool nfs4_record_take_jobs(struct nfs4_recovery *r, struct nfs4_record_job **jobs)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += AGAIN_S;
	pthread_mutex_lock(&r->lock);
	while ((!r->first || r->again) && !r->stop) {
		if (!atomic_load(&r->failing))
			pthread_cond_wait(&r->work, &r->lock);
		else if (pthread_cond_timedwait(&r->work, &r->lock, &until) == ETIMEDOUT)
			break;
	}
	const bool ends = r->stop && !r->first;

	*jobs = r->first;
	for (struct nfs4_record_job *job = r->first; job; job = job->next)
		job->taken = true;
	r->first = NULL;
	r->last = &r->first;
	r->again = false;
	pthread_mutex_unlock(&r->lock);
	return !ends;
}

static void *writer_main(void *arg)
{
	struct nfs4_recovery *r = arg;
	struct nfs4_record_job *jobs;

	while (nfs4_record_take_jobs(r, &jobs))
		nfs4_record_finish_jobs(r, jobs, nfs4_record_write_jobs(r, jobs));
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
