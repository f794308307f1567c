/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READDIR and READDIRPLUS (RFC 1813 sections 3.3.16, 3.3.17): entries stream from the file system
 * straight into the reply.
 *
 * Limits, all in bytes of XDR: maxcount bounds the whole resok structure, dircount what READDIR
 * would have put for the same entries, and the reply must fit what the client offered. An entry
 * that does not fit is taken back and comes again with the next call, which continues after the
 * last cookie.
 *
 * Cookies are the file system's own and do not age, so the cookie verifier is always zero.
 */
#include <errno.h>

#include "lib/util.h"
#include "nfs3/op.h"
#include "nfs3/nfs3_procs.h"

/* Bytes of the end of the list and eof. */
#define LIST_END_SIZE 8u

struct listing {
	struct nfs3_op *op;
	struct xdr_out *x;
	bool plus;
	size_t start, end; /* positions where the first entry begins and the last must end */
	uint32_t dircount, dir_left; /* bytes of dircount, and those left of it */
	unsigned entries;
};

/* Bytes of an entry, a guess before the first: of the whole, and of what dircount counts. */
#define ENTRY_PLUS 168u
#define ENTRY 40u

/* Bytes that every entry needs: the list's mark, fileid, name, cookie. */
static size_t entry_size(const struct vfs_dirent *de)
{
	return 4u + 8u + 4u + de->len + rn_xdr_pad(de->len) + 8u;
}

/* Attributes and handle of an entry; none if it has been removed meanwhile, may not be looked up, or is the root of
 * another export, which LOOKUP enters. */
static void put_plus(struct listing *l, const struct vfs_dirent *de)
{
	struct nfs3_op *op = l->op;
	struct vfs_attr attr;
	struct vfs_fh fh;
	const struct nfs_entry e = { de->name, de->len, &fh };

	if (vfs_peek_entry(&op->ctx, op->node[0], de, &fh, &attr) < 0 ||
	    nfs3_op_leads_away(op, &e)) {
		nfs3_put_post_op_attr(l->x, NULL);
		nfs3_put_post_op_fh(l->x, NULL);
		return;
	}
	nfs3_put_post_op_attr(l->x, &attr);
	nfs3_put_post_op_fh(l->x, &fh);
}

static bool nfs3_readdir_put_entry(void *arg, const struct vfs_dirent *de)
{
	struct listing *l = arg;
	struct xdr_out *x = l->x;
	size_t start = xdr_out_pos(x), size = entry_size(de);

	if (size > l->dir_left || start + size > l->end)
		return false;
	xdr_put_bool(x, true);
	xdr_put_u64(x, de->fileid);
	xdr_put_opaque(x, de->name, de->len);
	xdr_put_u64(x, de->cookie);
	if (l->plus)
		put_plus(l, de);
	if (x->overflow || xdr_out_pos(x) > l->end) {
		xdr_out_rewind(x, start);
		return false;
	}
	l->dir_left -= (uint32_t)size;
	l->entries++;
	return true;
}

/* Entries of average size that there is room for. */
static unsigned nfs3_readdir_expect(void *arg)
{
	const struct listing *l = arg;
	const size_t pos = xdr_out_pos(l->x);
	size_t whole = l->plus ? ENTRY_PLUS : ENTRY, dir = ENTRY, n;

	if (l->entries > 0) {
		whole = (pos - l->start) / l->entries;
		dir = (l->dircount - l->dir_left) / l->entries;
	}
	n = pos < l->end ? rn_min((l->end - pos) / whole, l->dir_left / dir) : 0;
	return n == 0 && l->entries == 0 ? 1 : (unsigned)n;
}

/* Makes room for the reply and returns the position where resok must end: the size asked for,
 * within the limits of client and server, and less if there is no memory now. */
static size_t nfs3_readdir_make_room(struct rpc_request *req, uint32_t maxcount, uint32_t max_io)
{
	struct xdr_out *x = &req->out;
	size_t start = xdr_out_pos(x) + 4; /* position behind the status word */
	size_t room = rn_min(maxcount, max_io);

	if (start >= req->reply_max)
		return start;
	room = rn_min(room, req->reply_max - start);
	if (start + room > x->size && rpc_reply_grow(req, room + 4) < 0)
		room = x->size - start;
	return start + room;
}

struct readdir_args {
	struct vfs_fh dir;
	uint64_t cookie, cookieverf;
	uint32_t dircount; /* READDIRPLUS only */
	uint32_t maxcount; /* READDIR's count */
};

