/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_NOTIFY (RFC 8881 section 20.4): changes of a directory that the client has a delegation of. */
#ifndef RN_NFS4_CALLBACK_CB_NOTIFY_H
#define RN_NFS4_CALLBACK_CB_NOTIFY_H

#include "nfs4/callback/callback.h"
#include "nfs4/stateid.h"
#include "vfs/deleg.h"

struct nfs4_client;

/* enum notify_type4: bits of a bitmap4. */
enum {
	NOTIFY4_CHANGE_CHILD_ATTRS = 0,
	NOTIFY4_CHANGE_DIR_ATTRS = 1,
	NOTIFY4_REMOVE_ENTRY = 2,
	NOTIFY4_ADD_ENTRY = 3,
	NOTIFY4_RENAME_ENTRY = 4,
	NOTIFY4_CHANGE_COOKIE_VERIFIER = 5,
};

/* Bytes of changes in one call at most. The longest change fits: three names of 255 bytes. */
#define NFS4_NOTIFY_BATCH 1280u

struct nfs4_notify {
	struct nfs4_cb cb;
	/* Set by the caller; they must stay until ended() is called. */
	struct nfs4_stateid stateid;
	const uint8_t *fh;
	uint32_t fh_len;
	uint32_t count; /* of changes: notify4s */
	uint32_t len;	/* their bytes */
	uint8_t changes[NFS4_NOTIFY_BATCH];
	/* rc and status as for nfs4_cb_op.done. */
	void (*ended)(struct nfs4_notify *n, int rc, uint32_t status);
};

/* Tells the client over its callback path. ended() is called once, perhaps before
 * this returns, without locks. The caller holds none of the client's or of a session. */
void nfs4_notify_tell(struct nfs4_client *cl, struct nfs4_notify *n);

/* Attributes that changes are told with: words of a bitmap4. */
struct nfs4_notify_attrs {
	uint32_t entry[NFS4_ATTR_WORDS], dir[NFS4_ATTR_WORDS];
};

/* Puts a notify4 for a change of an entry. The attributes are those of news->attr, none if that is NULL. */
void nfs4_put_entry_news(const struct nfs4_server *srv, const struct nfs4_notify_attrs *attrs,
			 const struct vfs_dir_news *news, struct xdr_out *x);
/* Puts a notify4 of the directory's own attributes. */
void nfs4_put_dir_news(const struct nfs4_server *srv, const struct nfs4_notify_attrs *attrs,
		       const struct vfs_attr *dir, struct xdr_out *x);
/* Bytes of the first of the changes at p, as put above. */
uint32_t nfs4_news_size(const uint8_t *p);

#endif
