/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GET_DIR_DELEGATION (RFC 8881 sections 10.9 and 18.39). The delegation is recalled at the first change by
 * somebody else of which the client has not asked to be told. No wants are registered.
 *
 * Section 18.39.3 has NFS4ERR_DIRDELEG_UNAVAIL for a refusal, and GDD4_UNAVAIL for a client that has
 * the delegation already. But an error ends the COMPOUND, in which clients put the operation beside
 * others. So as in nfsd a refusal is GDD4_UNAVAIL, which the XDR allows, too; a want that is not
 * registered is the error.
 *
 * Of what the client asks to be told this is granted; doc/design/delegations.md says why.
 *
 *	NOTIFY4_ADD_ENTRY, _REMOVE_ENTRY, _RENAME_ENTRY
 *	NOTIFY4_CHANGE_DIR_ATTRS, if the attributes have change among them
 *	of entries: attributes that never change
 *	of the directory: attributes that its entries or SETATTR change, but none of permissions
 */
#include <errno.h>

#include "lib/error.h"
#include "nfs4/deleg/grant.h"
#include "nfs4/state/stateid_check.h"

enum { GDD4_OK = 0, GDD4_UNAVAIL = 1 };

#define BITMAP_MAX (4u + 4u * NFS4_ATTR_WORDS)
/* status, cookie verifier, stateid, three bitmaps */
#define REPLY_MAX (4u + 8u + NFS4_STATEID_SIZE + 3u * BITMAP_MAX)

/* Longest time that attributes wait. A client that asks for more is told earlier. */
#define DELAY_MAX 60u

#define BIT(attr) (1u << (attr) % 32)
/* Attributes of an entry that stay the same for as long as it is there. */
static const uint32_t entry_attrs[NFS4_ATTR_WORDS] = { BIT(FATTR4_TYPE) | BIT(FATTR4_FSID) |
						       BIT(FATTR4_FILEHANDLE) |
						       BIT(FATTR4_FILEID) };
static const uint32_t dir_attrs[NFS4_ATTR_WORDS] = {
	BIT(FATTR4_CHANGE) | BIT(FATTR4_SIZE),
	BIT(FATTR4_NUMLINKS) | BIT(FATTR4_SPACE_USED) | BIT(FATTR4_TIME_METADATA) |
		BIT(FATTR4_TIME_MODIFY),
};

struct get_dir_args {
	bool wants;	    /* to be told when there is one */
	bool bad_delay;	    /* no valid nfstime4 */
	uint32_t types;	    /* bits of enum notify_type4 */
	uint64_t dir_delay; /* seconds */
	struct nfs4_notify_attrs attrs;
};

static uint64_t get_delay(struct xdr_in *x, struct get_dir_args *a)
{
	const int64_t seconds = (int64_t)xdr_get_u64(x);

	if (xdr_get_u32(x) >= 1000000000u)
		a->bad_delay = true;
	return seconds > 0 ? (uint64_t)seconds : 0;
}

/* Bits beyond the words are nothing that this server knows. */
static void get_bitmap(struct xdr_in *x, uint32_t *word, unsigned words)
{
	const size_t n = xdr_get_u32(x);

	for (unsigned i = 0; i < words; i++)
		word[i] = i < n ? xdr_get_u32(x) : 0;
	if (n > words)
		xdr_skip(x, 4 * (n - words));
}

static void decode_get_dir(struct nfs4_compound *c, void *args)
{
	struct get_dir_args *a = args;

	a->wants = xdr_get_bool(c->in);
	get_bitmap(c->in, &a->types, 1);
	get_delay(c->in, a); /* of attributes of entries, whose changes are not told */
	a->dir_delay = get_delay(c->in, a);
	get_bitmap(c->in, a->attrs.entry, NFS4_ATTR_WORDS);
	get_bitmap(c->in, a->attrs.dir, NFS4_ATTR_WORDS);
}

static int get_dir_check(struct nfs4_compound *c, const struct get_dir_args *a)
{
	struct nfs4_place *p = &c->current;
	unsigned granted;
	int status = nfs4_need(c, p, NFS4_NEED_DIR);

	if (status == NFS4_OK && a->bad_delay)
		status = NFS4ERR_INVAL;
	if (status != NFS4_OK || p->kind == NFS4_PSEUDO)
		return status;
	status = nfs4_status(c->minor, vfs_access(&p->ctx, p->node, VFS_MAY_READ, &granted, NULL));
	return status == NFS4_OK && !(granted & VFS_MAY_READ) ? NFS4ERR_ACCESS : status;
}

static bool asks(const struct get_dir_args *a, unsigned type)
{
	return a->types >> type & 1;
}

/* Keeps what can be told. True if there is anything. */
static bool get_dir_keep_supported(uint32_t *word, const uint32_t *supported)
{
	uint32_t all = 0;

	for (unsigned i = 0; i < NFS4_ATTR_WORDS; i++)
		all |= word[i] &= supported[i];
	return all != 0;
}

