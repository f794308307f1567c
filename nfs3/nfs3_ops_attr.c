/* SPDX-License-Identifier: BSD-2-Clause */
/* Procedures about one object or its file system: GETATTR, SETATTR and ACCESS (RFC 1813 sections 3.3.1, 3.3.2, 3.3.4), LOOKUP,
 * READLINK, FSSTAT, FSINFO and PATHCONF. */
#include <errno.h>
#include <sys/stat.h>

#include "nfs3/nfs3_procs.h"
#include "nfs3/op.h"

enum rpc_run nfs3_getattr(struct rpc_request *req, void *args)
{
	struct nfs3_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_attr attr;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_MOUNT);
	if (rc == 0)
		rc = vfs_getattr(&op->ctx, op->node[0], &attr);
	if (nfs3_put_status(op, rc))
		(op->dialect ? op->dialect->put_fattr : nfs3_put_fattr)(&req->out, &attr);
	return nfs3_op_end(op, rc);
}

static void nfs3_encode_setattr(struct nfs3_op *op, int rc)
{
	if (op->dialect) {
		op->dialect->put_changed(op, rc);
		return;
	}
	nfs3_put_status(op, rc);
	nfs3_put_wcc_of(op, 0);
}

static bool nfs3_decode_setattr(struct xdr_in *x, void *args)
{
	struct nfs3_setattr_args *a = args;
	bool bad_guard = false;

	nfs3_get_fh(x, &a->fh);
	nfs3_get_sattr(x, &a->attr);
	a->guard = xdr_get_bool(x);
	if (a->guard)
		a->guard_ctime = nfs3_get_time(x, &bad_guard);
	if (bad_guard) /* no file has such a ctime, so it cannot match */
		a->guard_ctime.tv_nsec = -1;
	return !x->err;
}

static int nfs3_run_setattr(struct nfs3_op *op, struct nfs3_setattr_args *a)
{
	int rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_CHANGES);

	if (rc < 0)
		return rc;
	if (a->attr.bad)
		return -EINVAL;
	if (a->attr.set.set_size)
		rc = nfs3_op_check_shares(op, VFS_SHARE_WRITE);
	if (rc < 0)
		return rc;
	rc = nfs3_op_setattr(op, &a->attr.set, a->guard ? &a->guard_ctime : NULL);
	/* NFSv2 has but one way to say "this time" and "the server's time", which takes less
	 * permission. */
	if ((rc == -EPERM || rc == -EACCES) && a->attr.is_now) {
		a->attr.set.set_atime = a->attr.set.set_mtime = VFS_TIME_SERVER;
		rc = nfs3_op_setattr(op, &a->attr.set, NULL);
	}
	/* True for the size of an object that is no file and the mode of a symbolic link: RFC 1813
	 * has INVAL for both. */
	if (!op->dialect && (rc == -EISDIR || rc == -EOPNOTSUPP))
		return -EINVAL;
	return rc;
}

enum rpc_run nfs3_setattr(struct rpc_request *req, void *args)
{
	struct nfs3_setattr_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_run_setattr(op, a);
	op->sync.node[0] = op->node[0];
	op->sync.data_from = a->attr.set.set_size ? a->attr.set.size : VFS_SYNC_METADATA;
	return nfs3_op_settle(op, rc, nfs3_encode_setattr);
}

/* Permissions that the bits of ACCESS ask for on this type of object; RFC 1813 section 3.3.4 leaves
 * it to the server which apply. */
struct access_bit {
	uint32_t bit;
	unsigned may;
};

static const struct access_bit dir_bits[] = {
	{ ACCESS3_READ, VFS_MAY_READ },
	{ ACCESS3_LOOKUP, VFS_MAY_EXEC },
	{ ACCESS3_MODIFY, VFS_MAY_WRITE | VFS_MAY_EXEC },
	{ ACCESS3_EXTEND, VFS_MAY_WRITE | VFS_MAY_EXEC },
	{ ACCESS3_DELETE, VFS_MAY_DELETE },
	{ 0, 0 },
};

static const struct access_bit file_bits[] = {
	{ ACCESS3_READ, VFS_MAY_READ },
	{ ACCESS3_MODIFY, VFS_MAY_WRITE },
	{ ACCESS3_EXTEND, VFS_MAY_WRITE },
	{ ACCESS3_EXECUTE, VFS_MAY_EXEC },
	{ 0, 0 },
};

/* Finds which of the bits ACCESS3_* in want the caller has for node[0], and its attributes. 0 or -errno. */
static int nfs3_run_access(struct nfs3_op *op, uint32_t want, uint32_t *granted,
			   struct vfs_attr *attr)
{
	const struct access_bit *bits;
	unsigned may = 0, got;
	int rc;

