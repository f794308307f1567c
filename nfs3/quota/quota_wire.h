/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding of struct rquota. */
#ifndef RN_NFS3_QUOTA_WIRE_H
#define RN_NFS3_QUOTA_WIRE_H

#include "nfs3/quota/rquota.h"
#include "rpc/xdr_out.h"
#include "vfs/quota.h"

/* now: seconds since 1970. Limits and use have 32 bits each, so that the unit of blocks grows with
 * the largest of them. */
void rquota_put(struct xdr_out *x, const struct vfs_quota_row *row, int64_t now);

#endif
