/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cookie says where a READDIR goes on, and neither it nor the entry's neighbour can be known without
 * reading the directory. So no new cookie and no previous entry are given, and the cookie of an entry
 * that has gone, which the XDR has no way to leave out, is 0: READDIR never returns that (RFC 8881
 * section 18.23.3).
 */
#include "nfs4/callback/cb_notify.h"

#include <string.h>

#include "lib/util.h"
#include "nfs4/nfs4_private.h"

#define NO_COOKIE 0u

static void cb_notify_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_notify *n = rn_container_of(cb, const struct nfs4_notify, cb);

	nfs4_put_stateid(x, &n->stateid);
	xdr_put_opaque(x, n->fh, n->fh_len);
	xdr_put_u32(x, n->count);
	xdr_put_fixed(x, n->changes, n->len);
}

static void cb_notify_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_notify *n = rn_container_of(cb, struct nfs4_notify, cb);

	(void)results;
	n->ended(n, rc, status);
}

static const struct nfs4_cb_op notify_op = {
	.name = "CB_NOTIFY",
	.opnum = OP_CB_NOTIFY,
	.encode = cb_notify_encode,
	.done = cb_notify_done,
};

void nfs4_notify_tell(struct nfs4_client *cl, struct nfs4_notify *n)
{
	nfs4_cb_call(&n->cb, &notify_op, cl);
}

/* A notify4 up to its values. Returns the position of their length, for put_end. */
static size_t put_begin(struct xdr_out *x, unsigned type)
{
	size_t at;

	xdr_put_u32(x, 1); /* words of notify_mask */
	xdr_put_u32(x, 1u << type);
	at = xdr_out_pos(x);
	xdr_put_u32(x, 0);
	return at;
}

/* Values of any type are whole words. */
static void put_end(struct xdr_out *x, size_t at)
{
	if (!x->overflow)
		xdr_patch_u32(x, at, (uint32_t)(xdr_out_pos(x) - at - 4));
}

uint32_t nfs4_news_size(const uint8_t *p)
{
	return 12u + rn_get32(p + 8);
}

static void put_no_attrs(struct xdr_out *x)
{
	xdr_put_u32(x, 0); /* words of attrmask */
	xdr_put_u32(x, 0); /* bytes of attr_vals */
}

/* notify_remove4 */
static void put_gone(struct xdr_out *x, const char *name)
{
	xdr_put_opaque(x, name, (uint32_t)strlen(name));
	put_no_attrs(x);
	xdr_put_u64(x, NO_COOKIE);
}

/* News and how to tell them. */
struct telling {
	const struct nfs4_server *srv;
	const struct nfs4_notify_attrs *attrs;
	const struct vfs_dir_news *news;
};

/* notify_add4 */
static void put_made(struct xdr_out *x, const struct telling *t, const char *name)
{
	const struct vfs_dir_news *news = t->news;

	xdr_put_u32(x, news->replaced ? 1 : 0);
	if (news->replaced)
		put_gone(x, name);
	xdr_put_opaque(x, name, (uint32_t)strlen(name));
	if (news->attr)
		t->srv->hooks->put_attrs(x, t->attrs->entry, news->fh, news->attr);
	else
		put_no_attrs(x);
	xdr_put_u32(x, 0);	/* no cookie */
	xdr_put_u32(x, 0);	/* no previous entry */
	xdr_put_bool(x, false); /* not known to be the last */
}

void nfs4_put_entry_news(const struct nfs4_server *srv, const struct nfs4_notify_attrs *attrs,
			 const struct vfs_dir_news *news, struct xdr_out *x)
{
	const struct telling t = { srv, attrs, news };
	size_t at;

	switch (news->what) {
	case VFS_NEWS_REMOVE:
		at = put_begin(x, NOTIFY4_REMOVE_ENTRY);
		put_gone(x, news->name);
		break;
	case VFS_NEWS_RENAME:
		at = put_begin(x, NOTIFY4_RENAME_ENTRY);
		put_gone(x, news->name);
		put_made(x, &t, news->to);
		break;
	default:
		at = put_begin(x, NOTIFY4_ADD_ENTRY);
		put_made(x, &t, news->name);
		break;
	}
	put_end(x, at);
}

/* The directory has no name in itself: that of its notify_entry4 is empty. */
void nfs4_put_dir_news(const struct nfs4_server *srv, const struct nfs4_notify_attrs *attrs,
		       const struct vfs_attr *dir, struct xdr_out *x)
{
	const size_t at = put_begin(x, NOTIFY4_CHANGE_DIR_ATTRS);

	xdr_put_opaque(x, NULL, 0);
	srv->hooks->put_attrs(x, attrs->dir, NULL, dir);
	put_end(x, at);
}