	bits = S_ISDIR(vfs_node_type(op->node[0])) ? dir_bits : file_bits;
	for (unsigned i = 0; bits[i].bit; i++)
		if (want & bits[i].bit)
			may |= bits[i].may;
	rc = vfs_access(&op->ctx, op->node[0], may, &got, attr);
	if (rc < 0)
		return rc;
	*granted = 0;
	for (unsigned i = 0; bits[i].bit; i++)
		if ((want & bits[i].bit) && (got & bits[i].may) == bits[i].may)
			*granted |= bits[i].bit;
	return 0;
}

enum rpc_run nfs3_access(struct rpc_request *req, void *args)
{
	struct nfs3_word_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_attr attr;
	uint32_t granted = 0;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, 0);
	if (rc == 0)
		rc = nfs3_run_access(op, a->word, &granted, &attr);
	nfs3_put_status(op, rc);
	if (rc != 0) {
		nfs3_put_attr_of(op, op->node[0]);
	} else {
		nfs3_put_attr(op, &attr);
		xdr_put_u32(&req->out, granted);
	}
	return nfs3_op_end(op, rc);
}

const struct nfs3_proc nfs3_proc_getattr = {
	.rpc = {
		.name = "GETATTR",
		.decode = nfs3_decode_fh_args,
		.args_size = sizeof(struct nfs3_fh_args),
		.run = nfs3_getattr,
		.flags = RPC_EVENT_THREAD,
	},
	.errors = NFS3_ERRORS(0),
};

const struct nfs3_proc nfs3_proc_setattr = {
	.rpc = {
		.name = "SETATTR",
		.decode = nfs3_decode_setattr,
		.args_size = sizeof(struct nfs3_setattr_args),
		.run = nfs3_setattr,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + NFS3_WCC_SIZE,
	},
	/* FBIG: not listed, for a size that no file can have. */
	.errors = NFS3_ERRORS(NFS3_E_PERM | NFS3_E_INVAL | NFS3_E_SPACE | NFS3_E_ROFS |
			      NFS3_E_NOT_SYNC | NFS3_E_FBIG),
};

const struct nfs3_proc nfs3_proc_access = {
	.rpc = {
		.name = "ACCESS",
		.decode = nfs3_decode_word,
		.args_size = sizeof(struct nfs3_word_args),
		.run = nfs3_access,
		.flags = RPC_EVENT_THREAD,
	},
	.errors = NFS3_ERRORS(0),
};

/* LOOKUP and READLINK (RFC 1813 sections 3.3.3, 3.3.5). */

enum rpc_run nfs3_lookup(struct rpc_request *req, void *args)
{
	struct nfs3_dirop_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_attr dir = { .mode = 0 };
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->dir, 0);
	if (rc == 0)
		rc = nfs3_name_check(&a->name);
	if (rc == 0) {
		op->ctx.searched = &dir;
		rc = vfs_lookup(&op->ctx, op->node[0], a->name.bytes, a->name.len, &op->node[1],
				&op->attr);
		op->ctx.searched = NULL;
		if (rc < 0)
			op->node[1] = NULL;
		else
			rc = nfs3_op_cross(op, &a->name);
	}
	if (op->dialect) {
		op->dialect->put_found(op, rc);
		return nfs3_op_end(op, rc);
	}
	if (nfs3_put_status(op, rc)) {
		const struct vfs_fh *fh = vfs_node_fh(op->node[1]);

		xdr_put_opaque(&req->out, fh->data, fh->len);
		nfs3_put_post_op_attr(&req->out, &op->attr);
	}
	/* A directory that has changed since the search is found to be another next time. The other way round a client would believe in the
	 * result for as long as the newer attributes stay. */
	if (dir.mode)
		nfs3_put_post_op_attr(&req->out, &dir);
	else
		nfs3_put_attr_of(op, op->node[0]);
	return nfs3_op_end(op, rc);
}

/* Reads one byte more than the longest target of a dialect, to see that it is longer. */
static int read_target(struct nfs3_op *op, struct rn_payload **text)
{
	const uint32_t size = op->dialect ? op->dialect->path_max + 1 : VFS_PATH_MAX;
	struct rpc_request *req = op->req;
	int len;

	*text = rn_payload_get_for(req->server->pool, size, rpc_request_account(req));
	if (!*text)
		return -ENOMEM;
	len = vfs_readlink(&op->ctx, op->node[0], (char *)(*text)->data, size);
	return op->dialect && len == (int)size ? -ENAMETOOLONG : len;
}

