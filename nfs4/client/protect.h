/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State protection by a machine credential, SP4_MACH_CRED (RFC 8881 section 18.35.3): the principal of
 * EXCHANGE_ID, by RPCSEC_GSS with integrity or privacy. Operations whose rows say so are for that credential
 * only. Others may be sent with it for a user whose own credential is gone.
 */
#ifndef RN_NFS4_CLIENT_PROTECT_H
#define RN_NFS4_CLIENT_PROTECT_H

#include <stdbool.h>
#include <stdint.h>

struct nfs4_client;
struct nfs4_compound;
struct xdr_in;
struct xdr_out;

/* state_protect_ops4, as far as this server takes part: bit n is operation n. The default is SP4_NONE. */
struct nfs4_protect {
	bool machine; /* SP4_MACH_CRED */
	uint64_t enforce, allow;
};

/* Longest result of nfs4_put_protect() behind the word that tells the kind, in bytes. */
#define NFS4_PROTECT_SIZE (2u * (4u + 2u * 4u))

/* Reads both bitmaps as the client asks for them. */
void nfs4_get_protect(struct xdr_in *x, struct nfs4_protect *out);
/* Changes it to what is granted, in c's minor version. */
void nfs4_grant_protect(const struct nfs4_compound *c, struct nfs4_protect *p);
/* Puts a state_protect4_r. */
void nfs4_put_protect(struct xdr_out *x, const struct nfs4_protect *p);

/* True if the caller has a credential of the kind that a machine credential must be. */
bool nfs4_is_machine(const struct nfs4_compound *c);

/* True if the caller is the principal that registered cl, and uses the machine credential if cl's state is
 * protected by that. */
bool nfs4_may_manage(const struct nfs4_compound *c, const struct nfs4_client *cl);
/* Like nfs4_may_manage(), but anybody may if the client has not asked for the operation's protection. */
bool nfs4_may_manage_by(const struct nfs4_compound *c, const struct nfs4_client *cl,
			uint32_t opnum);

/* True if the caller uses the machine credential of its client, and the operations that follow are such as
 * may be sent with it in the place of any user's (RFC 8881 section 18.35.3). */
bool nfs4_machine_may(const struct nfs4_compound *c);

#endif
