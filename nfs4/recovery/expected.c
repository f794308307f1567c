/* SPDX-License-Identifier: BSD-2-Clause */
/* Table of the clients that have something to reclaim, by owner string. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/recovery/recovery_private.h"

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
