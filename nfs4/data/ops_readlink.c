/* SPDX-License-Identifier: BSD-2-Clause */
/* READLINK (RFC 8881 section 18.24). The text is a bulk item: it goes by a Write chunk if the
 * client provides one (RFC 8267 section 6.1). */
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs4/data/data_status.h"

#define READLINK_HEAD 4u /* bytes of the length word */

/* The object must be a symbolic link. For others, an error of the place itself comes first; then the
 * error by minor version, as RFC 7530 has no NFS4ERR_WRONG_TYPE. */
static int nfs4_readlink_check(const struct nfs4_compound *c)
{
	const struct nfs4_place *p = &c->current;
	int status;

	if (p->kind == NFS4_FILE && p->type == S_IFLNK)
		return nfs4_need(c, p, NFS4_NEED_FILE);
	status = p->kind == NFS4_FILE ? nfs4_need(c, p, NFS4_NEED_FILE) : NFS4_OK;
	if (status != NFS4_OK)
		return status;
	return c->minor == 0 ? NFS4ERR_INVAL : NFS4ERR_WRONG_TYPE;
}

static int run_readlink(struct nfs4_compound *c, void *args)
{
	struct rpc_request *req = c->req;
	struct rn_payload *text;
	int status = nfs4_readlink_check(c);
	int rc;

	(void)args;
	if (status != NFS4_OK)
		return status;
	text = rn_payload_get_for(req->server->pool, VFS_PATH_MAX, rpc_request_account(req));
	if (!text)
		return NFS4ERR_DELAY;
	rc = vfs_readlink(&c->current.ctx, c->current.node, (char *)text->data, VFS_PATH_MAX);
	if (rc < 0)
		status = nfs4_data_status(c, rc);
	else if ((uint32_t)rc > nfs4_bulk_room(c, READLINK_HEAD))
		status = nfs4_reply_too_big(c,
					    READLINK_HEAD + (size_t)rc + rn_xdr_pad((uint32_t)rc));
	if (status != NFS4_OK)
		rn_payload_put(text);
	else
		xdr_put_bulk(c->out, text, 0, (uint32_t)rc);
	return status;
}

const struct nfs4_op nfs4_op_readlink = {
	.name = "READLINK",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = READLINK_HEAD,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL,
				       NFS4_E_ISDIR | NFS4_E_NOTSUPP, 0),
	.shape = NFS4_SHAPE(0, 0, 0),
	.run = run_readlink,
};
