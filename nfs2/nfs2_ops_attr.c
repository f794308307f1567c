/* SPDX-License-Identifier: BSD-2-Clause */
/* Procedures about one object: GETATTR, SETATTR and STATFS (RFC 1094 sections 2.2.2, 2.2.3, 2.2.18), LOOKUP, READLINK, READ and
 * WRITE. */
#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"
#include "nfs/bulk.h"
#include "nfs2/nfs2_args.h"

/* Seconds by which a client's clock may differ from ours when it means "now". */
#define NOW_WITHIN (30 * 60)

static enum rpc_run nfs2_getattr(struct rpc_request *req, void *args)
{
	struct nfs2_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, NFS3_OPEN_MOUNT);
	rc = nfs2_put_attrstat(op, rc);
	return nfs3_op_end(op, rc);
}

struct setattr_args {
	struct vfs_packed_fh fh;
	struct nfs2_sattr attr;
};

static bool nfs2_decode_setattr(struct xdr_in *x, void *args)
{
	struct setattr_args *a = args;

	nfs2_get_fh(x, &a->fh);
	nfs2_get_sattr(x, &a->attr);
	return !x->err;
}

static void nfs2_encode_setattr(struct nfs3_op *op, int rc)
{
	nfs2_put_attrstat(op, rc);
}

/* True if both times are to be about now. NFSv2 has but one way to say "this time" and "the server's time",
 * which takes less permission. */
static bool means_now(const struct vfs_setattr *s)
{
	return s->set_atime == VFS_TIME_CLIENT && s->set_mtime == VFS_TIME_CLIENT &&
	       s->atime.tv_sec == s->mtime.tv_sec &&
	       llabs((long long)s->atime.tv_sec - (long long)time(NULL)) < NOW_WITHIN;
}

static int nfs2_run_setattr(struct nfs3_op *op, struct setattr_args *a)
{
	struct vfs_setattr *s = &a->attr.set;
	int rc = nfs3_op_open_packed(op, &a->fh, NFS3_OPEN_CHANGES);

	if (rc < 0)
		return rc;
	if (a->attr.bad)
		return -EINVAL;
	if (s->set_size)
		rc = nfs2_check_shares(op, VFS_SHARE_WRITE);
	if (rc < 0)
		return rc;
	rc = nfs3_op_setattr(op, s, NULL);
	if ((rc == -EPERM || rc == -EACCES) && means_now(s)) {
		s->set_atime = s->set_mtime = VFS_TIME_SERVER;
		rc = nfs3_op_setattr(op, s, NULL);
	}
	return rc;
}

static enum rpc_run nfs2_setattr(struct rpc_request *req, void *args)
{
	struct setattr_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_run_setattr(op, a);
	op->sync.node[0] = op->node[0];
	op->sync.data_from = a->attr.set.set_size ? a->attr.set.size : VFS_SYNC_METADATA;
	return nfs3_op_settle(op, rc, nfs2_encode_setattr);
}

/* Blocks are made larger until their number fits in 31 bits, as some clients take it for signed. */
static void put_statfs(struct xdr_out *x, const struct vfs_statfs *st)
{
	uint32_t block = st->block ? st->block : 4096;

	while (st->total_bytes / block > INT32_MAX && block < 1u << 31)
		block <<= 1;
	xdr_put_u32(x, NFS2_MAX_IO); /* tsize */
	xdr_put_u32(x, block);
	xdr_put_u32(x, (uint32_t)(st->total_bytes / block));
	xdr_put_u32(x, (uint32_t)(st->free_bytes / block));
	xdr_put_u32(x, (uint32_t)(st->avail_bytes / block));
}

static enum rpc_run proc_statfs(struct rpc_request *req, void *args)
{
	struct nfs2_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_statfs st;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, NFS3_OPEN_MOUNT);
	if (rc == 0)
		rc = vfs_statfs(&op->ctx, op->node[0], &st);
	if (nfs2_put_status(op, rc))
		put_statfs(&req->out, &st);
	return nfs3_op_end(op, rc);
}

const struct rpc_proc nfs2_proc_getattr = {
	.name = "GETATTR",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs2_fh_args),
	.run = nfs2_getattr,
	.flags = RPC_PROMPT,
};

const struct rpc_proc nfs2_proc_setattr = {
	.name = "SETATTR",
	.decode = nfs2_decode_setattr,
	.args_size = sizeof(struct setattr_args),
	.run = nfs2_setattr,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4 + NFS2_FATTR_SIZE,
};

const struct rpc_proc nfs2_proc_statfs = {
	.name = "STATFS",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs2_fh_args),
	.run = proc_statfs,
};

/* LOOKUP and READLINK (RFC 1094 sections 2.2.5, 2.2.6). */

static enum rpc_run nfs2_lookup(struct rpc_request *req, void *args)
{
	struct nfs2_dirop_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->dir, 0);
	if (rc == 0)
		rc = nfs3_name_check(&a->name);
	if (rc == 0) {
		rc = vfs_lookup(&op->ctx, op->node[0], a->name.bytes, a->name.len, &op->node[1],
				&op->attr);
		if (rc < 0)
			op->node[1] = NULL;
		else
			rc = nfs3_op_cross(op, &a->name);
	}
	nfs2_put_diropres(op, rc);
	return nfs3_op_end(op, rc);
}

/* The longest target that NFSv2 can name is a path of 1024 bytes. Reads one byte more, to see that it is longer. */
static int read_target(struct nfs3_op *op, struct rn_payload **text)
{
	struct rpc_request *req = op->req;
	int len;

	*text = rn_payload_get_for(req->server->pool, NFS2_PATH_MAX + 1, rpc_request_account(req));
	if (!*text)
		return -ENOMEM;
	len = vfs_readlink(&op->ctx, op->node[0], (char *)(*text)->data, NFS2_PATH_MAX + 1);
	return len > (int)NFS2_PATH_MAX ? -ENAMETOOLONG : len;
}

/* A bulk item, since the text goes by a Write chunk if the client offered one (RFC 8267 section 4). */
static enum rpc_run nfs2_readlink(struct rpc_request *req, void *args)
{
	struct nfs2_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct rn_payload *text = NULL;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, 0);
	if (rc == 0)
		rc = read_target(op, &text);
	nfs2_put_status(op, rc < 0 ? rc : 0);
	if (rc > 0)
		xdr_put_bulk(&req->out, text, 0, (uint32_t)rc);
	else
		rn_payload_put(text);
	if (rc == 0)
		xdr_put_bulk(&req->out, NULL, 0, 0);
	return nfs3_op_end(op, rc < 0 ? rc : 0);
}

const struct rpc_proc nfs2_proc_lookup = {
	.name = "LOOKUP",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs2_dirop_args),
	.run = nfs2_lookup,
	.flags = RPC_PROMPT,
};

const struct rpc_proc nfs2_proc_readlink = {
	.name = "READLINK",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs2_fh_args),
	.run = nfs2_readlink,
};

/* READ and WRITE (RFC 1094 sections 2.2.7, 2.2.9). Bulk data go as NFSv3's do: nfs3/op.c, nfs3/nfs3_ops_io.c. */

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
