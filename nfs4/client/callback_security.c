/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/callback_security.h"

#include <string.h>

#include "nfs4/compound.h"
#include "nfs4/nfs4_proto.h"
#include "rpc/program.h"
#include "rpc/security.h"
#include "rpc/xdr_out.h"

/* Copies an authsys_parms, item by item, as it may straddle segments. */
static void get_authsys(struct xdr_in *x, struct xdr_out *copy)
{
	uint32_t len, n;

	xdr_put_u32(copy, xdr_get_u32(x)); /* stamp */
	const uint8_t *name = xdr_get_opaque(x, RPC_MACHINE_NAME_MAX, &len);
	xdr_put_opaque(copy, name, name ? len : 0);
	xdr_put_u64(copy, xdr_get_u64(x)); /* uid and gid */
	n = xdr_get_u32(x);
	if (n > RPC_AUTH_SYS_GIDS_MAX)
		x->err = true;
	xdr_put_u32(copy, n);
	for (uint32_t i = 0; i < n && !x->err; i++)
		xdr_put_u32(copy, xdr_get_u32(x));
}

/* A longest AUTH_SYS credential: stamp, name, uid, gid, groups. */
_Static_assert(4 + 4 + RPC_MACHINE_NAME_MAX + 1 + 8 + 4 + 4 * RPC_AUTH_SYS_GIDS_MAX <=
		       RPC_AUTH_BYTES_MAX,
	       "a credential fits");

static void get_plain(struct xdr_in *x, enum rpc_auth_flavor flavor, struct nfs4_cb_security *out)
{
	uint8_t body[RPC_AUTH_BYTES_MAX];
	struct xdr_out copy;

	xdr_out_init(&copy, body, sizeof(body));
	if (flavor == RPC_AUTH_SYS)
		get_authsys(x, &copy);
	if (out->plain)
		return;
	out->plain = true;
	out->flavor = flavor;
	out->len = (uint32_t)copy.used;
	memcpy(out->body, body, copy.used);
}

static void get_gss_handles(struct xdr_in *x, struct nfs4_cb_security *out)
{
	struct rpc_cb_auth_offer o = { .service = xdr_get_u32(x) };

	o.from_server = xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &o.from_server_len);
	o.from_client = xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &o.from_client_len);
	if (!x->err && out->noffers < NFS4_CB_OFFERS)
		out->offer[out->noffers++] = o;
}

void nfs4_get_cb_security(struct xdr_in *x, struct nfs4_cb_security *out)
{
	const uint32_t n = xdr_get_u32(x);

	for (uint32_t i = 0; i < n && !x->err; i++) {
		const uint32_t flavor = xdr_get_u32(x);

		switch (flavor) {
		case RPC_AUTH_NONE:
		case RPC_AUTH_SYS:
			get_plain(x, flavor, out);
			break;
		case RPC_RPCSEC_GSS:
			get_gss_handles(x, out);
			break;
		default:
			x->err = true;
		}
	}
}

int nfs4_choose_cb_security(const struct nfs4_compound *c, struct nfs4_cb_security *s)
{
	const struct rpc_server *server = c->req->server;

	for (uint32_t i = 0; i < s->noffers && !s->auth && server->security; i++) {
		s->offer[i].principal = c->req->call.cred.principal;
		s->auth = server->security->offered(server->security_ctx, &s->offer[i]);
	}
	return s->noffers > 0 && !s->auth && !s->plain ? NFS4ERR_NOENT : NFS4_OK;
}

void nfs4_cb_security_clear(struct nfs4_cb_security *s)
{
	rpc_cb_auth_put(s->auth);
	s->auth = NULL;
}
