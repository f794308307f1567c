/* SPDX-License-Identifier: BSD-2-Clause */
/* Translates -errno of vfs/ into nfsstat4. */
#ifndef RN_NFS4_STATUS_H
#define RN_NFS4_STATUS_H

#include "nfs4/proto.h"

/* rc is 0 or -errno. Minor version 0 has fewer status codes than 1 and 2. */
int nfs4_status(uint32_t minor, int rc);

struct nfs4_op;
/* Returns status if op may return it (op->errors), else the nearest that it may. op NULL: an
 * illegal operation number. */
int nfs4_status_for(const struct nfs4_op *op, uint32_t minor, int status);

#endif
