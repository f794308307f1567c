/* SPDX-License-Identifier: BSD-2-Clause */
/* channel_attrs4: what a session agrees on (RFC 8881 section 18.36.3). */
#ifndef RN_NFS4_CLIENT_CHANNEL_H
#define RN_NFS4_CLIENT_CHANNEL_H

#include "nfs4/client/session.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

/* A slot keeps replies of up to so many bytes: what changes something is answered in less. */
#define NFS4_CACHED_MOST 8192u

struct nfs4_config;

void nfs4_get_channel(struct xdr_in *x, struct nfs4_channel *out);
void nfs4_put_channel(struct xdr_out *x, const struct nfs4_channel *ch);

/* From what the client offers to what the session will use; slots: the most that it may have to
 * begin with. NFS4_OK or NFS4ERR_TOOSMALL. */
int nfs4_channel_fore(const struct nfs4_config *cfg, uint32_t slots, struct nfs4_channel *ch);
void nfs4_channel_back(struct nfs4_channel *ch);

#endif
