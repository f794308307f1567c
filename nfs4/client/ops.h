/* SPDX-License-Identifier: BSD-2-Clause */
/* Client ids, sessions and slots: the operations of this folder, for the table (nfs4/op_table.h).
 */
#ifndef RN_NFS4_CLIENT_OPS_H
#define RN_NFS4_CLIENT_OPS_H

#include "nfs4/client/sequence.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"

/* callback_sec_parms4<>: credentials of which the server chooses one for its callbacks. */
struct nfs4_cb_security {
	bool plain; /* AUTH_NONE or AUTH_SYS is among them */
	bool gss;   /* so are RPCSEC_GSS handles, of which this server has none */
};
/* NFS4_OK; NFS4ERR_NOENT: there are only handles that the server has not. */
int nfs4_check_cb_security(const struct nfs4_cb_security *s);
void nfs4_get_cb_security(struct xdr_in *x, struct nfs4_cb_security *out);

#endif
