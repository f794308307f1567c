/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the state that clients have below an export. */
#include "daemon/exports/export_set.h"

#include <stdlib.h>
#include <string.h>

#include "nfs3/nfs3_server.h"
#include "nfs4/nfs4_server.h"

static void add_holder(void *ctx, const struct nfs4_loss *loss)
{
	struct exports_revoked *out = ctx;

	out->opens += loss->opens;
	out->locks += loss->locks;
	out->delegations += loss->delegations;
	if (!out->holder)
		out->holder = calloc(EXPORTS_HOLDERS_MAX, sizeof(*out->holder));
	if (!out->holder || out->nholders == EXPORTS_HOLDERS_MAX)
		return;
	struct exports_holder *h = &out->holder[out->nholders++];

	h->clientid = loss->clientid;
	memcpy(&h->addr, &loss->addr, sizeof(loss->addr));
	h->opens = loss->opens;
	h->locks = loss->locks;
	h->delegations = loss->delegations;
}

void exports_count_holders(struct nfs4_server *nfs4, struct nfs3_server *nfs3,
			   const struct vfs_exports_lost *below, struct exports_revoked *out)
{
	if (nfs4)
		nfs4_count_exports(nfs4, below, add_holder, out);
	if (nfs3)
		out->lock_owners = nlm_count_exports(nfs3, below);
}
