/* SPDX-License-Identifier: BSD-2-Clause */
/* From -errno of vfs/ to nfsstat4. */
#ifndef RN_NFS4_STATUS_H
#define RN_NFS4_STATUS_H

#include "nfs4/proto.h"

/* rc is 0 or -errno. Minor version 0 does not know all that 1 and 2 do. */
int nfs4_status(uint32_t minor, int rc);

struct nfs4_op;
/* Status itself if op may answer it (op->errors), or the nearest one that op may answer. op NULL:
 * no operation has that number. */
int nfs4_status_for(const struct nfs4_op *op, uint32_t minor, int status);

#endif