static bool nfs3_decode_readdir(struct xdr_in *x, void *args)
{
	struct readdir_args *a = args;

	nfs3_get_fh(x, &a->dir);
	a->cookie = xdr_get_u64(x);
	a->cookieverf = xdr_get_u64(x);
	a->maxcount = xdr_get_u32(x);
	a->dircount = UINT32_MAX;
	return !x->err;
}

/* Puts a whole successful result, or returns -errno with nothing put. */
static int nfs3_readdir_list(struct nfs3_op *op, const struct readdir_args *a, bool plus)
{
	struct xdr_out *x = &op->req->out;
	size_t start = xdr_out_pos(x);
	size_t end = nfs3_readdir_make_room(op->req, a->maxcount, nfs3_op_max_io(op));
	struct listing l = {
		.op = op, .x = x, .plus = plus, .dircount = a->dircount, .dir_left = a->dircount
	};
	const struct vfs_listing to = { .each = nfs3_readdir_put_entry,
					.expect = nfs3_readdir_expect,
					.arg = &l,
					.looks = plus };
	bool eof = false;
	int rc;

	nfs3_put_status(op, 0);
	nfs3_put_attr_of(op, op->node[0]);
	xdr_put_u64(x, 0); /* cookieverf */
	if (x->overflow || xdr_out_pos(x) + LIST_END_SIZE > end) {
		xdr_out_rewind(x, start);
		return -NFS3_ETOOSMALL;
	}
	l.start = xdr_out_pos(x);
	l.end = end - LIST_END_SIZE;
	rc = vfs_readdir(&op->ctx, op->node[0], a->cookie, &to, &eof);
	if (rc == -EINVAL)
		rc = -NFS3_EBADCOOKIE;
	if (rc == 0 && l.entries == 0 && !eof)
		rc = -NFS3_ETOOSMALL;
	/* Entries read before a failure are returned; the next call meets the failure again. */
	if (rc < 0 && l.entries == 0) {
		xdr_out_rewind(x, start);
		return rc;
	}
	xdr_put_bool(x, false);
	xdr_put_bool(x, rc == 0 && eof);
	return 0;
}

static enum rpc_run nfs3_run_readdir(struct rpc_request *req, const struct readdir_args *a,
				     bool plus)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->dir, 0);
	if (rc == 0 && plus && (op->ctx.access.flags & VFS_NO_READDIRPLUS))
		rc = -EOPNOTSUPP;
	if (rc == 0 && a->cookie != 0 && a->cookieverf != 0)
		rc = -NFS3_EBADCOOKIE;
	if (rc == 0)
		rc = nfs3_readdir_list(op, a, plus);
	if (rc < 0) {
		nfs3_put_status(op, rc);
		nfs3_put_attr_of(op, op->node[0]);
	}
	return nfs3_op_end(op, rc);
}

static enum rpc_run nfs3_readdir(struct rpc_request *req, void *args)
{
	return nfs3_run_readdir(req, args, false);
}

static bool decode_readdirplus(struct xdr_in *x, void *args)
{
	struct readdir_args *a = args;

	nfs3_get_fh(x, &a->dir);
	a->cookie = xdr_get_u64(x);
	a->cookieverf = xdr_get_u64(x);
	a->dircount = xdr_get_u32(x);
	a->maxcount = xdr_get_u32(x);
	return !x->err;
}

static enum rpc_run proc_readdirplus(struct rpc_request *req, void *args)
{
	return nfs3_run_readdir(req, args, true);
}

const struct nfs3_proc nfs3_proc_readdir = {
	.rpc = {
		.name = "READDIR",
		.decode = nfs3_decode_readdir,
		.args_size = sizeof(struct readdir_args),
		.run = nfs3_readdir,
	},
	.errors = NFS3_ERRORS(NFS3_E_NOTDIR | NFS3_E_BAD_COOKIE | NFS3_E_TOOSMALL),
};

const struct nfs3_proc nfs3_proc_readdirplus = {
	.rpc = {
		.name = "READDIRPLUS",
		.decode = decode_readdirplus,
		.args_size = sizeof(struct readdir_args),
		.run = proc_readdirplus,
	},
	.errors = NFS3_ERRORS(NFS3_E_NOTDIR | NFS3_E_BAD_COOKIE | NFS3_E_TOOSMALL | NFS3_E_NOTSUPP),
};
