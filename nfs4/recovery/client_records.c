/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records from the clients' side: each change of a record posts a job (nfs4/recovery/jobs.c). An
 * operation that waits for it holds a reference of its client. The writing thread
 * (nfs4/recovery/writer.c) wakes it.
 */
#include "nfs4/recovery/client_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery_private.h"

void nfs4_record_init(struct nfs4_record *rec, const void *id, uint32_t id_len,
		      const uint8_t verifier[NFS4_VERIFIER_SIZE], bool sessions)
{
	rec->id = id;
	rec->id_len = id_len;
	rec->sessions = sessions;
	memcpy(rec->verifier, verifier, sizeof(rec->verifier));
	memset(&rec->origin, 0, sizeof(rec->origin));
	atomic_init(&rec->durable, 0);
	atomic_init(&rec->reclaim, 0);
	atomic_init(&rec->asked_s, 0);
	atomic_init(&rec->begun, 0);
	atomic_init(&rec->ended, 0);
	rec->job = NULL;
}

/* With the lock held, which it gives back. NFS4_OK: the job is gone, or has failed. NFS4ERR_DELAY: the client has
 * gone. */
static int nfs4_record_await(struct nfs4_recovery *r, struct nfs4_compound *c,
			     const struct nfs4_record_job *job)
{
	if (r->again)
		nfs4_job_try_now(r);
	return rpc_wait(c->req, RN_WAIT_RECORD, job, 0, &r->lock) == -RN_EGONE ? NFS4ERR_DELAY
									       : NFS4_OK;
}

int nfs4_record_for(struct nfs4_compound *c, struct nfs4_record *rec, unsigned bits)
{
	struct nfs4_recovery *r = c->server->recovery;
	const struct nfs4_record_job *job;

	if (nfs4_record_has(rec, bits))
		return NFS4_OK;
	if (!r->records) {
		atomic_fetch_or(&rec->durable, bits);
		return NFS4_OK;
	}
	pthread_mutex_lock(&r->lock);
	job = nfs4_job_for(r, rec, bits);
	if (!job) {
		pthread_mutex_unlock(&r->lock);
		return NFS4ERR_DELAY;
	}
	return nfs4_record_await(r, c, job);
}

int nfs4_record_settled(struct nfs4_compound *c, struct nfs4_record *rec)
{
	struct nfs4_recovery *r = c->server->recovery;

	pthread_mutex_lock(&r->lock);
	if (rec->job)
		return nfs4_record_await(r, c, rec->job);
	pthread_mutex_unlock(&r->lock);
	return NFS4_OK;
}

void nfs4_record_forget(struct nfs4_server *srv, struct nfs4_record *rec)
{
	struct nfs4_recovery *r = srv->recovery;

	pthread_mutex_lock(&r->lock);
	const bool expected = nfs4_grace_forget(r, rec, true);
	const bool known = rec->job != NULL || atomic_load(&rec->durable) != 0;

	/* Without memory the record stays until the next restart's grace period ends. */
	if (r->records && (expected || known) && nfs4_job_post(r, rec, NFS4_JOB_DELETE, 0))
		nfs4_job_detach(rec);
	atomic_store(&rec->durable, 0);
	pthread_mutex_unlock(&r->lock);
}

bool nfs4_record_is_quiet(const struct nfs4_record *rec, unsigned *mark)
{
	const unsigned ended = atomic_load(&rec->ended);

	*mark = atomic_load(&rec->begun);
	return *mark == ended && atomic_load(&rec->durable) != 0;
}

/* An operation that begins now either finds durable cleared, and waits for a new record that is
 * written later, or is seen here. */
void nfs4_record_retire(struct nfs4_server *srv, struct nfs4_record *rec, unsigned mark)
{
	struct nfs4_recovery *r = srv->recovery;
	unsigned had;

	if (nfs4_in_grace(srv))
		return;
	pthread_mutex_lock(&r->lock);
	had = atomic_exchange(&rec->durable, 0);
	if (rec->job || atomic_load(&rec->begun) != mark)
		atomic_store(&rec->durable, had);
	else if (r->records && nfs4_job_post(r, rec, NFS4_JOB_DELETE, 0))
		nfs4_job_detach(rec);
	pthread_mutex_unlock(&r->lock);
}

void nfs4_record_lapsed(struct nfs4_server *srv, struct nfs4_record *rec)
{
	struct nfs4_recovery *r = srv->recovery;
	unsigned bits;

	pthread_mutex_lock(&r->lock);
	bits = nfs4_record_coming_bits(rec);
	if (r->records && bits != 0)
		nfs4_job_post(r, rec, NFS4_JOB_PUT, bits | NFS4_DB_LAPSED);
	pthread_mutex_unlock(&r->lock);
}

bool nfs4_record_add(struct nfs4_server *srv, struct nfs4_record *rec, unsigned bits)
{
	struct nfs4_recovery *r = srv->recovery;
	bool done;

	pthread_mutex_lock(&r->lock);
	done = !r->records || nfs4_record_has(rec, bits) ||
	       (!rec->job && atomic_load(&rec->durable) == 0);
	if (!done && (!rec->job || rec->job->kind == NFS4_JOB_PUT))
		nfs4_job_for(r, rec, bits);
	pthread_mutex_unlock(&r->lock);
	return done;
}

bool nfs4_record_distrust(struct nfs4_server *srv, struct nfs4_record *rec)
{
	return nfs4_record_add(srv, rec, NFS4_DB_SUSPECT);
}

/* Nothing of the record is on disk, as it could not be written so far: has it not written any more.
 * With the lock held. */
static void call_off(struct nfs4_record *rec)
{
	struct nfs4_record_job *job = rec->job;

	if (!job || job->kind != NFS4_JOB_PUT || job->taken || atomic_load(&rec->durable) != 0)
		return;
	job->kind = NFS4_JOB_DELETE;
	nfs4_job_detach(rec);
}

bool nfs4_record_revoke(struct nfs4_server *srv, struct nfs4_record *rec)
{
	struct nfs4_recovery *r = srv->recovery;
	struct nfs4_expected *e;
	bool gone, earlier;

	pthread_mutex_lock(&r->lock);
	nfs4_grace_forget(r, rec, true);
	/* In grace the record of an earlier run is still on disk. */
	e = nfs4_expected_find(&r->grace, rec);
	earlier = e && !e->revoked;
	if (!earlier)
		call_off(rec);
	gone = !r->records || (!earlier && !rec->job && atomic_load(&rec->durable) == 0);
	if (!gone && !(rec->job && rec->job->kind == NFS4_JOB_REVOKE) &&
	    nfs4_job_post(r, rec, NFS4_JOB_REVOKE, 0) && e)
		e->revoked = true;
	pthread_mutex_unlock(&r->lock);
	return gone;
}

void nfs4_record_again(struct nfs4_server *srv, struct nfs4_record *rec)
{
	struct nfs4_recovery *r = srv->recovery;
	unsigned bits;

	pthread_mutex_lock(&r->lock);
	bits = atomic_exchange(&rec->durable, 0);
	if (bits != 0 && !rec->job)
		nfs4_job_post(r, rec, NFS4_JOB_PUT, bits);
	pthread_mutex_unlock(&r->lock);
}

void nfs4_record_fini(struct nfs4_server *srv, struct nfs4_record *rec)
{
	struct nfs4_recovery *r = srv->recovery;

	pthread_mutex_lock(&r->lock);
	nfs4_grace_forget(r, rec, false);
	nfs4_job_detach(rec);
	pthread_mutex_unlock(&r->lock);
}
