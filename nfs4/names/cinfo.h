/* SPDX-License-Identifier: BSD-2-Clause */
/* change_info4: a directory's change attribute before and after an operation. It is never reported
 * as atomic: local processes may change the directory in between. */
#ifndef RN_NFS4_CINFO_H
#define RN_NFS4_CINFO_H

#include "rpc/xdr_out.h"
#include "vfs/vfs.h"

#define NFS4_CINFO_SIZE (4u + 8u + 8u) /* bytes */

/* 0 if the attributes cannot be read. */
static inline uint64_t nfs4_change_of(struct vfs_ctx *ctx, struct vfs_node *dir)
{
	struct vfs_attr attr;

	return vfs_getattr(ctx, dir, &attr) == 0 ? attr.change : 0;
}

static inline void nfs4_put_cinfo(struct xdr_out *x, uint64_t before, uint64_t after)
{
	xdr_put_bool(x, false);
	xdr_put_u64(x, before);
	xdr_put_u64(x, after);
}

#endif
