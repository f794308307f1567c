/* SPDX-License-Identifier: BSD-2-Clause */
/* callback_sec_parms4<>: credentials that a client offers for the server's callbacks. */
#ifndef RN_NFS4_CLIENT_CALLBACK_SECURITY_H
#define RN_NFS4_CLIENT_CALLBACK_SECURITY_H

#include <stdbool.h>

#include "rpc/message.h"

struct nfs4_cb_security {
	bool plain; /* true if AUTH_NONE or AUTH_SYS is offered */
	bool gss;   /* true if an RPCSEC_GSS handle is offered; this server has no such handles */
	/* The first of the plain ones, as nfsd takes it: the credential of callbacks. */
	enum rpc_auth_flavor flavor;
	uint32_t len; /* bytes of body */
	uint8_t body[RPC_AUTH_BYTES_MAX];
};
/* NFS4_OK, or NFS4ERR_NOENT if the client offers only RPCSEC_GSS handles. */
int nfs4_check_cb_security(const struct nfs4_cb_security *s);
void nfs4_get_cb_security(struct xdr_in *x, struct nfs4_cb_security *out);

#endif
