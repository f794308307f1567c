/* SPDX-License-Identifier: BSD-2-Clause */
/* OFFLOAD_CANCEL and OFFLOAD_STATUS (RFC 7862 sections 15.8 and 15.9) of asynchronous copies. OFFLOAD_CANCEL also ends what a COPY_NOTIFY allows. */
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/state/copy_source.h"

struct offload_args {
	struct nfs4_stateid sid;
};

static void decode_offload(struct nfs4_compound *c, void *args)
{
	struct offload_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
}

/* The answer waits for the piece under way, as nfsd's does: nothing is written after it. */
static int run_offload_cancel(struct nfs4_compound *c, void *args)
{
	const struct offload_args *a = args;

	return nfs4_copy_source_cancel(c, &a->sid) ? NFS4_OK : nfs4_copy_cancel(c, &a->sid);
}

static int run_offload_status(struct nfs4_compound *c, void *args)
{
	const struct offload_args *a = args;
	struct nfs4_copy_state is;
	int status = nfs4_copy_look(c, &a->sid, &is);

	if (status != NFS4_OK)
		return status;
	xdr_put_u64(c->out, is.copied);
	xdr_put_u32(c->out, is.ended ? 1 : 0); /* osr_complete */
	if (is.ended)
		xdr_put_u32(c->out, is.status);
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_offload_cancel = {
	.name = "OFFLOAD_CANCEL",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct offload_args),
	.decode = decode_offload,
	.run = run_offload_cancel,
};

const struct nfs4_op nfs4_op_offload_status = {
	.name = "OFFLOAD_STATUS",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = 8 + 4 + 4,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct offload_args),
	.decode = decode_offload,
	.run = run_offload_status,
};
