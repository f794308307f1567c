/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ, WRITE and COMMIT.
 *
 * READ (RFC 1813 section 3.3.6). Cached data that go out over TCP are not copied at all (see
 * nfs/bulk.h). Other data stays in the payload buffer that the ring read it into; the reply
 * takes over the reference to it. Without memory in the budget the request waits in the
 * pool's queue and goes on, on its worker, when a buffer comes free. The handler owns the payload
 * from the moment it gets it until xdr_put_bulk or a put.
 */
#include <errno.h>

#include "lib/pipe.h"
#include "lib/util.h"
#include "nfs/bulk.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/op.h"
#include "rpc/message.h"

/* Result bytes besides attributes and data: status, count, eof, length of the data; NFSv2's has no count and eof. */
#define READ_RESULT_SIZE (4u + 4u + 4u + 4u)
#define NFS2_READ_RESULT_SIZE (4u + 4u)

static void encode_failure(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
}

/* Puts the head of the result for a dialect (NFSv2). There, READ fails if the attributes cannot be had. */
static int encode_dialect_head(struct nfs3_op *op, uint32_t n)
{
	struct vfs_io *io = &op->io;
	int rc = 0;

	if (!io->has_attr)
		rc = vfs_getattr(&op->ctx, op->node[0], &io->attr);
	if (!nfs3_put_status(op, rc))
		return rc;
	nfs3_count_read(op, n);
	nfs3_put_attr(op, &io->attr);
	return 0;
}

/* Puts all of the result but the data, which are n bytes. 0; -NFS3_ETOOLONG: they do not fit; or the failure that it put. */
static int encode_head(struct nfs3_op *op, uint32_t n)
{
	const uint32_t fixed = op->dialect ? NFS2_READ_RESULT_SIZE : READ_RESULT_SIZE;
	struct vfs_io *io = &op->io;
	struct xdr_out *x = &op->req->out;

	if (!rpc_reply_fits(op->req, fixed + nfs3_attr_size(op), n))
		return -NFS3_ETOOLONG;
	if (op->dialect)
		return encode_dialect_head(op, n);
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

static bool nfs3_decode_read(struct xdr_in *x, void *args)
{
	struct nfs3_read_args *a = args;

	nfs3_get_fh(x, &a->fh);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return !x->err;
}

static int nfs3_read_file(struct nfs3_op *op, const struct nfs3_read_args *a)
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

enum rpc_run nfs3_read(struct rpc_request *req, void *args)
{
	struct nfs3_read_args *a = args;
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
		.args_size = sizeof(struct nfs3_read_args),
		.run = nfs3_read,
		.flags = RPC_EVENT_THREAD,
	},
	/* ISDIR: not listed. */
	.errors = NFS3_ERRORS(NFS3_E_NXIO | NFS3_E_INVAL | NFS3_E_ISDIR),
};

/*
 * WRITE and COMMIT (RFC 1813 sections 3.3.7, 3.3.21). The data is written from where the transport
 * put it: the request owns those buffers, the ring only borrows them.
 *
 * The write verifier of a WRITE is the one from before it, that of a COMMIT the one from after: if
 * data may have been lost anywhere between, the two differ and the client writes again.
 */

/* n: bytes written, or -errno. */
static void encode_write(struct nfs3_op *op, int64_t n)
{
	struct xdr_out *x = &op->req->out;
	int rc = n < 0 ? (int)n : 0;

	if (n >= 0)
		nfs3_count_written(op, (uint64_t)n);
	if (op->dialect) {
		/* A client of NFSv2 takes all of the data for written. */
		if (n >= 0 && n < (int64_t)op->io.count)
			rc = -ENOSPC;
		op->dialect->put_changed(op, rc);
		return;
	}
	nfs3_put_status(op, rc);
	nfs3_put_wcc_of(op, 0);
	if (n < 0)
		return;
	xdr_put_u32(x, (uint32_t)n);
	xdr_put_u32(x, op->io.stable);
	xdr_put_u64(x, op->verifier);
}

/* count is the number of bytes to write; the data may be longer, never shorter (RFC 1813 section
 * 3.3.7). */
static bool nfs3_decode_write(struct xdr_in *x, void *args)
{
	struct nfs3_write_args *a = args;

	nfs3_get_fh(x, &a->fh);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	a->stable = xdr_get_u32(x);
	xdr_get_bulk(x, NFS3_MAX_IO, &a->data);
	return !x->err && a->stable <= 2 && a->data.len >= a->count;
}

