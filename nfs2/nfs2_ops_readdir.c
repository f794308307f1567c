/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READDIR (RFC 1094 section 2.2.17). count bounds the whole result. A listing is interrupted only behind an entry
 * whose cookie, in 32 bits, leads to the entry after it and to none before (nfs2/nfs2_args.h).
 */
#include <errno.h>

#include "lib/util.h"
#include "nfs2/nfs2_args.h"

/* Bytes of the end of the list and eof. */
#define LIST_END_SIZE 8u
#define ENTRY_GUESS 32u

struct listing {
	struct xdr_out *x;
	size_t end;  /* position where the last entry must end */
	size_t safe; /* position behind the last entry at which the listing may be interrupted */
	uint32_t at; /* cookie that leads to the next entry */
	bool bad_cookie; /* a cookie does not fit in 32 bits */
	unsigned entries;
};

static bool nfs2_readdir_put_entry(void *arg, const struct vfs_dirent *de)
{
	struct listing *l = arg;
	struct xdr_out *x = l->x;
	const size_t size = 4u + 4u + 4u + de->len + rn_xdr_pad(de->len) + 4u;
	uint32_t cookie;

	if (xdr_out_pos(x) + size > l->end)
		return false;
	if (!nfs2_cookie_of(de->cookie, &cookie)) {
		l->bad_cookie = true;
		return false;
	}
	xdr_put_bool(x, true);
	xdr_put_u32(x, nfs2_fold(de->fileid));
	xdr_put_opaque(x, de->name, de->len);
	xdr_put_u32(x, cookie);
	l->entries++;
	if (cookie != l->at)
		l->safe = xdr_out_pos(x);
	l->at = cookie;
	return true;
}

static unsigned nfs2_readdir_expect(void *arg)
{
	const struct listing *l = arg;
	const size_t pos = xdr_out_pos(l->x);
	const size_t n = pos < l->end ? (l->end - pos) / ENTRY_GUESS : 0;

	return n == 0 && l->entries == 0 ? 1 : (unsigned)n;
}

/* Makes room for the reply and returns the position where the result must end. */
static size_t nfs2_readdir_make_room(struct rpc_request *req, uint32_t count)
{
	struct xdr_out *x = &req->out;
	const size_t start = xdr_out_pos(x);
	size_t room = rn_min(count, NFS2_MAX_IO);

	if (start >= req->reply_max)
		return start;
	room = rn_min(room, req->reply_max - start);
	if (start + room > x->size && rpc_reply_grow(req, room) < 0)
		room = x->size - start;
	return start + room;
}

struct readdir_args {
	struct vfs_fh dir;
	uint32_t cookie, count;
};

static bool nfs2_decode_readdir(struct xdr_in *x, void *args)
{
	struct readdir_args *a = args;

	nfs2_get_fh(x, &a->dir);
	a->cookie = xdr_get_u32(x);
	a->count = xdr_get_u32(x);
	return !x->err;
}

/* Puts a whole successful result, or returns -errno with nothing put. */
static int nfs2_readdir_list(struct nfs3_op *op, const struct readdir_args *a)
{
	struct xdr_out *x = &op->req->out;
	const size_t start = xdr_out_pos(x);
	struct listing l = { .x = x,
			     .end = nfs2_readdir_make_room(op->req, a->count),
			     .at = a->cookie };
	const struct vfs_listing to = { .each = nfs2_readdir_put_entry,
					.expect = nfs2_readdir_expect,
					.arg = &l };
	bool eof = false;
	int rc;

	if (start + 4 + LIST_END_SIZE > l.end)
		return -EINVAL;
	l.end -= LIST_END_SIZE;
	xdr_put_u32(x, NFS2_OK);
	l.safe = xdr_out_pos(x);
	rc = vfs_readdir(&op->ctx, op->node[0], nfs2_cookie_from(a->cookie), &to, &eof);
	if (rc == 0 && !eof && l.safe == start + 4)
		rc = l.bad_cookie ? -EIO : -EINVAL;
	/* Entries read before a failure are returned; the next call meets the failure again. */
	if (rc < 0 && l.safe == start + 4) {
		xdr_out_rewind(x, start);
		return rc;
	}
	if (rc < 0 || !eof)
		xdr_out_rewind(x, l.safe);
	xdr_put_bool(x, false);
	xdr_put_bool(x, rc == 0 && eof);
	return 0;
}

static enum rpc_run nfs2_readdir(struct rpc_request *req, void *args)
{
	struct readdir_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->dir, 0);
	if (rc == 0)
		rc = nfs2_readdir_list(op, a);
	if (rc < 0)
		nfs3_put_status(op, rc);
	return nfs3_op_end(op, rc);
}

const struct rpc_proc nfs2_proc_readdir = {
	.name = "READDIR",
	.decode = nfs2_decode_readdir,
	.args_size = sizeof(struct readdir_args),
	.run = nfs2_readdir,
	.dialect = &nfs2_dialect,
};
