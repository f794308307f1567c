/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of a directory as CB_NOTIFY tells them: notify4 (RFC 8881 section 20.4). */
#include <string.h>

#include "lib/util.h"
#include "nfs4/attr/source.h"
#include "nfs4/deleg/delegations.h"

#define NO_COOKIE 0u

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

uint32_t nfs4_dir_notify_size(const uint8_t *p)
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

/* A notification, and how it is encoded. */
struct telling {
	const struct nfs4_notify_attrs *attrs;
	const struct vfs_dir_notification *notification;
};

/* notify_add4 */
static void put_made(struct xdr_out *x, const struct telling *t, const char *name)
{
	const struct vfs_dir_notification *notification = t->notification;

	xdr_put_u32(x, notification->replaced ? 1 : 0);
	if (notification->replaced)
		put_gone(x, name);
	xdr_put_opaque(x, name, (uint32_t)strlen(name));
	if (notification->attr)
		nfs4_put_notification_attrs(x, t->attrs->entry, notification->fh,
					    notification->attr);
	else
		put_no_attrs(x);
	xdr_put_u32(x, 0);	/* no cookie */
	xdr_put_u32(x, 0);	/* no previous entry */
	xdr_put_bool(x, false); /* not known to be the last */
}

void nfs4_put_entry_notification(const struct nfs4_notify_attrs *attrs,
				 const struct vfs_dir_notification *notification, struct xdr_out *x)
{
	const struct telling t = { attrs, notification };
	size_t at;

	switch (notification->what) {
	case VFS_NOTIFY_REMOVE:
		at = put_begin(x, NOTIFY4_REMOVE_ENTRY);
		put_gone(x, notification->name);
		break;
	case VFS_NOTIFY_RENAME:
		at = put_begin(x, NOTIFY4_RENAME_ENTRY);
		put_gone(x, notification->name);
		put_made(x, &t, notification->to);
		break;
	default:
		at = put_begin(x, NOTIFY4_ADD_ENTRY);
		put_made(x, &t, notification->name);
		break;
	}
	put_end(x, at);
}

/* The directory has no name in itself: that of its notify_entry4 is empty. */
void nfs4_put_dir_notification(const struct nfs4_notify_attrs *attrs, const struct vfs_attr *dir,
			       struct xdr_out *x)
{
	const size_t at = put_begin(x, NOTIFY4_CHANGE_DIR_ATTRS);

	xdr_put_opaque(x, NULL, 0);
	nfs4_put_notification_attrs(x, attrs->dir, NULL, dir);
	put_end(x, at);
}