size_t nfs3_bulk_offset(const uint8_t *head, size_t len)
{
	const struct rpc_seg seg = { .base = (uint8_t *)head, .len = (uint32_t)len };
	struct rpc_peek call;
	struct xdr_in x;

	if (len > UINT32_MAX)
		return 0;
	xdr_in_init(&x, &seg, 1, NULL);
	if (!rpc_peek_call(&x, &call) || call.prog != NFS_PROGRAM || call.vers != NFS3_VERSION ||
	    call.proc != NFSPROC3_WRITE)
		return 0;
	xdr_skip_opaque(&x, NFS3_FHSIZE);
	xdr_skip(&x, 8 + 4 + 4 + 4); /* offset, count, stable, length of the data */
	return x.err ? 0 : xdr_in_pos(&x);
}

static int nfs3_prepare_write(struct nfs3_op *op, const struct nfs3_write_args *a)
{
	const uint64_t size_max = op->dialect ? op->dialect->size_max : INT64_MAX;
	struct vfs_io *io = &op->io;
	uint32_t count = (uint32_t)rn_min(a->count, nfs3_op_max_io(op));
	int rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_op_check_shares(op, VFS_SHARE_WRITE);
	if (rc < 0)
		return rc;
	if (a->offset > size_max || count > size_max - a->offset)
		return -EFBIG;
	io->ctx = &op->ctx;
	io->node = op->node[0];
	io->offset = a->offset;
	io->stable = (enum vfs_stable)a->stable;
	nfs_bulk_to_write(io, &a->data, count);
	op->verifier = vfs_write_verifier(op->ctx.exp);
	return 0;
}

enum rpc_run nfs3_write(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int64_t n;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	n = nfs3_prepare_write(op, args);
	if (n == 0)
		n = nfs3_op_write(op);
	encode_write(op, n);
	return nfs3_op_end(op, n < 0 ? (int)n : 0);
}

static void encode_commit(struct nfs3_op *op, int rc)
{
	bool ok = nfs3_put_status(op, rc);

	nfs3_put_wcc_of(op, 0);
	if (ok)
		xdr_put_u64(&op->req->out, vfs_write_verifier(op->ctx.exp));
}

struct commit_args {
	struct vfs_fh fh;
	uint64_t offset;
	uint32_t count;
};

static bool nfs3_decode_commit(struct xdr_in *x, void *args)
{
	struct commit_args *a = args;

	nfs3_get_fh(x, &a->fh);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return !x->err;
}

static enum rpc_run proc_commit(struct rpc_request *req, void *args)
{
	struct commit_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_io *io;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, 0);
	if (rc < 0) {
		encode_commit(op, rc);
		return nfs3_op_end(op, rc);
	}
	io = &op->io;
	io->ctx = &op->ctx;
	io->node = op->node[0];
	/* A range that no file has may as well be the whole file. */
	if (a->offset <= INT64_MAX && a->count <= INT64_MAX - a->offset) {
		io->offset = a->offset;
		io->count = a->count;
	}
	rc = vfs_commit(io);
	encode_commit(op, rc);
	return nfs3_op_end(op, rc);
}

const struct nfs3_proc nfs3_proc_write = {
	.rpc = {
		.name = "WRITE",
		.decode = nfs3_decode_write,
		.args_size = sizeof(struct nfs3_write_args),
		.run = nfs3_write,
		.flags = RPC_NONIDEMPOTENT | RPC_EVENT_THREAD,
		.reply_size = 4 + NFS3_WCC_SIZE + 4 + 4 + 8,
	},
	/* Not listed: PERM (append-only and sealed files), NXIO as in READ, ISDIR. */
	.errors = NFS3_ERRORS(NFS3_E_FBIG | NFS3_E_SPACE | NFS3_E_ROFS | NFS3_E_INVAL |
			      NFS3_E_PERM | NFS3_E_NXIO | NFS3_E_ISDIR),
};

const struct nfs3_proc nfs3_proc_commit = {
	.rpc = {
		.name = "COMMIT",
		.decode = nfs3_decode_commit,
		.args_size = sizeof(struct commit_args),
		.run = proc_commit,
	},
	/* Not listed: NOSPC, DQUOT and FBIG (a late write may fail only when it is
	 * written back), INVAL and ISDIR (no regular file), ROFS. */
	.errors = NFS3_ERRORS(NFS3_E_SPACE | NFS3_E_FBIG | NFS3_E_INVAL | NFS3_E_ISDIR |
			      NFS3_E_ROFS),
};
