/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_getattr.h"

#include <string.h>

#include "lib/util.h"
#include "nfs4/nfs4_proto.h"

/* The one word of the bitmap. */
#define ASKED (1u << FATTR4_CHANGE | 1u << FATTR4_SIZE)
#define VALUES (8u + 8u) /* bytes of both */

static void cb_getattr_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_cb_getattr *g = rn_container_of(cb, const struct nfs4_cb_getattr, cb);

	xdr_put_opaque(x, g->fh, g->fh_len);
	xdr_put_u32(x, 1);
	xdr_put_u32(x, ASKED);
}

/* The fattr4 must have both attributes and no other. More words of the bitmap may follow, all zero:
 * Linux's client puts three at times. */
static bool cb_getattr_get_attrs(struct xdr_in *x, struct nfs4_held_attrs *attrs)
{
	const uint32_t words = xdr_get_u32(x);
	bool good = words > 0 && words <= NFS4_ATTR_WORDS && xdr_get_u32(x) == ASKED;

	for (uint32_t i = 1; good && i < words; i++)
		good = xdr_get_u32(x) == 0;
	good = good && xdr_get_u32(x) == VALUES;
	attrs->change = xdr_get_u64(x);
	attrs->size = xdr_get_u64(x);
	return good && !x->err && x->left == 0 && attrs->size <= INT64_MAX;
}

static void cb_getattr_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_cb_getattr *g = rn_container_of(cb, struct nfs4_cb_getattr, cb);
	struct nfs4_held_attrs attrs;
	const bool good = rc == 0 && status == NFS4_OK && cb_getattr_get_attrs(results, &attrs);

	g->ended(g, good ? &attrs : NULL);
}

static const struct nfs4_cb_op getattr_op = {
	.name = "CB_GETATTR",
	.opnum = OP_CB_GETATTR,
	.encode = cb_getattr_encode,
	.done = cb_getattr_done,
};

void nfs4_cb_getattr(struct nfs4_client *cl, struct nfs4_cb_getattr *g)
{
	nfs4_cb_call(&g->cb, &getattr_op, cl);
}
