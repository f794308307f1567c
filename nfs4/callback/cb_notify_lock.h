/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_NOTIFY_LOCK (RFC 8881 section 20.11): a lock that was denied may be available. */
#ifndef RN_NFS4_CALLBACK_CB_NOTIFY_LOCK_H
#define RN_NFS4_CALLBACK_CB_NOTIFY_LOCK_H

#include "nfs4/callback/callback.h"

struct nfs4_client;

/* Longest owner that fits a callback with the longest filehandle and credential. */
#define NFS4_NOTIFY_OWNER_MAX 256u

struct nfs4_notify_lock {
	struct nfs4_cb cb;
	uint64_t clientid;
	/* Set by the caller; they must stay until ended() is called. */
	const uint8_t *fh, *owner;
	uint32_t fh_len, owner_len;
	void (*ended)(struct nfs4_notify_lock *n);
};

/* Tells the client, by a session whose callback path works. ended() is called once, perhaps before
 * this returns, without locks. The caller holds none of the client's or of a session. */
void nfs4_notify_lock(struct nfs4_client *cl, struct nfs4_notify_lock *n);

#endif
