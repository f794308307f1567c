/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From -errno to nfsstat3, for each procedure.
 */
#ifndef RN_NFS3_STATUS_H
#define RN_NFS3_STATUS_H

#include <stdint.h>

#include "nfs3/proto.h"

/* Failures that have no errno of their own. They are outside of the kernel's range, so that none
 * can be mistaken. */
#define NFS3_ETOOSMALL 10005 /* READDIR: not even one entry fits */
#define NFS3_EBADCOOKIE 10003
#define NFS3_EBADTYPE 10007
/* Nothing was done, and the call may wait: for what another client holds and will soon have given back, or for the name
 * service. As EAGAIN if it has waited. */
#define NFS3_EHELD 20000
#define NFS3_EUNNAMED 20010
#define NFS3_EWEAKAUTH 20001 /* refused at the RPC level: AUTH_TOOWEAK */
#define NFS3_ETOOLONG                                                                              \
	20002 /* refused at the RPC level: the reply does not fit what the client offered */

struct nfs3_proc;
/* rc is 0 or negative. Never a status that proc may not answer. */
enum nfsstat3 nfs3_status(const struct nfs3_proc *proc, int rc);

#endif
