/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients keep delegations that nobody wants, so those of an export that is drained are recalled. */
#include "nfs4/deleg/drain_recall.h"

#include <stdlib.h>

#include "nfs4/nfs4_end.h"
#include "nfs4/nfs4_private.h"

#define RECALLS_MAX 5000u /* at a call */
#define PIECES 1000u	  /* of the walk, between two looks at what is drained */

struct recalling {
	struct nfs4_server *srv;
	uint32_t *id; /* exports that are drained, by their ids */
	size_t n, room;
	unsigned recalls;
};

static bool drain_recall_add_export(void *arg, struct vfs_export *exp)
{
	struct recalling *r = arg;
	const size_t room = r->n < r->room ? r->room : 2 * r->room + 16;
	uint32_t *more;

	if (!vfs_export_is_draining(exp))
		return true;
	more = room == r->room ? r->id : realloc(r->id, room * sizeof(r->id[0]));
	if (!more)
		return false;
	r->id = more;
	r->room = room;
	r->id[r->n++] = vfs_export_id(exp);
	return true;
}

static int drain_recall_compare_ids(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static bool drain_recall_deleg(void *arg, const struct nfs4_view_state *st)
{
	struct recalling *r = arg;

	if (st->recalled || st->revoked ||
	    !bsearch(&st->export_id, r->id, r->n, sizeof(r->id[0]), drain_recall_compare_ids))
		return true;
	nfs4_recall_delegation(r->srv, st->id);
	return ++r->recalls < RECALLS_MAX;
}

void nfs4_drain_tick(struct nfs4_server *srv)
{
	struct recalling r = { .srv = srv };
	const struct nfs4_view_query q = { .kind = NFS4_VIEW_DELEGATIONS,
					   .show = drain_recall_deleg,
					   .arg = &r };
	struct nfs4_view_place at = { 0 };

	if (atomic_load(&srv->drain) == NFS4_DRAIN_NONE)
		return;
	srv->cfg.exports.each(srv->cfg.exports.ctx, drain_recall_add_export, &r);
	if (r.n > 0)
		qsort(r.id, r.n, sizeof(r.id[0]), drain_recall_compare_ids);
	while (r.n > 0 && r.recalls < RECALLS_MAX && atomic_load(&srv->drain) != NFS4_DRAIN_NONE &&
	       !nfs4_view(srv, &q, &at, PIECES))
		;
	free(r.id);
}
