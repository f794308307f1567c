/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of SEQUENCE. */
#include "nfs4/client/sequence.h"
#include "nfs4/compound.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/server.h"

static uint32_t status_flags(const struct nfs4_client *cl, bool alive)
{
	const struct nfs4_holdings_hooks *hooks = cl->srv->holdings_hooks;
	uint32_t flags = 0;

	if (!alive)
		flags |= SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED;
	if (hooks->has_revoked(cl->holdings, NFS4ERR_EXPIRED))
		flags |= SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED;
	if (hooks->has_revoked(cl->holdings, NFS4ERR_ADMIN_REVOKED))
		flags |= SEQ4_STATUS_ADMIN_STATE_REVOKED;
	if (nfs4_reclaim_is_needed(&cl->record))
		flags |= SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
	return flags;
}

void nfs4_put_sequence(struct nfs4_compound *c, const struct nfs4_sequence_args *a,
		       const struct nfs4_session *s, bool alive)
{
	xdr_put_fixed(c->out, a->session, sizeof(a->session));
	xdr_put_u32(c->out, a->seqid);
	xdr_put_u32(c->out, a->slot);
	xdr_put_u32(c->out, a->highest_now);
	xdr_put_u32(c->out, a->target_now);
	xdr_put_u32(c->out, status_flags(s->client, alive));
}

void nfs4_sequence_slots(struct nfs4_sequence_args *a, const struct nfs4_session *s)
{
	a->highest_now = s->nslots - 1;
	a->target_now = s->target - 1;
}
