/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ (RFC 1813 section 3.3.6). Cached data that go out over TCP are not copied at all (see
 * nfs/nfs_read_pages.h). Other data stays in the payload buffer that the ring read it into; the reply
 * takes over the reference to it. Without memory in the budget the request waits in the
 * pool's queue and goes on, on its worker, when a buffer comes free. The handler owns the payload
 * from the moment it gets it until xdr_put_bulk or a put.
 */
#include <errno.h>

#include "lib/pipe.h"
#include "lib/util.h"
#include "nfs/nfs_read_pages.h"
#include "nfs3/op.h"
#include "nfs3/nfs3_procs.h"

/* Result bytes besides the data: status, post_op_attr, count, eof, length of the data. */
#define READ_RESULT_SIZE (4u + NFS3_POST_OP_ATTR_SIZE + 4u + 4u + 4u)

static void encode_failure(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
}

/* Puts all of the result but the data, which are n bytes. 0, or -NFS3_ETOOLONG: they do not fit. */
static int encode_head(struct nfs3_op *op, uint32_t n)
{
	struct vfs_io *io = &op->io;
	struct xdr_out *x = &op->req->out;

	if (!rpc_reply_fits(op->req, READ_RESULT_SIZE, n))
		return -NFS3_ETOOLONG;
	nfs3_count_read(op, n);
	nfs3_put_status(op, 0);
	if (io->has_attr)
		nfs3_put_post_op_attr(x, &io->attr);
	else
		nfs3_put_attr_of(op, op->node[0]);
	xdr_put_u32(x, n);
	xdr_put_bool(x, io->eof);
	return 0;
}

static int encode_pages(struct nfs3_op *op, struct rn_pipe *pipe)
{
	int rc = encode_head(op, pipe->bytes);

	if (rc < 0)
		rn_pipe_put(pipe);
	else
		xdr_put_pipe(&op->req->out, pipe);
	return rc;
}

static int read_and_encode(struct nfs3_op *op)
{
	struct vfs_io *io = &op->io;
	const int64_t n = nfs3_op_read(op);
	int rc;

	if (n < 0) {
		encode_failure(op, (int)n);
		return (int)n;
	}
	rc = encode_head(op, (uint32_t)n);
	if (rc < 0)
		rn_payload_put(io->payload);
	else
		xdr_put_bulk(&op->req->out, io->payload, io->payload ? io->data_off : 0,
			     (uint32_t)n);
	return rc;
}

struct read_args {
	struct vfs_fh fh;
	uint64_t offset;
	uint32_t count;
};

static bool nfs3_decode_read(struct xdr_in *x, void *args)
{
	struct read_args *a = args;

	nfs3_get_fh(x, &a->fh);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return !x->err;
}

static int nfs3_read_file(struct nfs3_op *op, const struct read_args *a)
{
	struct vfs_io *io = &op->io;
	struct rn_pipe *pipe;

	io->ctx = &op->ctx;
	io->node = op->node[0];
	io->offset = a->offset;
	io->count = (uint32_t)rn_min(a->count, nfs3_op_max_io(op));
	/* No file reaches beyond the largest offset: such a READ meets the end. */
	if (io->offset > INT64_MAX)
		io->offset = INT64_MAX;
	if (io->count > INT64_MAX - io->offset)
		io->count = (uint32_t)(INT64_MAX - io->offset);
	pipe = nfs_read_pages(op->req, io);
	return pipe ? encode_pages(op, pipe) : read_and_encode(op);
}

static enum rpc_run nfs3_read(struct rpc_request *req, void *args)
{
	struct read_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, 0);
	if (rc == 0)
		rc = nfs3_op_check_shares(op, VFS_SHARE_READ);
	if (rc == 0)
		return nfs3_op_end(op, nfs3_read_file(op, a));
	encode_failure(op, rc);
	return nfs3_op_end(op, rc);
}

const struct nfs3_proc nfs3_proc_read = {
	.rpc = {
		.name = "READ",
		.decode = nfs3_decode_read,
		.args_size = sizeof(struct read_args),
		.run = nfs3_read,
		.flags = RPC_PROMPT,
	},
	/* ISDIR: not listed. */
	.errors = NFS3_ERRORS(NFS3_E_NXIO | NFS3_E_INVAL | NFS3_E_ISDIR),
};
