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

struct taking {
	struct nfs4_compound *c;
	struct vfs_ctx *ctx;
	int (*change)(void *arg);
	void *arg;
	int *rc;
};

static int take_once(void *arg)
{
	const struct taking *t = arg;
	struct vfs_conflict cf = { .holder = NULL };
	int status = NFS4_OK;

	t->ctx->in_way = &cf;
	*t->rc = t->change(t->arg);
	t->ctx->in_way = NULL;
	if (*t->rc == -RN_ESHARE)
		status = nfs4_conflict(t->c, &cf, NFS4ERR_FILE_OPEN);
	vfs_conflict_put(&cf);
	return status;
}

int nfs4_take_name(struct nfs4_compound *c, struct vfs_ctx *ctx, int (*change)(void *arg),
		   void *arg, int *rc)
{
	struct taking t = { c, ctx, change, arg, rc };
	int status;

	do
		status = nfs4_attempt(c, take_once, &t);
	while (status == NFS4_OK && nfs4_await(c, *rc));
	return status;
}
