/* SPDX-License-Identifier: BSD-2-Clause */
/* channel_attrs4: the limits that a session negotiates (RFC 8881 section 18.36.3). */
#include "nfs4/session/channel.h"

#include "lib/util.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"

/* Smallest limits with which a COMPOUND can run and be answered: RPC headers with AUTH_SYS,
 * SEQUENCE and one small operation. */
#define REQUEST_LEAST 256u
#define REPLY_LEAST 160u

/* The same for a CB_COMPOUND: CB_SEQUENCE, and an operation with a filehandle and an owner. */
#define CALLBACK_LEAST 512u
#define CALLBACK_REPLY_LEAST 128u

/* Bytes of a request or reply in addition to the data of its READ or WRITE. */
#define BESIDES_DATA 16384u

void nfs4_get_channel(struct xdr_in *x, struct nfs4_channel *out)
{
	out->header_pad = xdr_get_u32(x);
	out->max_request = xdr_get_u32(x);
	out->max_reply = xdr_get_u32(x);
	out->max_cached = xdr_get_u32(x);
	out->max_ops = xdr_get_u32(x);
	out->max_requests = xdr_get_u32(x);
	out->nird = xdr_get_u32(x);
	if (out->nird > 1)
		x->err = true;
	if (out->nird == 1)
		out->ird = xdr_get_u32(x);
}

void nfs4_put_channel(struct xdr_out *x, const struct nfs4_channel *ch)
{
	xdr_put_u32(x, ch->header_pad);
	xdr_put_u32(x, ch->max_request);
	xdr_put_u32(x, ch->max_reply);
	xdr_put_u32(x, ch->max_cached);
	xdr_put_u32(x, ch->max_ops);
	xdr_put_u32(x, ch->max_requests);
	xdr_put_u32(x, ch->nird);
	if (ch->nird > 0)
		xdr_put_u32(x, ch->ird);
}

static uint32_t at_most(uint32_t v, uint32_t most)
{
	return v < most ? v : most;
}

static uint32_t between(uint32_t v, uint32_t least, uint32_t most)
{
	return v < least ? least : at_most(v, most);
}

int nfs4_channel_fore(const struct nfs4_config *cfg, uint32_t slots, struct nfs4_channel *ch)
{
	const uint32_t most = cfg->max_io + BESIDES_DATA;

	if (ch->max_request < REQUEST_LEAST || ch->max_reply < REPLY_LEAST)
		return NFS4ERR_TOOSMALL;
	ch->header_pad = 0;
	ch->max_request = at_most(ch->max_request, most);
	ch->max_reply = at_most(ch->max_reply, most);
	ch->max_cached = at_most(at_most(ch->max_cached, ch->max_reply), NFS4_CACHED_MOST);
	ch->max_ops = between(ch->max_ops, 2, NFS4_OPS_MAX);
	ch->max_requests = between(ch->max_requests, 1, slots);
	return NFS4_OK;
}

/* The numbers of operations and requests are left as the client offers them. */
int nfs4_channel_back(struct nfs4_channel *ch)
{
	if (ch->max_requests > 0 && (ch->max_request < CALLBACK_LEAST ||
				     ch->max_reply < CALLBACK_REPLY_LEAST || ch->max_ops < 2))
		return NFS4ERR_TOOSMALL;
	ch->header_pad = 0;
	ch->max_request = at_most(ch->max_request, BESIDES_DATA);
	ch->max_reply = at_most(ch->max_reply, BESIDES_DATA);
	ch->max_cached = at_most(ch->max_cached, ch->max_reply);
	return NFS4_OK;
}
