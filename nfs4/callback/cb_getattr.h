/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_GETATTR (RFC 8881 section 20.1): asks the holder of a write delegation how the file is by now. */
#ifndef RN_NFS4_CALLBACK_CB_GETATTR_H
#define RN_NFS4_CALLBACK_CB_GETATTR_H

#include "nfs4/callback/callback.h"

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

#endif
