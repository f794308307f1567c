/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COPY (RFC 7862 section 15.2), within this server and from others. Within, a copy of at most
 * VFS_COPY_MAX bytes is synchronous. A longer one is asynchronous (nfs4/data/nfs4_copies.h) if the client
 * allows that (ca_synchronous) and can be called back, and if both files are open for it: a copy ends
 * with the opens that it relies on. Otherwise it ends after VFS_COPY_MAX bytes, and the client asks
 * for the rest.
 *
 * COPY that names a source server is asynchronous, or NFS4ERR_OFFLOAD_DENIED. After NFS4ERR_NOTSUPP,
 * which is not in the operation's table, Linux's client would send no COPY to that mount any more.
 */
#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_address.h"
#include "nfs4/data/netloc.h"
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"

struct copy_args {
	struct nfs4_two_files files;
	bool between_servers, synchronous;
	struct sockaddr_in6 source; /* a server that the settings name, or of family 0 */
	uint64_t verifier;	    /* read before anything is copied */
};

static void decode_copy(struct nfs4_compound *c, void *args)
{
	struct copy_args *a = args;
	uint32_t servers;

	nfs4_get_two_files(c->in, &a->files);
	xdr_get_bool(c->in); /* ca_consecutive: it always is */
	a->synchronous = xdr_get_bool(c->in);
	servers = xdr_get_u32(c->in);
	a->between_servers = servers > 0;
	for (uint32_t i = 0; i < servers && !c->in->err; i++) {
		struct sockaddr_in6 addr;

		if (nfs4_get_netloc(c->in, false, &addr) && a->source.sin6_family == 0 &&
		    nfs4_is_copy_server(c->server, &addr, true))
			a->source = addr;
	}
}

/* sid: of an asynchronous copy; or NULL, and n bytes were copied. */
static void op_copy_put_result(struct nfs4_compound *c, const struct copy_args *a,
			       const struct nfs4_stateid *sid, int64_t n)
{
	const struct vfs_copy *copy = &a->files.copy;

	xdr_put_u32(c->out, sid ? 1 : 0); /* wr_callback_id */
	if (sid)
		nfs4_put_stateid(c->out, sid);
	xdr_put_u64(c->out, sid ? 0 : (uint64_t)n);
	xdr_put_u32(c->out, copy->stable && !sid ? VFS_FILE_SYNC : VFS_UNSTABLE);
	xdr_put_u64(c->out, a->verifier); /* as WRITE puts it */
	xdr_put_bool(c->out, true);	  /* cr_consecutive */
	xdr_put_bool(c->out, !sid);	  /* cr_synchronous */
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

/* RFC 7862 section 15.2.3: a copy between servers cannot be synchronous here. */
static int deny_synchronous(struct nfs4_compound *c)
{
	xdr_put_bool(c->out, true);  /* cr_consecutive */
	xdr_put_bool(c->out, false); /* cr_synchronous */
	c->keep_body = true;
	return NFS4ERR_OFFLOAD_NO_REQS;
}

/* Bytes to copy at most; a count of 0 means up to the end of the source. False: the range is none of a
 * file. */
static bool get_range(const struct vfs_copy *copy, uint64_t *count)
{
	const uint64_t from = copy->from.offset, to = copy->offset;

	if (from > INT64_MAX || to > INT64_MAX)
		return false;
	*count = rn_min(INT64_MAX - from, INT64_MAX - to);
	if (copy->count > *count)
		return false;
	*count = copy->count > 0 ? copy->count : *count;
	return *count > 0;
}

/* Only COPY_NOTIFY's stateids may be used at the source (RFC 7862 section 4.6.2), whose seqid is not 0
 * (section 4.8). A special one would have this server read as a client of the source's own. */
static bool may_be_of_copy_notify(const struct nfs4_stateid *sid)
{
	return sid->seqid != 0 && !nfs4_stateid_is_special(sid);
}

static int start_remote(struct nfs4_compound *c, struct copy_args *a, struct nfs4_stateid *sid)
{
	struct nfs4_two_files *t = &a->files;
	struct nfs4_remote_file file = { .route.to = a->source,
					 .fh = c->saved.fh,
					 .sid = t->from_sid };
	struct nfs4_copy_order order = { .files = t, .verifier = a->verifier, .remote = &file };

	if (!get_range(&t->copy, &order.count))
		return NFS4ERR_INVAL;
	nfs4_map_address(&c->req->conn->local, &file.route.from);
	if (!c->req->server->background || !c->server->cfg.dialer.dial || !t->to.state ||
	    !nfs4_cb_works(c->session) || !nfs4_copy_start(c, &order, sid))
		return NFS4ERR_OFFLOAD_DENIED;
	return NFS4_OK;
}

/*
 * A copy from another server, which the settings must name: no client can make this server connect to
 * any other. After NFS4ERR_OFFLOAD_DENIED clients copy by themselves.
 */
static int run_between_servers(struct nfs4_compound *c, struct copy_args *a)
{
	struct nfs4_stateid sid;
	int status;

	if (a->source.sin6_family == 0 || c->saved.kind == NFS4_PSEUDO)
		return NFS4ERR_OFFLOAD_DENIED;
	if (a->synchronous)
		return deny_synchronous(c);
	if (!may_be_of_copy_notify(&a->files.from_sid))
		return NFS4ERR_BAD_STATEID;
	status = nfs4_destination_begin(c, &a->files);
	if (status == NFS4_OK) {
		a->verifier = vfs_write_verifier(c->current.ctx.exp);
		status = start_remote(c, a, &sid);
	}
	nfs4_two_files_end(&a->files);
	if (status == NFS4_OK)
		op_copy_put_result(c, a, &sid, 0);
	nfs4_place_clear(&c->saved); /* no other operation can use it */
	return status;
}

/* True if the saved filehandle is another server's. */
static bool is_from_elsewhere(const void *args)
{
	const struct copy_args *a = args;

	return a->source.sin6_family != 0;
}

static int run_copy(struct nfs4_compound *c, void *args)
{
	struct copy_args *a = args;
	struct nfs4_stateid sid;
	int status;
	int64_t n;

	if (a->between_servers)
		return run_between_servers(c, a);
	status = nfs4_two_files_begin(c, &a->files);
	if (status != NFS4_OK)
		return status;
	a->files.copy.account = rpc_request_account(c->req);
	a->verifier = vfs_write_verifier(c->current.ctx.exp);
	if (start_asynchronous(c, a, &sid)) {
		nfs4_two_files_end(&a->files);
		op_copy_put_result(c, a, &sid, 0);
		return NFS4_OK;
	}
	do
		n = vfs_copy(&a->files.copy);
	while (n < 0 && nfs4_await(c, (int)n));
	status = nfs4_data_status(c, n < 0 ? (int)n : 0);
	nfs4_two_files_end(&a->files);
	if (status == NFS4_OK)
		op_copy_put_result(c, a, NULL, n);
	return status;
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
	.saved_is_foreign = is_from_elsewhere,
};