/* A bulk item, since the text goes by a Write chunk if the client offered one (RFC 8267). */
enum rpc_run nfs3_readlink(struct rpc_request *req, void *args)
{
	struct nfs3_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct rn_payload *text = NULL;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, 0);
	if (rc == 0)
		rc = read_target(op, &text);
	nfs3_put_status(op, rc < 0 ? rc : 0);
	nfs3_put_attr_of(op, op->node[0]);
	if (rc > 0)
		xdr_put_bulk(&req->out, text, 0, (uint32_t)rc);
	else
		rn_payload_put(text);
	if (rc == 0)
		xdr_put_bulk(&req->out, NULL, 0, 0);
	return nfs3_op_end(op, rc < 0 ? rc : 0);
}

const struct nfs3_proc nfs3_proc_lookup = {
	.rpc = {
		.name = "LOOKUP",
		.decode = nfs3_decode_dirop,
		.args_size = sizeof(struct nfs3_dirop_args),
		.run = nfs3_lookup,
		.flags = RPC_EVENT_THREAD,
	},
	.errors = NFS3_ERRORS(NFS3_E_NOENT | NFS3_E_NOTDIR | NFS3_E_NAMETOOLONG),
};

const struct nfs3_proc nfs3_proc_readlink = {
	.rpc = {
		.name = "READLINK",
		.decode = nfs3_decode_fh_args,
		.args_size = sizeof(struct nfs3_fh_args),
		.run = nfs3_readlink,
	},
	.errors = NFS3_ERRORS(NFS3_E_INVAL | NFS3_E_NOTSUPP),
};

/* FSSTAT, FSINFO and PATHCONF (RFC 1813 sections 3.3.18 to 3.3.20). */

#define IO_MULTIPLE 4096u
#define NS_PER_SECOND 1000000000u

enum rpc_run nfs3_statfs(struct rpc_request *req, const struct nfs3_fh_args *a,
			 void (*put)(struct nfs3_op *op, const struct vfs_statfs *st))
{
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_statfs st;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_MOUNT);
	if (rc == 0)
		rc = vfs_statfs(&op->ctx, op->node[0], &st);
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
	if (rc == 0)
		put(op, &st);
	return nfs3_op_end(op, rc);
}

static void put_fsstat(struct nfs3_op *op, const struct vfs_statfs *st)
{
	struct xdr_out *x = &op->req->out;

	xdr_put_u64(x, st->total_bytes);
	xdr_put_u64(x, st->free_bytes);
	xdr_put_u64(x, st->avail_bytes);
	xdr_put_u64(x, st->total_files);
	xdr_put_u64(x, st->free_files);
	xdr_put_u64(x, st->avail_files);
	xdr_put_u32(x, 0); /* invarsec: may change at any time */
}

static enum rpc_run proc_fsstat(struct rpc_request *req, void *args)
{
	return nfs3_statfs(req, args, put_fsstat);
}

static uint32_t properties(const struct vfs_statfs *st)
{
	return (st->links ? FSF3_LINK | FSF3_SYMLINK : 0) | FSF3_HOMOGENEOUS | FSF3_CANSETTIME;
}

static void put_fsinfo(struct nfs3_op *op, const struct vfs_statfs *st)
{
	const uint32_t max_io = nfs3_op_max_io(op);
	struct xdr_out *x = &op->req->out;

	xdr_put_u32(x, max_io); /* rtmax, rtpref, rtmult */
	xdr_put_u32(x, max_io);
	xdr_put_u32(x, IO_MULTIPLE);
	xdr_put_u32(x, max_io); /* wtmax, wtpref, wtmult */
	xdr_put_u32(x, max_io);
	xdr_put_u32(x, IO_MULTIPLE);
	/* dtpref is the largest listing that nfs3_readdir_make_room() puts: the Linux client gives up READDIRPLUS for a directory that takes
	 * many calls, and then asks for each entry by LOOKUP. */
	xdr_put_u32(x, max_io);			     /* dtpref */
	xdr_put_u64(x, st->size_max);		     /* maxfilesize */
	xdr_put_u32(x, st->time_ns / NS_PER_SECOND); /* time_delta */
	xdr_put_u32(x, st->time_ns % NS_PER_SECOND);
	xdr_put_u32(x, properties(st));
}

static enum rpc_run proc_fsinfo(struct rpc_request *req, void *args)
{
	return nfs3_statfs(req, args, put_fsinfo);
}

static void put_pathconf(struct nfs3_op *op, const struct vfs_statfs *st)
{
	struct xdr_out *x = &op->req->out;

	xdr_put_u32(x, st->link_max);
	xdr_put_u32(x, st->name_max);
	xdr_put_bool(x, true); /* no_trunc */
	xdr_put_bool(x, true); /* chown_restricted */
	xdr_put_bool(x, vfs_folds_case(&op->ctx, op->node[0]));
	xdr_put_bool(x, true); /* case_preserving */
}

static enum rpc_run nfs3_pathconf(struct rpc_request *req, void *args)
{
	return nfs3_statfs(req, args, put_pathconf);
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
