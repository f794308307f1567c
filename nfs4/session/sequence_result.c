/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of SEQUENCE. */
#include "nfs4/client/cb_path.h"
#include "nfs4/session/sequence.h"
#include "nfs4/compound.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"

/* Flags of the callback path: of the session, and of the client if no session has another. */
static uint32_t path_flags(uint32_t cb_flags, struct nfs4_client *cl)
{
	struct nfs4_session *other;

	if (!(cb_flags & SEQ4_STATUS_CB_PATH_DOWN_SESSION))
		return cb_flags;
	other = nfs4_cb_session(cl);
	nfs4_session_put(other);
	return cb_flags | (other ? 0 : SEQ4_STATUS_CB_PATH_DOWN);
}

uint32_t nfs4_sequence_flags(const struct nfs4_session *s, uint32_t cb_flags, bool alive)
{
	struct nfs4_client *cl = s->client;
	uint32_t flags = path_flags(cb_flags, cl);

	if (!alive)
		flags |= SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED;
	if (nfs4_holdings_have_revoked(cl->holdings, NFS4ERR_EXPIRED))
		flags |= SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED;
	if (nfs4_holdings_have_revoked(cl->holdings, NFS4ERR_ADMIN_REVOKED))
		flags |= SEQ4_STATUS_ADMIN_STATE_REVOKED;
	if (nfs4_holdings_have_revoked(cl->holdings, NFS4ERR_DELEG_REVOKED))
		flags |= SEQ4_STATUS_RECALLABLE_STATE_REVOKED;
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
	xdr_put_u32(c->out, nfs4_sequence_flags(s, a->cb_flags, alive));
}

void nfs4_sequence_look(struct nfs4_sequence_args *a, struct nfs4_session *s)
{
	a->cb_flags = nfs4_cb_flags(s);
	a->highest_now = s->nslots - 1;
	a->target_now = s->target - 1;
}
