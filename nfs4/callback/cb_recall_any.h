/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_RECALL_ANY (RFC 8881 section 20.6): the client is to return delegations of its own choice. */
#ifndef RN_NFS4_CALLBACK_CB_RECALL_ANY_H
#define RN_NFS4_CALLBACK_CB_RECALL_ANY_H

#include "nfs4/callback/callback.h"

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

#endif
