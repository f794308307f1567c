/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/recovery/recovery.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"

/* Continues without records: no client is expected, recorded or allowed to reclaim. */
static void give_up(struct nfs4_recovery *r)
{
	nfs4_expected_free(&r->grace);
	r->grace.expected = r->grace.left = r->grace.denying = r->grace.lapsed = 0;
	nfs4_db_close(r->db);
	r->db = NULL;
}

static void start_records(struct nfs4_recovery *r)
{
	const struct nfs4_config *cfg = &r->srv->cfg;
	unsigned grace = cfg->grace_seconds, old_lease = 0;

	if (!cfg->state_dir ||
	    nfs4_db_open(cfg->state_dir, cfg->lease_seconds, r->log, &r->db, &old_lease) < 0)
		return;
	int rc = nfs4_db_each(r->db, nfs4_expected_add, r);
	if (!rc)
		rc = nfs4_writer_start(r);
	if (rc) {
		rn_err(r->log, "client records cannot be read, nobody can reclaim: %s",
		       strerror(-rc));
		give_up(r);
		return;
	}
	nfs4_grace_begin(r, grace > old_lease ? grace : old_lease);
}

int nfs4_recovery_new(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->srv = srv;
	r->log = srv->cfg.log;
	r->last = &r->first;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	randombytes_buf(r->grace.seed, sizeof(r->grace.seed));
	srv->recovery = r;
	start_records(r);
	return 0;
}

void nfs4_recovery_free(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = srv->recovery;

	if (!r)
		return;
	if (r->db)
		nfs4_writer_stop(r);
	nfs4_db_close(r->db);
	nfs4_expected_free(&r->grace);
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
	free(r);
	srv->recovery = NULL;
}

void nfs4_recovery_tick(struct nfs4_server *srv)
{
	nfs4_grace_check(srv->recovery, nfs4_now());
}
