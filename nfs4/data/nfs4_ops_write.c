/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITE (RFC 7530 section 16.36, RFC 8881 section 18.32) and COMMIT (section 18.3). The data stays
 * in the buffers of the transport; the request's segments hold them until the reply. */
#include <string.h>

#include "lib/util.h"
#include "nfs/bulk.h"
#include "nfs4/data/data_status.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"

/* The verifier is opaque to the client; it has the bytes of the number. */
static void nfs4_put_write_verifier(struct nfs4_compound *c, uint64_t verifier)
{
	xdr_put_u64(c->out, verifier);
}

struct write_args {
	struct nfs4_stateid stateid;
	uint64_t offset;
	uint32_t stable; /* enum vfs_stable has the same values */
	struct xdr_bulk data;
	struct nfs4_io_right right;
	uint64_t verifier; /* read before the data is written */
};

static void nfs4_decode_write(struct nfs4_compound *c, void *args)
{
	struct write_args *a = args;

	nfs4_get_stateid(c->in, &a->stateid);
	a->offset = xdr_get_u64(c->in);
	a->stable = xdr_get_u32(c->in);
	if (a->stable > VFS_FILE_SYNC)
		c->in->err = true;
	xdr_get_bulk(c->in, UINT32_MAX, &a->data); /* bounded by the length of the message */
}

/* result: bytes, or -errno. */
static int put_written(struct nfs4_compound *c, const struct write_args *a, int64_t result)
{
	if (result < 0)
		return nfs4_data_status(c, (int)result);
	xdr_put_u32(c->out, (uint32_t)result);
	xdr_put_u32(c->out, a->stable);
	nfs4_put_write_verifier(c, a->verifier);
	c->moved = (uint32_t)result;
	return NFS4_OK;
}

static int begin_write(struct nfs4_compound *c, struct write_args *a, uint32_t count)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE | NFS4_NEED_WRITABLE);

	if (status == NFS4_OK && (a->offset > INT64_MAX || count > INT64_MAX - a->offset))
		status = NFS4ERR_FBIG;
	return status == NFS4_OK ? nfs4_io_begin(c, &a->stateid, NFS4_IO_WRITE, &a->right) : status;
}

static int run_write(struct nfs4_compound *c, void *args)
{
	struct write_args *a = args;
	uint32_t count = (uint32_t)rn_min(a->data.len, c->server->cfg.max_io);
	int status = begin_write(c, a, count);
	int64_t n;

	if (status != NFS4_OK)
		return status;
	c->io = (struct vfs_io){
		.ctx = &c->current.ctx,
		.node = c->current.node,
		.offset = a->offset,
		.opened = a->right.opened,
		.stable = (enum vfs_stable)a->stable,
	};
	nfs_bulk_to_write(&c->io, &a->data, count);
	a->verifier = vfs_write_verifier(c->current.ctx.exp);
	do
		n = vfs_write(&c->io);
	while (n < 0 && nfs4_await(c, (int)n));
	nfs4_io_end(&a->right);
	return put_written(c, a, n);
}

struct commit_args {
	uint64_t offset;
	uint32_t count; /* 0: to the end */
};

static void nfs4_decode_commit(struct nfs4_compound *c, void *args)
{
	struct commit_args *a = args;

	a->offset = xdr_get_u64(c->in);
	a->count = xdr_get_u32(c->in);
}

static int run_commit(struct nfs4_compound *c, void *args)
{
	const struct commit_args *a = args;
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);

	if (status != NFS4_OK)
		return status;
	c->io = (struct vfs_io){
		.ctx = &c->current.ctx,
		.node = c->current.node,
		/* COMMIT has no stateid that would show that the file was opened. A client that
		 * wrote must be able to commit, even after a chmod. */
		.opened = true,
	};
	/* For a range beyond the largest offset, the whole file is synced. */
	if (a->offset <= INT64_MAX && a->count <= INT64_MAX - a->offset) {
		c->io.offset = a->offset;
		c->io.count = a->count;
	}
	status = nfs4_data_status(c, vfs_commit(&c->io));
	if (status == NFS4_OK)
		nfs4_put_write_verifier(c, vfs_write_verifier(c->current.ctx.exp));
	return status;
}

const struct nfs4_op nfs4_op_commit = {
	.name = "COMMIT",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = NFS4_VERIFIER_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_ISDIR | NFS4_E_SYMLINK,
				       NFS4_E_INVAL | NFS4_E_ROFS, 0),
	.shape = NFS4_SHAPE(12, 0, 0),
	.args_size = sizeof(struct commit_args),
	.decode = nfs4_decode_commit,
	.run = run_commit,
};

const struct nfs4_op nfs4_op_write = {
	.name = "WRITE",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_PROMPT,
	.reply_max = 8 + NFS4_VERIFIER_SIZE,
	.errors =
		NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
					     NFS4_E_FBIG | NFS4_E_NOSPC | NFS4_E_ROFS,
				     NFS4_E_NXIO, 0),
	.bulk_at = NFS4_STATEID_SIZE + 8 + 4 + 4, /* stateid, offset, stable, length */
	.args_size = sizeof(struct write_args),
	.decode = nfs4_decode_write,
	.run = run_write,
};
