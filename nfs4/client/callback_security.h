/* SPDX-License-Identifier: BSD-2-Clause */
/* callback_sec_parms4<>: credentials that a client offers for the server's callbacks. */
#ifndef RN_NFS4_CLIENT_CALLBACK_SECURITY_H
#define RN_NFS4_CLIENT_CALLBACK_SECURITY_H

#include <stdbool.h>

#include "rpc/message.h"
#include "rpc/security.h"

#define NFS4_CB_OFFERS 4u /* contexts that are looked at */

struct nfs4_compound;

struct nfs4_cb_security {
	bool plain; /* true if AUTH_NONE or AUTH_SYS is offered */
	/* The RPCSEC_GSS contexts that are offered, the first ones. The handles last as long as the arguments. */
	uint32_t noffers;
	struct rpc_cb_auth_offer offer[NFS4_CB_OFFERS];
	/* By the first of them that is known here, a reference: protects callbacks. NULL: the credential below is used. */
	struct rpc_cb_auth *auth;
	/* The first of the plain ones, as nfsd takes it. */
	enum rpc_auth_flavor flavor;
	uint32_t len; /* bytes of body */
	uint8_t body[RPC_AUTH_BYTES_MAX];
};
/* Chooses among what is offered. NFS4_OK, or NFS4ERR_NOENT if that is only RPCSEC_GSS handles which the caller does not have
 * here. */
int nfs4_choose_cb_security(const struct nfs4_compound *c, struct nfs4_cb_security *s);
/* Puts auth. */
void nfs4_cb_security_clear(struct nfs4_cb_security *s);
void nfs4_get_cb_security(struct xdr_in *x, struct nfs4_cb_security *out);

#endif
