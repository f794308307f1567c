/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COPY_NOTIFY (RFC 7862 section 15.3): lets another server read a file for a copy. Only servers that
 * the settings name; if they name none, NFS4ERR_NOTSUPP. Linux's client then does not ask again, and
 * copies by itself.
 */
#include "nfs4/data/netloc.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/copy_source.h"
#include "nfs4/state/state.h"
#include "nfs4/state/stateid_check.h"

struct copy_notify_args {
	struct nfs4_stateid sid;
	bool is_address;
	struct sockaddr_in6 destination;
};

static void decode_copy_notify(struct nfs4_compound *c, void *args)
{
	struct copy_notify_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
	a->is_address = nfs4_get_netloc(c->in, true, &a->destination);
}

static void nfs4_copy_notify_put_result(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	xdr_put_u64(c->out, c->server->cfg.lease_seconds); /* cnr_lease_time */
	xdr_put_u32(c->out, 0);
	nfs4_put_stateid(c->out, sid);
	xdr_put_u32(c->out, 1); /* cnr_source_server */
	nfs4_put_own_netloc(c, c->out);
}

/* The right to read is checked here, for the user: the other server reads as that user's agent. */
static int nfs4_copy_notify_begin(struct nfs4_compound *c, const struct copy_notify_args *a,
				  struct nfs4_io_right *r)
{
	int status = nfs4_io_begin(c, &a->sid, NFS4_IO_READ, r);

	if (status == NFS4_OK && !r->state)
		status = NFS4ERR_BAD_STATEID; /* a special one is no open */
	if (status == NFS4_OK && !r->opened)
		status = nfs4_data_status(c, vfs_may_read(&c->current.ctx, c->current.node));
	return status;
}

static int run_copy_notify(struct nfs4_compound *c, void *args)
{
	const struct copy_notify_args *a = args;
	struct nfs4_io_right right = { .opened = false };
	struct nfs4_stateid sid;
	int status;

	if (!nfs4_copies_between_servers(c->server))
		return NFS4ERR_NOTSUPP;
	if (!a->is_address || !nfs4_is_copy_server(c->server, &a->destination, false))
		return NFS4ERR_ACCESS;
	status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);
	if (status == NFS4ERR_ROFS)
		status = NFS4ERR_WRONG_TYPE;
	if (status == NFS4_OK)
		status = nfs4_copy_notify_begin(c, a, &right);
	if (status == NFS4_OK)
		status = nfs4_copy_source_add(c, right.state, &a->destination, &sid);
	nfs4_io_end(&right);
	if (status == NFS4_OK)
		nfs4_copy_notify_put_result(c, &sid);
	return status;
}

const struct nfs4_op nfs4_op_copy_notify = {
	.name = "COPY_NOTIFY",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = 8 + 4 + NFS4_STATEID_SIZE + 4 + NFS4_NETLOC_MAX,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
			      NFS4_E_NOTSUPP),
	.args_size = sizeof(struct copy_notify_args),
	.decode = decode_copy_notify,
	.run = run_copy_notify,
};
