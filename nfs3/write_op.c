/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITE and COMMIT (RFC 1813 sections 3.3.7, 3.3.21). The data is written from where the transport
 * put it: the request owns those buffers, the ring only borrows them.
 *
 * The write verifier of a WRITE is the one from before it, that of a COMMIT the one from after: if
 * data may have been lost anywhere between, the two differ and the client writes again.
 */
#include <errno.h>

#include "lib/checked.h"
#include "nfs3/op.h"
#include "nfs3/procs.h"

static void encode_write(struct nfs3_op *op, int rc)
{
	struct xdr_out *x = &op->req->out;
	bool ok = nfs3_put_status(op, rc);

	nfs3_put_wcc_of(op, 0);
	if (!ok)
		return;
	xdr_put_u32(x, (uint32_t)op->io.result);
	xdr_put_u32(x, op->io.stable);
	xdr_put_u64(x, op->verifier);
}

static void write_done(struct vfs_io *io)
{
	struct nfs3_op *op = io->arg;
	int rc = io->result < 0 ? (int)io->result : 0;

	encode_write(op, rc);
	nfs3_op_finish(op, rc);
}

/* The first count bytes of data. */
static void set_pieces(struct vfs_io *io, const struct xdr_bulk *data, uint32_t count)
{
	io->count = count;
	for (unsigned i = 0; i < data->npieces && count > 0; i++) {
		size_t n = rn_min(data->piece[i].iov_len, count);

		io->piece[i].iov_base = data->piece[i].iov_base;
		io->piece[i].iov_len = n;
		io->piece_payload[i] = data->payload[i];
		io->npieces = i + 1;
		count -= (uint32_t)n;
	}
}

static int prepare_write(struct nfs3_op *op, const struct nfs3_write_args *a)
{
	struct vfs_io *io = &op->io;
	uint32_t count = (uint32_t)rn_min(a->count, op->server->cfg.max_io);
	int rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_op_check_shares(op, VFS_SHARE_WRITE);
	if (rc < 0)
		return rc;
	if (a->offset > INT64_MAX || count > INT64_MAX - a->offset)
		return -EFBIG;
	io->ctx = &op->ctx;
	io->node = op->node[0];
	io->offset = a->offset;
	io->stable = (enum vfs_stable)a->stable;
	set_pieces(io, &a->data, count);
	io->done = write_done;
	io->arg = op;
	op->verifier = vfs_write_verifier(op->ctx.exp);
	return 0;
}

enum rpc_run nfs3_write(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = prepare_write(op, args);
	if (rc < 0) {
		encode_write(op, rc);
		return nfs3_op_end(op, rc);
	}
	vfs_write(&op->io);
	return RPC_RUN_PENDING;
}

static void encode_commit(struct nfs3_op *op, int rc)
{
	bool ok = nfs3_put_status(op, rc);

	nfs3_put_wcc_of(op, 0);
	if (ok)
		xdr_put_u64(&op->req->out, vfs_write_verifier(op->ctx.exp));
}

static void commit_done(struct vfs_io *io)
{
	struct nfs3_op *op = io->arg;
	int rc = io->result < 0 ? (int)io->result : 0;

	encode_commit(op, rc);
	nfs3_op_finish(op, rc);
}

enum rpc_run nfs3_commit(struct rpc_request *req, void *args)
{
	struct nfs3_commit_args *a = args;
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
	io->done = commit_done;
	io->arg = op;
	vfs_commit(io);
	return RPC_RUN_PENDING;
}
