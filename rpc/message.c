/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/message.h"

#include <string.h>

#include "lib/util.h"

/* An opaque_auth as it lies in a call header, copied since it may straddle segments. */
struct auth_blob {
	uint32_t flavor, len;
	uint8_t body[RPC_AUTH_BYTES_MAX];
};

/* False: longer than RFC 5531 allows. A header cut short shows in x->err. */
static bool get_auth(struct xdr_in *x, struct auth_blob *a)
{
	a->flavor = xdr_get_u32(x);
	a->len = xdr_get_u32(x);
	if (a->len > RPC_AUTH_BYTES_MAX)
		return false;
	xdr_get_fixed(x, a->body, a->len);
	return true;
}

/* RFC 5531 appendix A. Bytes after the last group are let pass, as other servers do. */
static bool decode_auth_sys(struct auth_blob *a, struct rpc_cred *cred)
{
	const struct rpc_seg seg = { .base = a->body, .len = a->len };
	uint32_t name_len;
	struct xdr_in x;

	xdr_in_init(&x, &seg, 1, NULL);
	xdr_get_u32(&x); /* stamp */
	xdr_get_opaque(&x, RPC_MACHINE_NAME_MAX, &name_len);
	cred->uid = xdr_get_u32(&x);
	cred->gid = xdr_get_u32(&x);
	const uint32_t n = xdr_get_u32(&x);
	if (x.err || n > RPC_AUTH_SYS_GIDS_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++)
		cred->gids[i] = xdr_get_u32(&x);
	cred->ngids = n;
	return !x.err;
}

static enum rpc_auth_stat check_cred(struct auth_blob *a, struct rpc_cred *cred)
{
	switch (a->flavor) {
	case RPC_AUTH_NONE:
		cred->sec = RPC_SEC_NONE;
		return RPC_AUTH_OK; /* its body is undefined: RFC 5531 section 10.1 */
	case RPC_AUTH_SYS:
		cred->sec = RPC_SEC_SYS;
		return decode_auth_sys(a, cred) ? RPC_AUTH_OK : RPC_AUTH_BADCRED;
	case RPC_AUTH_TLS: /* not on a first NULL call, see transport/tcp/tcp_tls.c */
		return RPC_AUTH_BADCRED;
	default:
		return RPC_AUTH_REJECTEDCRED; /* AUTH_SHORT too: we never hand one out */
	}
}

static const uint8_t *rpc_keep_auth_body(struct xdr_in *x, const struct auth_blob *a)
{
	uint8_t *p = x->arena ? rn_arena_alloc(x->arena, a->len + 1u) : NULL;

	if (p)
		memcpy(p, a->body, a->len);
	return p;
}

/* Keeps both bodies of a call under RPCSEC_GSS. Without an arena such calls are refused. */
static enum rpc_auth_stat get_secured(struct xdr_in *x, struct rpc_call *call,
				      const struct auth_blob *cred)
{
	struct auth_blob verf;

	call->signed_len = xdr_in_pos(x);
	if (!get_auth(x, &verf))
		return RPC_AUTH_BADVERF;
	if (x->err)
		return RPC_AUTH_OK;
	call->auth = rpc_keep_auth_body(x, cred);
	call->verf = rpc_keep_auth_body(x, &verf);
	call->auth_len = cred->len;
	call->verf_len = verf.len;
	call->verf_flavor = verf.flavor;
	return call->auth && call->verf ? RPC_AUTH_OK : RPC_AUTH_REJECTEDCRED;
}

/* The fault of the credential or verifier, if there is one. */
static enum rpc_auth_stat get_cred(struct xdr_in *x, struct rpc_call *call)
{
	struct rpc_cred *cred = &call->cred;
	struct auth_blob a, verf;

	const bool fits = get_auth(x, &a);
	cred->flavor = a.flavor;
	if (!fits)
		return RPC_AUTH_BADCRED;
	if (a.flavor == RPC_RPCSEC_GSS && !x->err)
		return get_secured(x, call, &a);
	const enum rpc_auth_stat stat = x->err ? RPC_AUTH_OK : check_cred(&a, cred);
	if (stat != RPC_AUTH_OK)
		return stat;
	if (!get_auth(x, &verf) || verf.flavor != RPC_AUTH_NONE)
		return RPC_AUTH_BADVERF;
	return RPC_AUTH_OK;
}

