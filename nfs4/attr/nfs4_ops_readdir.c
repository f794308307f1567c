/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READDIR (RFC 7530 section 16.24, RFC 8881 section 18.23): entries stream from the file system, or
 * from the pseudo file system, straight into the reply.
 *
 * Limits, in bytes of XDR: the whole resok structure is bounded by maxcount, and by the largest
 * reply of the client and its session. dircount, a hint, bounds names and cookies, except for the
 * first entry. An entry that does not fit is removed. It comes first in the next call, which
 * continues behind the last cookie.
 *
 * Cookies are those of the file system and stay valid, so the cookie verifier is always zero. The
 * protocol reserves 0, 1 and 2: an entry with such a cookie gets one from the upper end of the
 * range.
 */
#include <errno.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/listing.h"
#include "nfs4/compound.h"
#include "nfs4/pseudo/pseudo.h"
#include "nfs4/nfs4_private.h"

#define COOKIE_RESERVED 2u /* 0 to 2 */
#define COOKIE_HIGH ((uint64_t)INT64_MAX - 1 - COOKIE_RESERVED)
#define LIST_START (NFS4_VERIFIER_SIZE)
#define LIST_END (4u + 4u) /* no further entry, eof */

static uint64_t cookie_out(uint64_t cookie)
{
	return cookie <= COOKIE_RESERVED ? COOKIE_HIGH + cookie : cookie;
}

static uint64_t cookie_in(uint64_t cookie)
{
	return cookie >= COOKIE_HIGH && cookie < INT64_MAX ? cookie - COOKIE_HIGH : cookie;
}

struct readdir_args {
	uint64_t cookie, verifier;
	uint32_t dircount, maxcount; /* bytes of XDR */
	struct nfs4_bitmap want;
};

static void nfs4_decode_readdir(struct nfs4_compound *c, void *args)
{
	struct readdir_args *a = args;

	a->cookie = xdr_get_u64(c->in);
	a->verifier = xdr_get_u64(c->in);
	a->dircount = xdr_get_u32(c->in);
	a->maxcount = xdr_get_u32(c->in);
	nfs4_get_bitmap(c->in, &a->want);
}

static bool dot_or_dotdot(const struct vfs_dirent *de)
{
	return de->name[0] == '.' && (de->len == 1 || (de->len == 2 && de->name[1] == '.'));
}

static bool each_dirent(void *arg, const struct vfs_dirent *de)
{
	struct nfs4_listing *l = arg;

	if (dot_or_dotdot(de))
		return true;
	return nfs4_list_dirent(l, de, cookie_out(de->cookie));
}

static unsigned nfs4_readdir_expect(void *arg)
{
	return nfs4_list_expect(arg);
}

static bool each_pseudo(void *arg, const struct nfs4_pseudo_entry *e)
{
	return nfs4_list_pseudo(arg, e);
}

/* Lists the entries behind the cookie that fit. */
static int nfs4_readdir_list(struct nfs4_listing *l, uint64_t cookie, bool *eof)
{
	struct nfs4_compound *c = l->c;
	struct nfs4_place *dir = &c->current;
	const struct vfs_listing to = {
		.each = each_dirent, .expect = nfs4_readdir_expect, .arg = l, .looks = l->wants_file
	};
	int rc;

	if (dir->kind == NFS4_PSEUDO)
		return nfs4_pseudo_each(c, dir, cookie, each_pseudo, l, eof);
	rc = vfs_readdir(&dir->ctx, dir->node, cookie_in(cookie), &to, eof);
	return rc == -EINVAL ? NFS4ERR_BAD_COOKIE : nfs4_status(c->minor, rc);
}

/* Reserves room for the result: the size that is requested, allowed and sensible, or less if memory
 * is short. NFS4_OK and the bytes in *size, or the status to answer. */
static int nfs4_readdir_reserve(struct nfs4_compound *c, uint32_t maxcount, size_t *size)
{
	size_t room = nfs4_reply_room(c);

	*size = rn_min(rn_min(maxcount, c->server->cfg.max_io), room);
	if (*size < LIST_START + LIST_END)
		return maxcount < LIST_START + LIST_END
			       ? NFS4ERR_TOOSMALL
			       : nfs4_reply_too_big(c, LIST_START + LIST_END);
	if (nfs4_reserve_reply(c, *size) == NFS4_OK)
		return NFS4_OK;
	*size = rn_min(*size, nfs4_reply_room_now(c));
	return *size < LIST_START + LIST_END ? NFS4ERR_DELAY : NFS4_OK;
}

/* The status if not even one entry fits. */
static int too_small(const struct nfs4_compound *c, uint32_t maxcount, size_t size)
{
	if (size >= rn_min(maxcount, c->server->cfg.max_io))
		return NFS4ERR_TOOSMALL;
	if (size >= nfs4_reply_room(c))
		return nfs4_reply_too_big(c, nfs4_reply_room(c) + 1);
	return NFS4ERR_DELAY; /* no memory */
}

static int nfs4_readdir_reply(struct nfs4_compound *c, const struct readdir_args *a)
{
	struct nfs4_listing l;
	size_t size, start = xdr_out_pos(c->out);
	bool eof = false;
	int status = nfs4_readdir_reserve(c, a->maxcount, &size);

	if (status != NFS4_OK)
		return status;
	nfs4_listing_init(&l, c, &a->want);
	l.end = start + size - LIST_END;
	l.dir_left = l.dircount = a->dircount ? a->dircount : UINT32_MAX;
	xdr_put_u64(c->out, 0); /* cookieverf */
	l.start = xdr_out_pos(c->out);
	status = nfs4_readdir_list(&l, a->cookie, &eof);
	if (status == NFS4_OK)
		status = l.status;
	/* Entries before a failure are returned; the next call meets the failure again. */
	if (l.entries == 0 && status != NFS4_OK)
		return status;
	if (l.entries == 0 && !eof) {
		xdr_out_rewind(c->out, start);
		return too_small(c, a->maxcount, size);
	}
	xdr_put_bool(c->out, false);
	xdr_put_bool(c->out, status == NFS4_OK && eof);
	return NFS4_OK;
}

static int nfs4_run_readdir(struct nfs4_compound *c, void *args)
{
	struct readdir_args *a = args;
	int status = nfs4_need(c, &c->current, NFS4_NEED_DIR);

	if (status != NFS4_OK)
		return status;
	if ((a->cookie > 0 && a->cookie <= COOKIE_RESERVED) || a->cookie > INT64_MAX)
		return NFS4ERR_BAD_COOKIE;
	if (a->cookie != 0 && a->verifier != 0)
		return NFS4ERR_NOT_SAME;
	status = nfs4_attr_readable(&a->want, nfs4_attr_level(c->server, c->minor));
	return status == NFS4_OK ? nfs4_readdir_reply(c, a) : status;
}

const struct nfs4_op nfs4_op_readdir = {
	.name = "READDIR",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = NFS4_VERIFIER_SIZE + 8,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_NOTDIR | NFS4_E_INVAL),
	.shape = NFS4_SHAPE(8 + NFS4_VERIFIER_SIZE + 8, 1, 0),
	.args_size = sizeof(struct readdir_args),
	.decode = nfs4_decode_readdir,
	.run = nfs4_run_readdir,
};
