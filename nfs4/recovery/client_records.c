/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that are on disk, and those that have something to reclaim. */
#include "nfs4/recovery/client_records.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery_private.h"

/* Table of the clients that have something to reclaim, by owner string. */

static struct nfs4_expected **expected_bucket(struct nfs4_grace *g, const uint8_t *id, uint32_t len,
					      bool sessions)
{
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, id, len, g->seed);
	return &g->bucket[(hash + sessions) & (g->nbuckets - 1)];
}

struct nfs4_expected *nfs4_expected_find(struct nfs4_grace *g, const struct nfs4_record *rec)
{
	struct nfs4_expected *e = NULL;

	if (g->nbuckets > 0)
		e = *expected_bucket(g, rec->id, rec->id_len, rec->sessions);
	while (e && (e->sessions != rec->sessions || e->id_len != rec->id_len ||
		     memcmp(e->id, rec->id, rec->id_len) != 0))
		e = e->next;
	return e;
}

static int expected_grow(struct nfs4_grace *g)
{
	const uint32_t was = g->nbuckets, n = was ? 2 * was : 64;
	struct nfs4_expected **old = g->bucket;

	g->bucket = calloc(n, sizeof(struct nfs4_expected *));
	if (!g->bucket) {
		g->bucket = old;
		return -ENOMEM;
	}
	g->nbuckets = n;
	for (uint32_t i = 0; i < was; i++) {
		while (old[i]) {
			struct nfs4_expected *e = old[i], **to;

			old[i] = e->next;
			to = expected_bucket(g, e->id, e->id_len, e->sessions);
			e->next = *to;
			*to = e;
		}
	}
	free(old);
	return 0;
}

int nfs4_expected_add(void *arg, const struct nfs4_db_row *row)
{
	struct nfs4_grace *g = &((struct nfs4_recovery *)arg)->grace;
	struct nfs4_expected *e, **to;

	if ((row->bits & NFS4_DB_SUSPECT) || !(row->bits & NFS4_RECORD_STATE))
		return 0;
	if (g->expected + g->lapsed >= g->nbuckets && expected_grow(g) < 0)
		return -ENOMEM;
	e = calloc(1, sizeof(*e) + row->id_len);
	if (!e)
		return -ENOMEM;
	e->sessions = row->sessions;
	e->bits = row->bits;
	memcpy(e->verifier, row->verifier, sizeof(e->verifier));
	e->origin = row->origin;
	e->id_len = row->id_len;
	if (row->id_len > 0)
		memcpy(e->id, row->id, row->id_len);
	to = expected_bucket(g, e->id, e->id_len, e->sessions);
	e->next = *to;
	*to = e;
	e->lapsed = (row->bits & NFS4_DB_LAPSED) != 0;
	g->expected += !e->lapsed;
	g->left += !e->lapsed;
	g->lapsed += e->lapsed;
	g->denying += (e->bits & NFS4_RECORD_DENY) != 0;
	e->delegated = !e->lapsed && (e->bits & NFS4_RECORD_DELEG);
	g->delegating += e->delegated;
	e->writes = e->delegated && (e->bits & NFS4_RECORD_DELEG_WRITE);
	g->writing += e->writes;
	return 0;
}

void nfs4_expected_free(struct nfs4_grace *g)
{
	for (uint32_t i = 0; i < g->nbuckets; i++) {
		while (g->bucket[i]) {
			struct nfs4_expected *e = g->bucket[i];

			g->bucket[i] = e->next;
			free(e);
		}
	}
	free(g->bucket);
	g->bucket = NULL;
	g->nbuckets = 0;
}

/*
 * Records from the clients' side: each change of a record posts a job (nfs4/recovery/writer.c). An
 * operation that waits for it holds a reference of its client. The writing thread
 * (nfs4/recovery/writer.c) wakes it.
 */

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
