/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers and the clients that they say they are, for the files of this folder. */
#ifndef RN_NFS4_CLIENT_ORIGIN_H
#define RN_NFS4_CLIENT_ORIGIN_H

#include "nfs4/client/client.h"

struct nfs4_principal nfs4_principal_of(const struct nfs4_compound *c);
bool nfs4_principal_is(const struct nfs4_principal *a, const struct nfs4_principal *b);
void nfs4_origin_init(struct nfs4_client *cl, const struct nfs4_compound *c);
/* Puts the caller, who registers cl, into cl's record. */
void nfs4_origin_record(struct nfs4_client *cl, const struct nfs4_compound *c);
/* True if the call comes from an address of cl's own. */
bool nfs4_origin_is(struct nfs4_client *cl, const struct nfs4_compound *c);
/* True if it is the verifier of cl. From elsewhere only so many guesses are looked at. all->lock is
 * held. */
bool nfs4_verifier_is(struct nfs4_client *cl, const struct nfs4_compound *c,
		      const uint8_t verifier[NFS4_VERIFIER_SIZE]);
/* May the caller have the name of cl, which is confirmed, and end what cl has? NFS4_OK,
 * NFS4ERR_CLID_INUSE, or NFS4ERR_DELAY: until it is known whether cl still lives. all->lock is
 * held. */
int nfs4_client_contest(struct nfs4_client *cl, const struct nfs4_compound *c);
/* May fresh, which is to be registered, have its name while a client of that name may reclaim?
 * NFS4_OK or NFS4ERR_DELAY. all->lock is held. */
int nfs4_client_contest_record(struct nfs4_client *fresh, const struct nfs4_compound *c);

#endif
