/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From -errno to nfsstat3, for each procedure.
 */
#ifndef RN_NFS3_NFS3_STATUS_H
#define RN_NFS3_NFS3_STATUS_H

#include <stdint.h>

#include "lib/error.h"
#include "nfs3/nfs3_proto.h"

/* Failures of these protocols alone, beside those of lib/error.h. */
enum nfs3_error {
	NFS3_ETOOSMALL = RN_ERRORS_END, /* READDIR: not even one entry fits */
	NFS3_EBADCOOKIE,
	NFS3_EBADTYPE,
	NFS3_EWEAKAUTH, /* refused at the RPC level: AUTH_TOOWEAK */
	NFS3_ETOOLONG, /* refused at the RPC level: the reply does not fit what the client offered */
};

struct nfs3_proc;
/* rc is 0 or negative. Never a status that proc may not answer. */
enum nfsstat3 nfs3_status(const struct nfs3_proc *proc, int rc);

#endif
