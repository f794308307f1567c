/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/callback_security.h"

#include "nfs4/proto.h"
#include "rpc/message.h"

static void get_authsys(struct xdr_in *x)
{
	uint32_t len, n;

	xdr_get_u32(x); /* stamp */
	xdr_get_opaque(x, RPC_MACHINE_NAME_MAX, &len);
	xdr_skip(x, 8); /* uid and gid */
	n = xdr_get_u32(x);
	if (n > RPC_AUTH_SYS_GIDS_MAX)
		x->err = true;
	else
		xdr_skip(x, (size_t)n * 4);
}

static void get_gss_handles(struct xdr_in *x)
{
	uint32_t len;

	xdr_get_u32(x); /* service */
	xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len);
	xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len);
}

void nfs4_get_cb_security(struct xdr_in *x, struct nfs4_cb_security *out)
{
	const uint32_t n = xdr_get_u32(x);

	for (uint32_t i = 0; i < n && !x->err; i++) {
		switch (xdr_get_u32(x)) {
		case RPC_AUTH_NONE:
			out->plain = true;
			break;
		case RPC_AUTH_SYS:
			get_authsys(x);
			out->plain = true;
			break;
		case RPC_RPCSEC_GSS:
			get_gss_handles(x);
			out->gss = true;
			break;
		default:
			x->err = true;
		}
	}
}

int nfs4_check_cb_security(const struct nfs4_cb_security *s)
{
	return s->gss && !s->plain ? NFS4ERR_NOENT : NFS4_OK;
}
