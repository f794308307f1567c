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
#include "nfs4/attr/source.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/pseudo/pseudo.h"

/*
 * Entries of a READDIR. If an entry's attributes cannot be read, the entry has rdattr_error if the
 * client asked for that; otherwise the whole READDIR fails. A name that was removed in the meantime
 * is left out.
 */

/* The list of one READDIR while it grows: each entry has its attributes, or an error in their place. */
struct nfs4_listing {
	struct nfs4_compound *c; /* its current filehandle is the directory */
	struct nfs4_bitmap want;
	bool wants_error; /* true if rdattr_error is requested */
	bool wants_file;  /* true if an attribute is requested that the directory does not hold */
	bool wants_fs;
	bool wants_node;   /* true if an attribute needs more than handle and struct vfs_attr */
	size_t start, end; /* positions in c->out where entries begin, and that they may reach */
	uint32_t dircount, dir_left; /* bytes of dircount, and those left of it */
	uint32_t entries;
	int status; /* error that ends the list early; NFS4_OK if it ended for lack of room */
	bool fs_known;
	uint64_t fs_of; /* fsid of the file system that fs describes */
	struct vfs_statfs fs;
};

/* Guesses before the first entry, in bytes: with attributes of a file, without, and what dircount counts. */
#define ENTRY_FILE 220u
#define ENTRY 64u
#define ENTRY_DIR 24u

/* Name and cookie of an entry. */
struct entry {
	const struct vfs_dirent *de; /* NULL: an entry of the pseudo file system */
	const char *name;
	uint32_t len;
	uint64_t cookie;
	uint64_t mounted_on;
};

/* The caller sets start, end, dircount and dir_left. */
static void nfs4_listing_init(struct nfs4_listing *l, struct nfs4_compound *c,
			      const struct nfs4_bitmap *want)
{
	struct nfs4_bitmap rest = *want;

	nfs4_bitmap_remove(&rest, FATTR4_RDATTR_ERROR);
	nfs4_bitmap_remove(&rest, FATTR4_MOUNTED_ON_FILEID);
	memset(l, 0, sizeof(*l));
	l->c = c;
	l->want = *want;
	l->wants_error = nfs4_bitmap_has(want, FATTR4_RDATTR_ERROR);
	l->wants_file = !nfs4_bitmap_empty(&rest);
	l->wants_fs = nfs4_attr_needs(want) & NFS4_ATTR_FS;
	l->wants_node = nfs4_attr_needs(want) & NFS4_ATTR_OF_NODE;
}

/* Puts an entry. False: no room; nothing is put. */
static bool nfs4_listing_put_entry(struct nfs4_listing *l, const struct entry *e,
				   const struct nfs4_bitmap *have,
				   const struct nfs4_attr_source *src)
{
	struct xdr_out *x = l->c->out;
	size_t start = xdr_out_pos(x);
	uint32_t dir_size = 8u + 4u + e->len + rn_xdr_pad(e->len);

	if (dir_size > l->dir_left && l->entries > 0)
		return false;
	xdr_put_bool(x, true);
	xdr_put_u64(x, e->cookie);
	xdr_put_opaque(x, e->name, e->len);
	nfs4_put_fattr(x, have, src);
	if (x->overflow || xdr_out_pos(x) > l->end) {
		xdr_out_rewind(x, start);
		return false;
	}
	l->dir_left -= (uint32_t)rn_min(dir_size, l->dir_left);
	l->entries++;
	return true;
}

/* Puts an entry with rdattr_error as its only attribute. */
static bool put_failed(struct nfs4_listing *l, const struct entry *e, int status)
{
	struct nfs4_attr_source src;
	struct nfs4_bitmap have = { 0 };

	status = nfs4_doubt(l->c, status);
	if (!l->wants_error) {
		l->status = status;
		return false;
	}
	nfs4_attr_source_init(l->c, &src);
	src.rdattr_error = (uint32_t)status;
	src.mounted_on = e->mounted_on;
	nfs4_bitmap_add(&have, FATTR4_RDATTR_ERROR);
	if (nfs4_bitmap_has(&l->want, FATTR4_MOUNTED_ON_FILEID))
		nfs4_bitmap_add(&have, FATTR4_MOUNTED_ON_FILEID);
	return nfs4_listing_put_entry(l, e, &have, &src);
}

/* Puts an entry that has a filehandle of its own; p is borrowed. */
static bool put_object(struct nfs4_listing *l, const struct entry *e, struct nfs4_object *p)
{
	struct nfs4_bitmap want = l->want;
	struct nfs4_attr_source src;
	int status = nfs4_object_usable(p);

	if (status == NFS4_OK)
		status = nfs4_attr_source_of(l->c, p, &want, &src);
	if (status != NFS4_OK)
		return put_failed(l, e, status);
	src.mounted_on = e->mounted_on;
	return nfs4_listing_put_entry(l, e, &want, &src);
}

/* Reads the file system attributes of an entry. Its file system is nearly always the directory's,
 * which is read once. */
static int nfs4_listing_get_fs(struct nfs4_listing *l, const struct entry *e,
			       struct nfs4_attr_source *src)
{
	struct nfs4_object *dir = &l->c->current;
	struct vfs_node *n;
	int rc;

	if (!l->fs_known || l->fs_of != src->attr.fsid) {
		rc = vfs_lookup(&dir->ctx, dir->node, e->name, e->len, &n, NULL);
		if (rc == 0) {
			rc = vfs_statfs(&dir->ctx, n, &l->fs);
			vfs_node_put(n);
		}
		if (rc != 0)
			return rc;
		l->fs_of = src->attr.fsid;
		l->fs_known = true;
	}
	src->fs = l->fs;
	return 0;
}

