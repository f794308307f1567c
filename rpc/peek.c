/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/peek.h"

#include "rpc/message.h"

bool rpc_peek_call(struct xdr_in *x, struct rpc_peek *out)
{
	xdr_skip(x, 4); /* xid */
	if (xdr_get_u32(x) != RPC_CALL || xdr_get_u32(x) != RPC_VERSION)
		return false;
	out->prog = xdr_get_u32(x);
	out->vers = xdr_get_u32(x);
	out->proc = xdr_get_u32(x);
	for (int i = 0; i < 2; i++) { /* credential and verifier */
		xdr_skip(x, 4);
		xdr_skip_opaque(x, RPC_AUTH_BYTES_MAX);
	}
	return !x->err;
}
