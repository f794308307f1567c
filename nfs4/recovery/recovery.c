/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/recovery/recovery.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"

/* Continues without records: no client is expected, recorded or allowed to reclaim. */
static void recovery_give_up(struct nfs4_recovery *r)
{
	nfs4_expected_free(&r->grace);
	r->grace.expected = r->grace.left = r->grace.denying = r->grace.lapsed = 0;
	nfs4_db_close(r->db);
	r->db = NULL;
	r->records = false;
	atomic_store(&r->failing, true);
}

/* True if what keeps the database from being opened may pass. */
static bool may_pass(int rc)
{
	return rc != -EPROTO && rc != -EBUSY && rc != -ENAMETOOLONG;
}

static void start_records(struct nfs4_recovery *r)
{
	const struct nfs4_config *cfg = &r->srv->cfg;
	unsigned grace = cfg->grace_seconds, old_lease = 0;
	int rc;

	if (!cfg->state_dir)
		return;
	rc = nfs4_db_open(cfg->state_dir, cfg->lease_seconds, r->log, false, &r->db, &old_lease);
	r->records = rc == 0 || may_pass(rc);
	atomic_store(&r->failing, rc != 0);
	if (!r->records)
		return;
	/* Clients of the program before this one are this one's, and their records go on. */
	r->continues = cfg->image != NULL;
	rc = r->db && !r->continues ? nfs4_db_each(r->db, nfs4_expected_add, r) : 0;
	if (!rc && r->db)
		(void)nfs4_writer_begin(r);
	if (!rc)
		rc = nfs4_writer_start(r);
	if (rc) {
		rn_err(r->log, "client records cannot be read, nobody can reclaim: %s",
		       strerror(-rc));
		recovery_give_up(r);
		return;
	}
	if (!r->continues)
		nfs4_grace_begin(r, grace > old_lease ? grace : old_lease);
}

int nfs4_recovery_new(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = calloc(1, sizeof(*r));
	pthread_condattr_t monotonic;

	if (!r)
		return -ENOMEM;
	r->srv = srv;
	r->log = srv->cfg.log;
	r->last = &r->first;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	randombytes_buf(r->grace.seed, sizeof(r->grace.seed));
	srv->recovery = r;
	start_records(r);
	return 0;
}

bool nfs4_recovery_stop(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = srv->recovery;

	if (!r || !r->records)
		return true;
	if (!r->stop) {
		nfs4_writer_stop(r);
		/* On ceph-fuse it would stay locked for the next program, as execve(2) leaves it open in a member's keeper. */
		nfs4_db_close(r->db);
		r->db = NULL;
	}
	return !r->lost && !atomic_load(&r->failing);
}

void nfs4_recovery_free(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = srv->recovery;
	struct nfs4_record_job *job;

	if (!r)
		return;
	nfs4_recovery_stop(srv);
	/* Jobs that came after an earlier nfs4_recovery_stop(): whoever goes on from the state that was saved has the records as they were then. */
	while ((job = r->first) != NULL) {
		r->first = job->next;
		free(job);
	}
	nfs4_expected_free(&r->grace);
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
	free(r);
	srv->recovery = NULL;
}

bool nfs4_recovery_tick(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = srv->recovery;
	bool lost;

	nfs4_grace_check(r, nfs4_now());
	pthread_mutex_lock(&r->lock);
	lost = r->lost;
	r->lost = false;
	pthread_mutex_unlock(&r->lock);
	return lost;
}

bool nfs4_recovery_is_failing(const struct nfs4_server *srv)
{
	return atomic_load(&srv->recovery->failing);
}
