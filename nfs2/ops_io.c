/* SPDX-License-Identifier: BSD-2-Clause */
/* READ and WRITE (RFC 1094 sections 2.2.7, 2.2.9). Bulk data go as NFSv3's do: nfs3/op_read.c, nfs3/nfs3_ops_io.c. */
#include <errno.h>

#include "lib/util.h"
#include "nfs/bulk.h"
#include "nfs2/nfs2_args.h"
#include "nfs2/nfs2_procs.h"
#include "nfs2/result.h"

/* Result bytes of READ besides the data: status, attributes, length of the data. */
#define READ_RESULT_SIZE (4u + NFS2_FATTR_SIZE + 4u)

static int encode_read(struct nfs3_op *op, uint32_t n)
{
	struct vfs_io *io = &op->io;
	struct vfs_attr attr;
	int rc = 0;

	if (!rpc_reply_fits(op->req, READ_RESULT_SIZE, n))
		return -NFS3_ETOOLONG;
	if (!io->has_attr)
		rc = vfs_getattr(&op->ctx, op->node[0], &attr);
	if (!nfs2_put_status(op, rc))
		return rc;
	nfs3_count_read(op, n);
	nfs2_put_fattr(&op->req->out, io->has_attr ? &io->attr : &attr);
	xdr_put_bulk(&op->req->out, io->payload, io->payload ? io->data_off : 0, n);
	io->payload = NULL; /* the reply's now */
	return 0;
}

struct read_args {
	struct vfs_packed_fh fh;
	uint32_t offset, count;
};

static bool nfs2_decode_read(struct xdr_in *x, void *args)
{
	struct read_args *a = args;

	nfs2_get_fh(x, &a->fh);
	a->offset = xdr_get_u32(x);
	a->count = xdr_get_u32(x);
	xdr_get_u32(x); /* totalcount, unused */
	return !x->err;
}

static int nfs2_read_file(struct nfs3_op *op, const struct read_args *a)
{
	struct vfs_io *io = &op->io;
	int64_t n;
	int rc;

	io->ctx = &op->ctx;
	io->node = op->node[0];
	io->offset = a->offset;
	io->count = (uint32_t)rn_min(a->count, NFS2_MAX_IO);
	n = nfs3_op_read(op);
	if (n < 0) {
		nfs2_put_status(op, (int)n);
		return (int)n;
	}
	rc = encode_read(op, (uint32_t)n);
	rn_payload_put(io->payload);
	return rc;
}

static enum rpc_run nfs2_read(struct rpc_request *req, void *args)
{
	struct read_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, 0);
	if (rc == 0)
		rc = nfs2_check_shares(op, VFS_SHARE_READ);
	if (rc == 0)
		return nfs3_op_end(op, nfs2_read_file(op, a));
	nfs2_put_status(op, rc);
	return nfs3_op_end(op, rc);
}

struct write_args {
	struct vfs_packed_fh fh;
	uint32_t offset;
	struct xdr_bulk data;
};

static bool nfs2_decode_write(struct xdr_in *x, void *args)
{
	struct write_args *a = args;

	nfs2_get_fh(x, &a->fh);
	xdr_get_u32(x); /* beginoffset, unused */
	a->offset = xdr_get_u32(x);
	xdr_get_u32(x); /* totalcount, unused */
	xdr_get_bulk(x, NFS2_MAX_IO, &a->data);
	return !x->err;
}

static int nfs2_prepare_write(struct nfs3_op *op, const struct write_args *a)
{
	struct vfs_io *io = &op->io;
	int rc = nfs3_op_open_packed(op, &a->fh, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs2_check_shares(op, VFS_SHARE_WRITE);
	if (rc < 0)
		return rc;
	if (a->data.len > NFS2_SIZE_MAX - a->offset)
		return -EFBIG;
	io->ctx = &op->ctx;
	io->node = op->node[0];
	io->offset = a->offset;
	io->stable = VFS_FILE_SYNC;
	nfs_bulk_to_write(io, &a->data, a->data.len);
	return 0;
}

/* A WRITE that was cut short (no space, say) is a failure, for which NFSv2 has no other word: its client takes
 * all of the data for written. */
static int nfs2_write_all(struct nfs3_op *op)
{
	const int64_t n = nfs3_op_write(op);

	if (n < 0)
		return (int)n;
	nfs3_count_written(op, (uint64_t)n);
	return n < (int64_t)op->io.count ? -ENOSPC : 0;
}

static enum rpc_run nfs2_write(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_prepare_write(op, args);
	if (rc < 0) {
		nfs2_put_status(op, rc);
		return nfs3_op_end(op, rc);
	}
	return nfs3_op_end(op, nfs2_put_attrstat(op, nfs2_write_all(op)));
}

const struct rpc_proc nfs2_proc_read = {
	.name = "READ",
	.decode = nfs2_decode_read,
	.args_size = sizeof(struct read_args),
	.run = nfs2_read,
};

const struct rpc_proc nfs2_proc_write = {
	.name = "WRITE",
	.decode = nfs2_decode_write,
	.args_size = sizeof(struct write_args),
	.run = nfs2_write,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4 + NFS2_FATTR_SIZE,
};
