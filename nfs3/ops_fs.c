/* SPDX-License-Identifier: BSD-2-Clause */
/* FSSTAT, FSINFO and PATHCONF (RFC 1813 sections 3.3.18 to 3.3.20). */
#include "nfs3/op.h"
#include "nfs3/nfs3_procs.h"

#define IO_MULTIPLE 4096u
#define NS_PER_SECOND 1000000000u

static enum rpc_run proc_fsstat(struct rpc_request *req, void *args)
{
	struct nfs3_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct xdr_out *x = &req->out;
	struct vfs_statfs st;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_MOUNT);
	if (rc == 0)
		rc = vfs_statfs(&op->ctx, op->node[0], &st);
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
	if (rc == 0) {
		xdr_put_u64(x, st.total_bytes);
		xdr_put_u64(x, st.free_bytes);
		xdr_put_u64(x, st.avail_bytes);
		xdr_put_u64(x, st.total_files);
		xdr_put_u64(x, st.free_files);
		xdr_put_u64(x, st.avail_files);
		xdr_put_u32(x, 0); /* invarsec: may change at any time */
	}
	return nfs3_op_end(op, rc);
}

static uint32_t properties(const struct vfs_statfs *st)
{
	return (st->links ? FSF3_LINK | FSF3_SYMLINK : 0) | FSF3_HOMOGENEOUS | FSF3_CANSETTIME;
}

static enum rpc_run proc_fsinfo(struct rpc_request *req, void *args)
{
	struct nfs3_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct xdr_out *x = &req->out;
	struct vfs_statfs st;
	uint32_t max_io;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	max_io = nfs3_op_max_io(op);
	rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_MOUNT);
	if (rc == 0)
		rc = vfs_statfs(&op->ctx, op->node[0], &st);
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
	if (rc == 0) {
		xdr_put_u32(x, max_io); /* rtmax, rtpref, rtmult */
		xdr_put_u32(x, max_io);
		xdr_put_u32(x, IO_MULTIPLE);
		xdr_put_u32(x, max_io); /* wtmax, wtpref, wtmult */
		xdr_put_u32(x, max_io);
		xdr_put_u32(x, IO_MULTIPLE);
		/* Small, because the Linux client gives up READDIRPLUS for a directory that takes
		 * many calls, and then asks for each entry by LOOKUP. */
		xdr_put_u32(x, max_io);			    /* dtpref */
		xdr_put_u64(x, st.size_max);		    /* maxfilesize */
		xdr_put_u32(x, st.time_ns / NS_PER_SECOND); /* time_delta */
		xdr_put_u32(x, st.time_ns % NS_PER_SECOND);
		xdr_put_u32(x, properties(&st));
	}
	return nfs3_op_end(op, rc);
}

static enum rpc_run nfs3_pathconf(struct rpc_request *req, void *args)
{
	struct nfs3_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct xdr_out *x = &req->out;
	struct vfs_statfs st;
	bool folds = false;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_MOUNT);
	if (rc == 0)
		rc = vfs_statfs(&op->ctx, op->node[0], &st);
	if (rc == 0)
		folds = vfs_folds_case(&op->ctx, op->node[0]);
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
	if (rc == 0) {
		xdr_put_u32(x, st.link_max);
		xdr_put_u32(x, st.name_max);
		xdr_put_bool(x, true); /* no_trunc */
		xdr_put_bool(x, true); /* chown_restricted */
		xdr_put_bool(x, folds);
		xdr_put_bool(x, true); /* case_preserving */
	}
	return nfs3_op_end(op, rc);
}

const struct nfs3_proc nfs3_proc_fsstat = {
	.rpc = {
		.name = "FSSTAT",
		.decode = nfs3_decode_fh_args,
		.args_size = sizeof(struct nfs3_fh_args),
		.run = proc_fsstat,
	},
	.errors = NFS3_ERRORS(0),
};

const struct nfs3_proc nfs3_proc_fsinfo = {
	.rpc = {
		.name = "FSINFO",
		.decode = nfs3_decode_fh_args,
		.args_size = sizeof(struct nfs3_fh_args),
		.run = proc_fsinfo,
	},
	.errors = NFS3_ERRORS(0),
};

const struct nfs3_proc nfs3_proc_pathconf = {
	.rpc = {
		.name = "PATHCONF",
		.decode = nfs3_decode_fh_args,
		.args_size = sizeof(struct nfs3_fh_args),
		.run = nfs3_pathconf,
	},
	.errors = NFS3_ERRORS(0),
};
