/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COPY (RFC 7862 section 15.2) within this server. A copy of at most VFS_COPY_MAX bytes is
 * synchronous. A longer one is asynchronous (nfs4/data/copies.h) if the client allows that
 * (ca_synchronous) and can be called back, and if both files are open for it: a copy ends with the
 * opens that it relies on. Otherwise it ends after VFS_COPY_MAX bytes, and the client asks for the
 * rest.
 *
 * COPY that names a source server is NFS4ERR_OFFLOAD_DENIED. After NFS4ERR_NOTSUPP, which is not in
 * the operation's table, Linux's client would send no COPY to that mount any more.
 */
#include "nfs4/client/cb_path.h"
#include "nfs4/data/copy.h"
#include "nfs4/data/status.h"

enum netloc_type4 { NL4_NAME = 1, NL4_URL = 2, NL4_NETADDR = 3 };

struct copy_args {
	struct nfs4_two_files files;
	bool between_servers, synchronous;
	uint64_t verifier; /* read before anything is copied */
};

static void skip_netloc(struct xdr_in *in)
{
	switch (xdr_get_u32(in)) {
	case NL4_NETADDR:
		xdr_skip_opaque(in, UINT32_MAX); /* the network id; the address follows */
		break;
	case NL4_NAME:
	case NL4_URL:
		break;
	default:
		in->err = true;
	}
	xdr_skip_opaque(in, UINT32_MAX);
}

static void decode_copy(struct nfs4_compound *c, void *args)
{
	struct copy_args *a = args;
	uint32_t servers;

	nfs4_get_two_files(c->in, &a->files);
	xdr_get_bool(c->in); /* ca_consecutive: it always is */
	a->synchronous = xdr_get_bool(c->in);
	servers = xdr_get_u32(c->in);
	a->between_servers = servers > 0;
	for (uint32_t i = 0; i < servers && !c->in->err; i++)
		skip_netloc(c->in);
}

/* sid: of an asynchronous copy; or NULL. */
static void put_result(struct nfs4_compound *c, const struct copy_args *a,
		       const struct nfs4_stateid *sid)
{
	const struct vfs_copy *copy = &a->files.copy;

	xdr_put_u32(c->out, sid ? 1 : 0); /* wr_callback_id */
	if (sid)
		nfs4_put_stateid(c->out, sid);
	xdr_put_u64(c->out, sid ? 0 : (uint64_t)copy->result);
	xdr_put_u32(c->out, copy->stable && !sid ? VFS_FILE_SYNC : VFS_UNSTABLE);
	xdr_put_u64(c->out, a->verifier); /* as WRITE puts it */
	xdr_put_bool(c->out, true);	  /* cr_consecutive */
	xdr_put_bool(c->out, !sid);	  /* cr_synchronous */
}

static void copy_done(struct vfs_copy *copy)
{
	struct nfs4_compound *c = copy->arg;
	struct copy_args *a = c->args;
	int status = nfs4_data_status(c, copy->result < 0 ? (int)copy->result : 0);

	nfs4_two_files_end(&a->files);
	if (status == NFS4_OK)
		put_result(c, a, NULL);
	nfs4_compound_resume(c, status);
}

/* An error is left to the synchronous copy. */
static bool start_asynchronous(struct nfs4_compound *c, const struct copy_args *a,
			       struct nfs4_stateid *sid)
{
	const struct nfs4_two_files *t = &a->files;
	struct nfs4_copy_order order = { .files = t, .verifier = a->verifier };

	if (a->synchronous || !c->req->server->background || !t->from.state || !t->to.state)
		return false;
	if ((t->copy.count > 0 && t->copy.count <= VFS_COPY_MAX) || !nfs4_cb_works(c->session))
		return false;
	return vfs_copy_measure(&t->copy, &order.count) == 0 && order.count > VFS_COPY_MAX &&
	       nfs4_copy_start(c, &order, sid);
}

static int run_copy(struct nfs4_compound *c, void *args)
{
	struct copy_args *a = args;
	struct nfs4_stateid sid;
	int status =
		a->between_servers ? NFS4ERR_OFFLOAD_DENIED : nfs4_two_files_begin(c, &a->files);

	if (status != NFS4_OK)
		return status;
	a->files.copy.account = rpc_request_account(c->req);
	a->files.copy.done = copy_done;
	a->files.copy.arg = c;
	a->verifier = vfs_write_verifier(c->current.ctx.exp);
	if (start_asynchronous(c, a, &sid)) {
		nfs4_two_files_end(&a->files);
		put_result(c, a, &sid);
		return NFS4_OK;
	}
	vfs_copy(&a->files.copy);
	return NFS4_PENDING;
}

const struct nfs4_op nfs4_op_copy = {
	.name = "COPY",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH | NFS4_NEEDS_SAVED_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = 4 + NFS4_STATEID_SIZE + 8 + 4 + NFS4_VERIFIER_SIZE + 4 + 4,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
			      NFS4_E_FBIG | NFS4_E_NOSPC | NFS4_E_ROFS | NFS4_E_NOTSUPP),
	.args_size = sizeof(struct copy_args),
	.decode = decode_copy,
	.run = run_copy,
};