/*
 * Attributes that are told without change would leave the client unaware of changes that it must know of, such
 * as those of extended attributes.
 */
static struct nfs4_news_wish wish_of(const struct get_dir_args *a)
{
	struct nfs4_news_wish w = {
		.attrs = a->attrs,
		.delay = a->dir_delay < DELAY_MAX ? (uint32_t)a->dir_delay : DELAY_MAX,
	};

	if (asks(a, NOTIFY4_ADD_ENTRY))
		w.kinds |= VFS_NEWS_ADD;
	if (asks(a, NOTIFY4_REMOVE_ENTRY))
		w.kinds |= VFS_NEWS_REMOVE;
	if (asks(a, NOTIFY4_RENAME_ENTRY))
		w.kinds |= VFS_NEWS_RENAME;
	if (get_dir_keep_supported(w.attrs.entry, entry_attrs) &&
	    (w.kinds & (VFS_NEWS_ADD | VFS_NEWS_RENAME)))
		w.kinds |= VFS_NEWS_ENTRY;
	get_dir_keep_supported(w.attrs.dir, dir_attrs);
	if (asks(a, NOTIFY4_CHANGE_DIR_ATTRS) && (w.attrs.dir[0] & BIT(FATTR4_CHANGE)))
		w.kinds |= VFS_NEWS_ATTRS;
	return w;
}

/* 0 or -errno, as nfs4_deleg_give(). The pseudo file system changes with reloads alone, and has no
 * delegations. */
static int get_dir_give_deleg(struct nfs4_compound *c, struct nfs4_news_wish *news,
			      struct nfs4_stateid *sid)
{
	const struct nfs4_deleg_request r = { .place = &c->current, .news = news };

	if (c->current.kind == NFS4_PSEUDO || !nfs4_deleg_is_available(c))
		return -RN_ENOTNOW;
	return nfs4_deleg_give(c, &r, sid);
}

static void put_bitmap(struct xdr_out *x, const uint32_t *word, unsigned words)
{
	while (words > 0 && word[words - 1] == 0)
		words--;
	xdr_put_u32(x, words);
	for (unsigned i = 0; i < words; i++)
		xdr_put_u32(x, word[i]);
}

static uint32_t types_of(unsigned kinds)
{
	return (kinds & VFS_NEWS_ADD ? BIT(NOTIFY4_ADD_ENTRY) : 0) |
	       (kinds & VFS_NEWS_REMOVE ? BIT(NOTIFY4_REMOVE_ENTRY) : 0) |
	       (kinds & VFS_NEWS_RENAME ? BIT(NOTIFY4_RENAME_ENTRY) : 0) |
	       (kinds & VFS_NEWS_ATTRS ? BIT(NOTIFY4_CHANGE_DIR_ATTRS) : 0);
}

static void get_dir_put_deleg(struct nfs4_compound *c, const struct nfs4_news_wish *news,
			      const struct nfs4_stateid *sid)
{
	const uint32_t types = types_of(news->kinds);
	struct xdr_out *x = c->out;

	xdr_put_u32(x, GDD4_OK);
	xdr_put_u64(x, 0); /* the cookie verifier of READDIR, which never changes */
	nfs4_put_stateid(x, sid);
	put_bitmap(x, &types, 1);
	put_bitmap(x, news->attrs.entry, news->kinds & VFS_NEWS_ENTRY ? NFS4_ATTR_WORDS : 0);
	put_bitmap(x, news->attrs.dir, news->kinds & VFS_NEWS_ATTRS ? NFS4_ATTR_WORDS : 0);
	nfs4_set_current_stateid(c, sid);
}

static int run_get_dir(struct nfs4_compound *c, void *args)
{
	const struct get_dir_args *a = args;
	struct nfs4_news_wish news = wish_of(a);
	struct nfs4_stateid sid;
	int status = get_dir_check(c, a), rc;

	if (status != NFS4_OK)
		return status;
	rc = get_dir_give_deleg(c, &news, &sid);
	if (rc == 0) {
		get_dir_put_deleg(c, &news, &sid);
		return NFS4_OK;
	}
	if (a->wants && rc != -EALREADY)
		return NFS4ERR_DIRDELEG_UNAVAIL;
	xdr_put_u32(c->out, GDD4_UNAVAIL);
	xdr_put_bool(c->out, false); /* the client will not be told when there is one */
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_get_dir_delegation = {
	.name = "GET_DIR_DELEGATION",
	.minors = { 1, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = REPLY_MAX,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL | NFS4_E_NOTDIR |
			      NFS4_E_NOTSUPP),
	.args_size = sizeof(struct get_dir_args),
	.decode = decode_get_dir,
	.run = run_get_dir,
};
