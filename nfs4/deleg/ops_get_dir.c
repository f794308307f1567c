/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GET_DIR_DELEGATION (RFC 8881 sections 10.9 and 18.39). No notifications are sent: the delegation is
 * recalled at the first change by somebody else. No wants are registered.
 *
 * Section 18.39.3 has NFS4ERR_DIRDELEG_UNAVAIL for a refusal, and GDD4_UNAVAIL for a client that has
 * the delegation already. But an error ends the COMPOUND, in which clients put the operation beside
 * others. So as in nfsd a refusal is GDD4_UNAVAIL, which the XDR allows, too; a want that is not
 * registered is the error.
 */
#include <errno.h>

#include "nfs4/deleg/grant.h"
#include "nfs4/state/check.h"

enum { GDD4_OK = 0, GDD4_UNAVAIL = 1 };

/* status, cookie verifier, stateid, three empty bitmaps */
#define REPLY_MAX (4u + 8u + NFS4_STATEID_SIZE + 3u * 4u)

struct get_dir_args {
	bool wants;	/* to be told when there is one */
	bool bad_delay; /* no valid nfstime4 */
};

static void get_delay(struct xdr_in *x, struct get_dir_args *a)
{
	xdr_get_u64(x); /* seconds */
	if (xdr_get_u32(x) >= 1000000000u)
		a->bad_delay = true;
}

/* Nothing that a bitmap4 asks for is done. */
static void skip_bitmap(struct xdr_in *x)
{
	const size_t words = xdr_get_u32(x);

	xdr_skip(x, 4 * words);
}

static void decode_get_dir(struct nfs4_compound *c, void *args)
{
	struct get_dir_args *a = args;

	a->wants = xdr_get_bool(c->in);
	skip_bitmap(c->in); /* notifications */
	get_delay(c->in, a);
	get_delay(c->in, a);
	skip_bitmap(c->in); /* attributes of entries */
	skip_bitmap(c->in); /* of the directory */
}

static int check(struct nfs4_compound *c, const struct get_dir_args *a)
{
	struct nfs4_place *p = &c->current;
	unsigned granted;
	int status = nfs4_need(c, p, NFS4_NEED_DIR);

	if (status == NFS4_OK && a->bad_delay)
		status = NFS4ERR_INVAL;
	if (status != NFS4_OK || p->kind == NFS4_PSEUDO)
		return status;
	status = nfs4_status(c->minor, vfs_access(&p->ctx, p->node, VFS_MAY_READ, &granted, NULL));
	return status == NFS4_OK && !(granted & VFS_MAY_READ) ? NFS4ERR_ACCESS : status;
}

/* 0 or -errno, as nfs4_deleg_give(). The pseudo file system changes with reloads alone, and has no
 * delegations. */
static int give(struct nfs4_compound *c, struct nfs4_stateid *sid)
{
	const struct nfs4_deleg_request r = { .place = &c->current };

	if (c->current.kind == NFS4_PSEUDO || !nfs4_deleg_is_available(c))
		return -EAGAIN;
	return nfs4_deleg_give(c, &r, sid);
}

static void put_delegation(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct xdr_out *x = c->out;

	xdr_put_u32(x, GDD4_OK);
	xdr_put_u64(x, 0); /* the cookie verifier of READDIR, which never changes */
	nfs4_put_stateid(x, sid);
	xdr_put_u32(x, 0); /* no notifications */
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
	nfs4_set_current_stateid(c, sid);
}

static int run_get_dir(struct nfs4_compound *c, void *args)
{
	const struct get_dir_args *a = args;
	struct nfs4_stateid sid;
	int status = check(c, a), rc;

	if (status != NFS4_OK)
		return status;
	rc = give(c, &sid);
	if (rc == 0) {
		put_delegation(c, &sid);
		return NFS4_OK;
	}
	if (a->wants && rc != -EALREADY)
		return NFS4ERR_DIRDELEG_UNAVAIL;
	xdr_put_u32(c->out, GDD4_UNAVAIL);
	xdr_put_bool(c->out, false); /* the client will not be told when there is one */
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_get_dir_delegation = {
	.name = "GET_DIR_DELEGATION",
	.minors = { 1, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = REPLY_MAX,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL | NFS4_E_NOTDIR |
			      NFS4_E_NOTSUPP),
	.args_size = sizeof(struct get_dir_args),
	.decode = decode_get_dir,
	.run = run_get_dir,
};
