/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs for the writing thread, in a queue, in order of arrival. A record points to its latest job
 * only; when that one is done, the record's state on disk is known. */
#include <stdlib.h>
#include <string.h>

#include "nfs4/recovery/recovery_private.h"

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
