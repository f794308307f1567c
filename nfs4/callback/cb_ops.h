/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of callbacks (RFC 8881 section 20, RFC 7862 section 16). */
#ifndef RN_NFS4_CALLBACK_CB_OPS_H
#define RN_NFS4_CALLBACK_CB_OPS_H

#include <stdint.h>

#include "nfs4/callback/callback.h"
#include "nfs4/stateid.h"
#include "vfs/deleg.h"
#include "vfs/types.h"

/* CB_RECALL (RFC 8881 section 20.2): the client is to return a delegation. */

struct nfs4_client;

struct nfs4_recall {
	struct nfs4_cb cb;
	/* Set by the caller; fh must stay until ended() is called. */
	struct nfs4_stateid stateid;
	const uint8_t *fh;
	uint32_t fh_len;
	/* taken: the client has said that it will return the delegation. Otherwise the call may be
	 * repeated: the client cannot be reached, is busy, or does not know the delegation yet
	 * (its OPEN has not been answered there). */
	void (*ended)(struct nfs4_recall *r, bool taken);
};

/* Tells the client, over the callback path that it has. ended() is called once, perhaps before
 * this returns, without locks. The caller holds none of the client's or of a session. */
void nfs4_recall(struct nfs4_client *cl, struct nfs4_recall *r);

/* CB_LAYOUTRECALL (RFC 8881 section 20.3): the client is to return a layout. */

enum nfs4_layout_recall_end {
	NFS4_LAYOUT_TOLD,   /* the client has said that it will return it */
	NFS4_LAYOUT_NONE,   /* the client has no layout of the file */
	NFS4_LAYOUT_UNTOLD, /* the client cannot be reached, or is busy: the call may be repeated */
};

struct nfs4_layout_recall {
	struct nfs4_cb cb;
	/* Set by the caller; fh must stay until ended() is called. */
	struct nfs4_stateid stateid;
	const uint8_t *fh;
	uint32_t fh_len;
	void (*ended)(struct nfs4_layout_recall *r, enum nfs4_layout_recall_end how);
};

/* Tells the client. ended() is called once, perhaps before this returns, without locks. The caller holds none of the client's
 * or of a session. */
void nfs4_layout_recall(struct nfs4_client *cl, struct nfs4_layout_recall *r);

/* CB_NOTIFY_DEVICEID (RFC 8881 section 20.12): a device of flexible file layouts is gone. Nothing depends on the client's answer. The caller
 * holds no lock of the client's or of a session. */
void nfs4_tell_device_gone(struct nfs4_client *cl, const uint8_t id[NFS4_DEVICEID_SIZE]);

/* CB_RECALL_ANY (RFC 8881 section 20.6): the client is to return delegations of its own choice. */

struct nfs4_client;

/* Bits of the type mask. */
#define NFS4_ANY_READ (1u << 0)	 /* RCA4_TYPE_MASK_RDATA_DLG */
#define NFS4_ANY_WRITE (1u << 1) /* RCA4_TYPE_MASK_WDATA_DLG */
#define NFS4_ANY_DIR (1u << 2)	 /* RCA4_TYPE_MASK_DIR_DLG */

struct nfs4_recall_any {
	struct nfs4_cb cb;
	/* Set by the caller; they must stay until ended() is called. */
	uint32_t keep; /* delegations of these types that the client may keep */
	uint32_t types;
	/* taken: the client has said that it will return some. */
	void (*ended)(struct nfs4_recall_any *r, bool taken);
};

/* Asks the client, which is of minor version 1 or 2. ended() is called once, perhaps before this returns,
 * without locks. The caller holds no lock of the client's or of a session. */
void nfs4_recall_any(struct nfs4_client *cl, struct nfs4_recall_any *r);

/* CB_RECALL_SLOT (RFC 8881 section 20.8): the client is to use fewer slots of the session. */

struct nfs4_session;

/* highest is the slot up to which the client may go on. Does not wait; the caller holds a
 * reference and no lock. */
void nfs4_recall_slots(struct nfs4_session *s, uint32_t highest);

/* CB_GETATTR (RFC 8881 section 20.1): asks the holder of a write delegation how the file is by now. */

struct nfs4_client;

/* The file as its holder sees it. */
struct nfs4_held_attrs {
	uint64_t change; /* not the value that the client was given: it has changed the data */
	uint64_t size;	 /* bytes */
};

struct nfs4_cb_getattr {
	struct nfs4_cb cb;
	/* Set by the caller; fh must stay until ended() is called. */
	const uint8_t *fh;
	uint32_t fh_len;
	/* attrs NULL: the client cannot be reached, has refused, or its answer is none. */
	void (*ended)(struct nfs4_cb_getattr *g, const struct nfs4_held_attrs *attrs);
};

/* Asks the client over the callback path that it has. ended() is called once, perhaps before this
 * returns, without locks. The caller holds none of the client's or of a session. */
void nfs4_cb_getattr(struct nfs4_client *cl, struct nfs4_cb_getattr *g);

/* CB_NOTIFY (RFC 8881 section 20.4): changes of a directory that the client has a delegation of. */

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

/* CB_NOTIFY_LOCK (RFC 8881 section 20.11): a lock that was denied may be available. */

struct nfs4_client;

/* Longest owner that fits a callback with the longest filehandle and credential. */
#define NFS4_NOTIFY_OWNER_MAX 256u

struct nfs4_notify_lock {
	struct nfs4_cb cb;
	uint64_t clientid;
	/* Set by the caller; they must stay until ended() is called. */
	const uint8_t *fh, *owner;
	uint32_t fh_len, owner_len;
	void (*ended)(struct nfs4_notify_lock *n, bool told);
};

/* Tells the client, by a session whose callback path works. ended() is called once, perhaps before
 * this returns, without locks; told: the client has answered, and not that it has no time for it
 * (NFS4ERR_DELAY). The caller holds none of the client's or of a session. */
void nfs4_notify_lock(struct nfs4_client *cl, struct nfs4_notify_lock *n);

/* CB_OFFLOAD (RFC 7862 section 16.1): the result of an asynchronous COPY. */

struct nfs4_client;

struct nfs4_offload {
	struct nfs4_cb cb;
	/* Set by the caller; they must stay until ended() is called. */
	const struct vfs_fh *fh; /* destination */
	struct nfs4_stateid sid;
	uint32_t status;    /* nfsstat4 */
	uint64_t count;	    /* bytes copied */
	uint32_t committed; /* stable_how4; if status is NFS4_OK */
	uint64_t verifier;  /* as WRITE's; if status is NFS4_OK */
	/* rc and status as for nfs4_cb_op.done. */
	void (*ended)(struct nfs4_offload *o, int rc, uint32_t status);
};

/* Tells the client over its callback path. ended() is called once, perhaps before
 * this returns, without locks. The caller holds none of the client's or of a session. */
void nfs4_offload_tell(struct nfs4_client *cl, struct nfs4_offload *o);

/* CB_SEQUENCE alone, or CB_NULL: tells whether the callback path of a session or of a minor version 0
 * client works. */

struct nfs4_client;
struct nfs4_session;
struct rpc_server;

/* Tries the path of s. Does not wait; the caller holds a reference and no lock. */
void nfs4_cb_probe(struct nfs4_session *s);
/* Like nfs4_cb_probe(), for the connection to a minor version 0 client (nfs4/client/cb_path.h). */
void nfs4_cb_probe_client(struct nfs4_client *cl, const struct rpc_server *rpc);

#endif
