/* SPDX-License-Identifier: BSD-2-Clause */
/* Identity of callers: principals, addresses, verifiers; private to this folder. */
#ifndef RN_NFS4_CLIENT_ORIGIN_H
#define RN_NFS4_CLIENT_ORIGIN_H

#include "nfs4/client/nfs4_client.h"

struct nfs4_principal nfs4_principal_of(const struct nfs4_compound *c);
bool nfs4_principal_is(const struct nfs4_principal *a, const struct nfs4_principal *b);
void nfs4_origin_init(struct nfs4_client *cl, const struct nfs4_compound *c);
/* Stores the caller's origin, who registers cl, in cl's record. */
void nfs4_origin_record(struct nfs4_client *cl, const struct nfs4_compound *c);
/* True if the call comes from one of cl's addresses. */
bool nfs4_origin_is(struct nfs4_client *cl, const struct nfs4_compound *c);
/* True if the verifier is that of cl. The number of guesses from other addresses is limited.
 * all->lock is held. */
bool nfs4_verifier_is(struct nfs4_client *cl, const struct nfs4_compound *c,
		      const uint8_t verifier[NFS4_VERIFIER_SIZE]);

#endif
