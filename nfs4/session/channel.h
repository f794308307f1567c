/* SPDX-License-Identifier: BSD-2-Clause */
/* channel_attrs4: the limits that a session negotiates (RFC 8881 section 18.36.3). */
#ifndef RN_NFS4_SESSION_CHANNEL_H
#define RN_NFS4_SESSION_CHANNEL_H

#include "nfs4/client/session.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

/* Largest reply in bytes that a slot keeps. Replies of operations that change something are
 * smaller. */
#define NFS4_CACHED_MOST 8192u

struct nfs4_config;

void nfs4_get_channel(struct xdr_in *x, struct nfs4_channel *out);
void nfs4_put_channel(struct xdr_out *x, const struct nfs4_channel *ch);

/* Turns the fore channel that the client offers into the one that the session will use. slots:
 * limit of its slots at the start. NFS4_OK or NFS4ERR_TOOSMALL. */
int nfs4_channel_fore(const struct nfs4_config *cfg, uint32_t slots, struct nfs4_channel *ch);
/* The same for the back channel, whether a connection is bound to it now or later.
 * NFS4ERR_TOOSMALL: a CB_SEQUENCE and one operation cannot be sent and answered within its limits. One
 * for no requests is no back channel. */
int nfs4_channel_back(struct nfs4_channel *ch);

#endif
