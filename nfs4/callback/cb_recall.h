/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_RECALL (RFC 8881 section 20.2): the client is to return a delegation. */
#ifndef RN_NFS4_CALLBACK_CB_RECALL_H
#define RN_NFS4_CALLBACK_CB_RECALL_H

#include "nfs4/callback/callback.h"
#include "nfs4/stateid.h"

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

#endif
