/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/names/nfs4_name.h"

#include <string.h>

#include "lib/util.h"
#include "nfs/nested.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"

void nfs4_get_name(struct xdr_in *x, struct nfs4_name *out)
{
	struct xdr_in ahead = *x;

	out->len = xdr_get_u32(&ahead);
	out->bytes = "";
	if (ahead.err || out->len <= NFS4_NAME_MAX) {
		out->bytes = (const char *)xdr_get_opaque(x, NFS4_NAME_MAX, &out->len);
		return;
	}
	*x = ahead;
	xdr_skip(x, (size_t)out->len + rn_xdr_pad(out->len));
}

int nfs4_name_check(const struct nfs4_name *name)
{
	if (name->len == 0)
		return NFS4ERR_INVAL;
	if (name->len > NFS4_NAME_MAX)
		return NFS4ERR_NAMETOOLONG;
	if (memchr(name->bytes, '\0', name->len) || memchr(name->bytes, '/', name->len))
		return NFS4ERR_BADCHAR;
	if (name->bytes[0] == '.' && (name->len == 1 || (name->len == 2 && name->bytes[1] == '.')))
		return NFS4ERR_BADNAME;
	return NFS4_OK;
}

int nfs4_name_check_boundary(struct nfs4_compound *c, struct vfs_node *dir,
			     const struct nfs4_name *name)
{
	const struct nfs_entry e = { .name = name->bytes, .len = name->len };

	return nfs_check_boundary(&c->server->cfg.exports, &c->current.ctx, dir, &e,
				  (const struct sockaddr *)&c->req->conn->peer);
}

void nfs4_take_begin(struct vfs_ctx *ctx, struct vfs_conflict *cf)
{
	*cf = (struct vfs_conflict){ .holder = NULL };
	ctx->in_way = cf;
}

bool nfs4_take_again(struct nfs4_compound *c, struct vfs_ctx *ctx, int rc, int *status)
{
	struct vfs_conflict *cf = ctx->in_way;

	ctx->in_way = NULL;
	*status = rc == -RN_ESHARE ? nfs4_conflict(c, cf, NFS4ERR_FILE_OPEN) : NFS4_OK;
	vfs_conflict_put(cf);
	return *status == NFS4_OK ? nfs4_await(c, rc) : nfs4_try_again(c, *status);
}
