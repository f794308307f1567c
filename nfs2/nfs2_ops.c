/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Procedures of NFSv2 (RFC 1094 section 2.2) and of NFSACL version 2 that NFSv3's handlers run: what differs is in the decoders here and in
 * nfs2_dialect. No item of NFSACL is eligible for a chunk of its own (RFC 8267 section 5.2).
 */
#include "nfs2/nfs2_args.h"
#include "nfs3/acl/acl_steps.h"

#define ATTRSTAT_SIZE (4u + NFS2_FATTR_SIZE)

static bool nfs2_decode_setattr(struct xdr_in *x, void *args)
{
	struct nfs3_setattr_args *a = args;

	nfs2_get_fh(x, &a->fh);
	nfs2_get_sattr(x, &a->attr);
	return !x->err;
}

static bool nfs2_decode_read(struct xdr_in *x, void *args)
{
	struct nfs3_read_args *a = args;

	nfs2_get_fh(x, &a->fh);
	a->offset = xdr_get_u32(x);
	a->count = xdr_get_u32(x);
	xdr_get_u32(x); /* totalcount, unused */
	return !x->err;
}

static bool nfs2_decode_write(struct xdr_in *x, void *args)
{
	struct nfs3_write_args *a = args;

	nfs2_get_fh(x, &a->fh);
	xdr_get_u32(x); /* beginoffset, unused */
	a->offset = xdr_get_u32(x);
	xdr_get_u32(x); /* totalcount, unused */
	xdr_get_bulk(x, NFS2_MAX_IO, &a->data);
	a->count = a->data.len;
	a->stable = VFS_FILE_SYNC;
	return !x->err;
}

/* A directory has no size that could be set. */
static bool nfs2_decode_mkdir(struct xdr_in *x, void *args)
{
	struct nfs3_mkdir_args *a = args;

	nfs2_get_dirop(x, &a->where);
	nfs2_get_sattr(x, &a->attr);
	a->attr.set.set_size = false;
	return !x->err;
}

/* A symbolic link has neither a mode nor a size that could be set. */
static bool nfs2_decode_symlink(struct xdr_in *x, void *args)
{
	struct nfs3_symlink_args *a = args;

	nfs2_get_dirop(x, &a->where);
	xdr_get_bulk(x, NFS3_SYMLINK_TEXT_MAX, &a->target);
	nfs2_get_sattr(x, &a->attr);
	a->attr.set.set_mode = false;
	a->attr.set.set_size = false;
	return !x->err;
}

static bool nfs2_decode_rename(struct xdr_in *x, void *args)
{
	struct nfs3_rename_args *a = args;

	nfs2_get_dirop(x, &a->from);
	nfs2_get_dirop(x, &a->to);
	return !x->err;
}

static bool nfs2_decode_link(struct xdr_in *x, void *args)
{
	struct nfs3_link_args *a = args;

	nfs2_get_fh(x, &a->file);
	nfs2_get_dirop(x, &a->where);
	return !x->err;
}

static bool nfs2_decode_setacl(struct xdr_in *x, void *args)
{
	struct nfsacl_setacl_args *a = args;

	nfs2_get_fh(x, &a->fh);
	nfsacl_get_change(x, &a->change);
	return !x->err;
}

/* Blocks are made larger until their number fits in 31 bits, as some clients take it for signed. */
static void put_statfs(struct nfs3_op *op, const struct vfs_statfs *st)
{
	uint32_t block = st->block ? st->block : 4096;
	struct xdr_out *x = &op->req->out;

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
	return nfs3_statfs(req, args, put_statfs);
}

const struct rpc_proc nfs2_proc_getattr = {
	.name = "GETATTR",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs3_fh_args),
	.run = nfs3_getattr,
	.flags = RPC_EVENT_THREAD,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_setattr = {
	.name = "SETATTR",
	.decode = nfs2_decode_setattr,
	.args_size = sizeof(struct nfs3_setattr_args),
	.run = nfs3_setattr,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = ATTRSTAT_SIZE,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_lookup = {
	.name = "LOOKUP",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs3_dirop_args),
	.run = nfs3_lookup,
	.flags = RPC_EVENT_THREAD,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_readlink = {
	.name = "READLINK",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs3_fh_args),
	.run = nfs3_readlink,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_read = {
	.name = "READ",
	.decode = nfs2_decode_read,
	.args_size = sizeof(struct nfs3_read_args),
	.run = nfs3_read,
	.flags = RPC_EVENT_THREAD,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_write = {
	.name = "WRITE",
	.decode = nfs2_decode_write,
	.args_size = sizeof(struct nfs3_write_args),
	.run = nfs3_write,
	.flags = RPC_NONIDEMPOTENT | RPC_EVENT_THREAD,
	.reply_size = ATTRSTAT_SIZE,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_remove = {
	.name = "REMOVE",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs3_dirop_args),
	.run = nfs3_remove,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_rename = {
	.name = "RENAME",
	.decode = nfs2_decode_rename,
	.args_size = sizeof(struct nfs3_rename_args),
	.run = nfs3_rename,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_link = {
	.name = "LINK",
	.decode = nfs2_decode_link,
	.args_size = sizeof(struct nfs3_link_args),
	.run = nfs3_link,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_symlink = {
	.name = "SYMLINK",
	.decode = nfs2_decode_symlink,
	.args_size = sizeof(struct nfs3_symlink_args),
	.run = nfs3_symlink,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_mkdir = {
	.name = "MKDIR",
	.decode = nfs2_decode_mkdir,
	.args_size = sizeof(struct nfs3_mkdir_args),
	.run = nfs3_mkdir,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = NFS2_DIROPRES_SIZE,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_rmdir = {
	.name = "RMDIR",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs3_dirop_args),
	.run = nfs3_rmdir,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfs2_proc_statfs = {
	.name = "STATFS",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs3_fh_args),
	.run = proc_statfs,
	.dialect = &nfs2_dialect,
};

const struct rpc_proc nfsacl2_proc_getacl = {
	.name = "GETACL",
	.decode = nfs2_decode_word,
	.args_size = sizeof(struct nfs3_word_args),
	.run = nfs3_getacl,
	.flags = RPC_EVENT_THREAD,
	.dialect = &nfsacl2_dialect,
};

const struct rpc_proc nfsacl2_proc_setacl = {
	.name = "SETACL",
	.decode = nfs2_decode_setacl,
	.args_size = sizeof(struct nfsacl_setacl_args),
	.run = nfs3_setacl,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = ATTRSTAT_SIZE,
	.dialect = &nfsacl2_dialect,
};

const struct rpc_proc nfsacl2_proc_access = {
	.name = "ACCESS",
	.decode = nfs2_decode_word,
	.args_size = sizeof(struct nfs3_word_args),
	.run = nfs3_access,
	.flags = RPC_EVENT_THREAD,
	.dialect = &nfsacl2_dialect,
};
