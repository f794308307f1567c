/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_OFFLOAD (RFC 7862 section 16.1): the result of an asynchronous COPY. */
#ifndef RN_NFS4_CALLBACK_CB_OFFLOAD_H
#define RN_NFS4_CALLBACK_CB_OFFLOAD_H

#include "nfs4/callback/callback.h"
#include "nfs4/stateid.h"
#include "vfs/types.h"

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

#endif
