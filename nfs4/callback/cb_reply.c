/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_reply.h"

#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_proto.h"

/* Meaning of a failed CB_SEQUENCE, which leaves the slot as it was (RFC 8881 section 20.9.3). */
static void sequence_failed(const struct nfs4_cb *cb, uint32_t status, struct nfs4_cb_answer *a)
{
	a->rc = -EPROTO;
	a->fate = NFS4_CB_UNTOUCHED;
	a->news = NFS4_CB_FAILED;
	switch (status) {
	case NFS4ERR_DELAY:
		a->rc = -RN_ELATER;
		a->news = NFS4_CB_NO_NEWS;
		break;
	case NFS4ERR_BADSLOT:
	case NFS4ERR_BAD_HIGH_SLOT:
		a->rc = -RN_ELATER;
		a->news = cb->slot > 0 ? NFS4_CB_NO_NEWS : NFS4_CB_BROKEN;
		a->has_highest = cb->slot > 0;
		a->highest = cb->slot - 1;
		break;
	case NFS4ERR_RETRY_UNCACHED_REP: /* it was accepted over a connection that is lost */
		a->rc = 0;
		a->status = status;
		a->fate = NFS4_CB_ACCEPTED;
		a->news = NFS4_CB_ANSWERED;
		break;
	case NFS4ERR_BADSESSION:
	case NFS4ERR_DEADSESSION:
	case NFS4ERR_SEQ_MISORDERED:
	case NFS4ERR_SEQ_FALSE_RETRY:
		a->fate = NFS4_CB_LOST;
		a->news = NFS4_CB_BROKEN;
		break;
	default:
		break;
	}
}

/* True if the result is CB_SEQUENCE's for this call. */
static bool is_echo(const struct nfs4_cb *cb, struct xdr_in *x, struct nfs4_cb_answer *a)
{
	uint8_t id[NFS4_SESSIONID_SIZE] = { 0 };
	uint32_t seqid, slot;

	xdr_get_fixed(x, id, sizeof(id));
	seqid = xdr_get_u32(x);
	slot = xdr_get_u32(x);
	xdr_get_u32(x); /* highest slot that it accepts: not below the target */
	a->highest = xdr_get_u32(x);
	return !x->err && memcmp(id, cb->session->id, sizeof(id)) == 0 && seqid == cb->seqid &&
	       slot == cb->slot;
}

/* Reads up to the first result. Returns the number of results. */
static uint32_t get_header(struct xdr_in *x)
{
	uint32_t len;

	xdr_get_u32(x); /* status of the whole, which is that of the last result */
	xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len);
	return xdr_get_u32(x);
}

/* Reads the status of the operation. False: the result is not the operation's. */
static bool cb_get_op_status(const struct nfs4_cb *cb, struct xdr_in *x, struct nfs4_cb_answer *a)
{
	const uint32_t op = xdr_get_u32(x);

	a->status = xdr_get_u32(x);
	return !x->err && (op == cb->op->opnum || op == OP_CB_ILLEGAL);
}

void nfs4_cb_read_answer_v40(const struct nfs4_cb *cb, struct xdr_in *x, struct nfs4_cb_answer *a)
{
	const uint32_t n = get_header(x);

	*a = (struct nfs4_cb_answer){ .rc = -EPROTO };
	if (n == 1 && cb_get_op_status(cb, x, a))
		a->rc = 0;
}

void nfs4_cb_read_answer(const struct nfs4_cb *cb, struct xdr_in *x, struct nfs4_cb_answer *a)
{
	uint32_t n, op, status;

	*a = (struct nfs4_cb_answer){ .rc = -EPROTO, .fate = NFS4_CB_LOST, .news = NFS4_CB_FAILED };
	n = get_header(x);
	op = xdr_get_u32(x);
	status = xdr_get_u32(x);
	if (x->err || n == 0 || n > 2 || op != OP_CB_SEQUENCE)
		return;
	if (status != NFS4_OK) {
		sequence_failed(cb, status, a);
		return;
	}
	if (!is_echo(cb, x, a))
		return;
	a->has_highest = true;
	a->fate = NFS4_CB_ACCEPTED;
	if (cb->op->opnum && (!cb_get_op_status(cb, x, a) || n < 2))
		return;
	a->rc = 0;
	a->news = NFS4_CB_ANSWERED;
}
