/* SPDX-License-Identifier: BSD-2-Clause */
/* callback_sec_parms4<>: credentials of which the server chooses one for its callbacks. */
#ifndef RN_NFS4_CLIENT_CALLBACK_SECURITY_H
#define RN_NFS4_CLIENT_CALLBACK_SECURITY_H

#include <stdbool.h>

#include "rpc/xdr_in.h"

struct nfs4_cb_security {
	bool plain; /* AUTH_NONE or AUTH_SYS is among them */
	bool gss;   /* so are RPCSEC_GSS handles, of which this server has none */
};
/* NFS4_OK; NFS4ERR_NOENT: there are only handles that the server has not. */
int nfs4_check_cb_security(const struct nfs4_cb_security *s);
void nfs4_get_cb_security(struct xdr_in *x, struct nfs4_cb_security *out);

#endif
