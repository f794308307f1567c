/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/peek.h"

#include "lib/util.h"
#include "rpc/message.h"

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