enum rpc_header_result rpc_decode_call(struct xdr_in *x, struct rpc_call *call,
				       enum rpc_auth_stat *stat)
{
	memset(call, 0, sizeof(*call));
	*stat = RPC_AUTH_OK;
	call->xid = xdr_get_u32(x);
	const uint32_t type = xdr_get_u32(x);
	if (x->err || type != RPC_CALL)
		return RPC_HEADER_NOT_A_CALL;
	call->rpcvers = xdr_get_u32(x);
	if (x->err)
		return RPC_HEADER_GARBAGE;
	if (call->rpcvers != RPC_VERSION)
		return RPC_HEADER_MISMATCH;
	call->prog = xdr_get_u32(x);
	call->vers = xdr_get_u32(x);
	call->proc = xdr_get_u32(x);
	*stat = get_cred(x, call);
	if (x->err)
		return RPC_HEADER_GARBAGE;
	if (*stat != RPC_AUTH_OK)
		return RPC_HEADER_AUTH;
	if (call->cred.flavor != RPC_RPCSEC_GSS)
		return RPC_HEADER_OK;
	*stat = RPC_AUTH_REJECTEDCRED;
	return RPC_HEADER_SECURED;
}

void rpc_put_call(struct xdr_out *x, const struct rpc_callee *to, enum rpc_auth_flavor flavor,
		  const uint8_t *body, uint32_t len)
{
	xdr_put_u32(x, 0);
	xdr_put_u32(x, RPC_CALL);
	xdr_put_u32(x, RPC_VERSION);
	xdr_put_u32(x, to->prog);
	xdr_put_u32(x, to->vers);
	xdr_put_u32(x, to->proc);
	xdr_put_u32(x, flavor);
	xdr_put_opaque(x, body, len);
	xdr_put_u32(x, RPC_AUTH_NONE);
	xdr_put_u32(x, 0);
}

static void rpc_put_reply_header(struct xdr_out *x, uint32_t xid, enum rpc_reply_stat stat)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, RPC_REPLY);
	xdr_put_u32(x, stat);
}

void rpc_put_accepted(struct xdr_out *x, uint32_t xid, enum rpc_accept_stat stat)
{
	rpc_put_reply_header(x, xid, RPC_MSG_ACCEPTED);
	xdr_put_u32(x, RPC_AUTH_NONE);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, stat);
}

void rpc_put_starttls(struct xdr_out *x, uint32_t xid)
{
	rpc_put_reply_header(x, xid, RPC_MSG_ACCEPTED);
	xdr_put_u32(x, RPC_AUTH_NONE);
	xdr_put_opaque(x, (const uint8_t *)"STARTTLS", 8);
	xdr_put_u32(x, RPC_SUCCESS);
}

void rpc_put_prog_mismatch(struct xdr_out *x, uint32_t xid, uint32_t low, uint32_t high)
{
	rpc_put_accepted(x, xid, RPC_PROG_MISMATCH);
	xdr_put_u32(x, low);
	xdr_put_u32(x, high);
}

void rpc_put_rpc_mismatch(struct xdr_out *x, uint32_t xid)
{
	rpc_put_reply_header(x, xid, RPC_MSG_DENIED);
	xdr_put_u32(x, RPC_RPC_MISMATCH);
	xdr_put_u32(x, RPC_VERSION);
	xdr_put_u32(x, RPC_VERSION);
}

void rpc_put_auth_error(struct xdr_out *x, uint32_t xid, enum rpc_auth_stat stat)
{
	rpc_put_reply_header(x, xid, RPC_MSG_DENIED);
	xdr_put_u32(x, RPC_AUTH_ERROR);
	xdr_put_u32(x, stat);
}

/* False: the arguments are not in plain text (RPCSEC_GSS with integrity or privacy, RFC 2203 section 5). */
static bool skip_cred(struct xdr_in *x)
{
	enum { GSS_SERVICE_NONE = 1, GSS_WORDS = 16 };
	const uint32_t flavor = xdr_get_u32(x);
	uint32_t len, service;

	if (flavor != RPC_RPCSEC_GSS) {
		xdr_skip_opaque(x, RPC_AUTH_BYTES_MAX);
		return true;
	}
	len = xdr_get_u32(x);
	if (len < GSS_WORDS || len > RPC_AUTH_BYTES_MAX)
		return false;
	xdr_skip(x, 12); /* version, procedure, sequence number */
	service = xdr_get_u32(x);
	xdr_skip(x, len - GSS_WORDS + rn_xdr_pad(len));
	return service == GSS_SERVICE_NONE;
}

bool rpc_peek_call(struct xdr_in *x, struct rpc_peek *out)
{
	xdr_skip(x, 4); /* xid */
	if (xdr_get_u32(x) != RPC_CALL || xdr_get_u32(x) != RPC_VERSION)
		return false;
	out->prog = xdr_get_u32(x);
	out->vers = xdr_get_u32(x);
	out->proc = xdr_get_u32(x);
	if (!skip_cred(x))
		return false;
	xdr_skip(x, 4); /* verifier */
	xdr_skip_opaque(x, RPC_AUTH_BYTES_MAX);
	return !x->err;
}