static int nfs4_listing_get_file(struct nfs4_listing *l, const struct entry *e,
				 struct nfs4_attr_source *src)
{
	struct nfs4_object *dir = &l->c->current;
	int rc = vfs_peek_entry(&dir->ctx, dir->node, e->de, &src->fh, &src->attr);

	if (rc == 0 && l->wants_fs)
		rc = nfs4_listing_get_fs(l, e, src);
	return rc;
}

/* Reads the attributes that require an open node. */
static int get_node(struct nfs4_listing *l, const struct entry *e, struct nfs4_bitmap *want,
		    struct nfs4_attr_source *src)
{
	struct nfs4_object *dir = &l->c->current;
	struct vfs_node *n;
	int rc, status;

	if (!l->wants_node)
		return NFS4_OK;
	rc = vfs_lookup(&dir->ctx, dir->node, e->name, e->len, &n, NULL);
	if (rc != 0)
		return nfs4_status(l->c->minor, rc);
	status = nfs4_attr_source_node(&dir->ctx, n, want, src);
	vfs_node_put(n);
	return status;
}

static bool nfs4_listing_put_file(struct nfs4_listing *l, const struct entry *e)
{
	struct nfs4_compound *c = l->c;
	struct nfs4_bitmap want = l->want;
	struct nfs4_attr_source src;
	struct nfs4_object other = { .kind = NFS4_NOWHERE };
	struct nfs_entry step = { .name = e->name, .len = e->len, .found = &src.fh };
	int rc, status;
	bool ok;

	nfs4_attr_source_init(c, &src);
	rc = nfs4_listing_get_file(l, e, &src);
	if (rc == -ENOENT)
		return true;
	if (rc != 0)
		return put_failed(l, e, nfs4_status(c->minor, rc));
	if (nfs4_cross_down(c, &step, &other, &status)) {
		if (status != NFS4_OK)
			return put_failed(l, e, status);
		ok = put_object(l, e, &other);
		nfs4_object_clear(&other);
		/* The listing goes on in the file system of its directory, even if that one does not answer: then it gets stuck
		 * at one of its workers. */
		nfs4_object_enter(c, &c->current);
		return ok;
	}
	src.object = &c->current;
	status = get_node(l, e, &want, &src);
	if (status != NFS4_OK)
		return put_failed(l, e, status);
	src.mounted_on = e->mounted_on;
	nfs4_attr_source_names(c, &want, &src);
	return nfs4_listing_put_entry(l, e, &want, &src);
}

/* Entries of average size that there is room for. */
static unsigned nfs4_list_expect(const struct nfs4_listing *l)
{
	const size_t pos = xdr_out_pos(l->c->out);
	size_t whole = l->wants_file ? ENTRY_FILE : ENTRY, dir = ENTRY_DIR, n;

	if (l->status != NFS4_OK)
		return 0;
	if (l->entries > 0) {
		whole = (pos - l->start) / l->entries;
		dir = rn_max((l->dircount - l->dir_left) / l->entries, 1);
	}
	n = pos < l->end ? rn_min((l->end - pos) / whole, l->dir_left / dir) : 0;
	return n == 0 && l->entries == 0 ? 1 : (unsigned)n;
}

/* False: there was no room, or status has the error. cookie goes to the client. */
static bool nfs4_list_dirent(struct nfs4_listing *l, const struct vfs_dirent *de, uint64_t cookie)
{
	struct entry e = {
		.de = de,
		.name = de->name,
		.len = de->len,
		.cookie = cookie,
		.mounted_on = de->fileid,
	};
	struct nfs4_attr_source src;

	if (l->wants_file)
		return nfs4_listing_put_file(l, &e);
	nfs4_attr_source_init(l->c, &src);
	src.mounted_on = e.mounted_on;
	return nfs4_listing_put_entry(l, &e, &l->want, &src);
}

static bool nfs4_list_pseudo(struct nfs4_listing *l, const struct nfs4_pseudo_entry *pe)
{
	struct entry e = {
		.name = pe->name, .len = pe->len, .cookie = pe->cookie, .mounted_on = pe->mounted_on
	};
	struct nfs4_object p;

	if (pe->status != NFS4_OK)
		return put_failed(l, &e, pe->status);
	p = *pe->object; /* a borrowed copy, since vfs/ changes its context */
	return put_object(l, &e, &p);
}

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
	struct nfs4_object *dir = &c->current;
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
	size_t room = nfs4_reply_space(c);

	*size = rn_min(rn_min(maxcount, c->server->cfg.max_io), room);
	if (*size < LIST_START + LIST_END)
		return maxcount < LIST_START + LIST_END
			       ? NFS4ERR_TOOSMALL
			       : nfs4_reply_too_big(c, LIST_START + LIST_END);
	if (nfs4_reserve_reply(c, *size) == NFS4_OK)
		return NFS4_OK;
	*size = rn_min(*size, nfs4_reply_space_now(c));
	return *size < LIST_START + LIST_END ? NFS4ERR_DELAY : NFS4_OK;
}

/* The status if not even one entry fits. */
static int too_small(const struct nfs4_compound *c, uint32_t maxcount, size_t size)
{
	if (size >= rn_min(maxcount, c->server->cfg.max_io))
		return NFS4ERR_TOOSMALL;
	if (size >= nfs4_reply_space(c))
		return nfs4_reply_too_big(c, nfs4_reply_space(c) + 1);
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
