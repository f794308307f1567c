/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes in a callback. */
#ifndef RN_NFS4_ATTR_NOTICE_H
#define RN_NFS4_ATTR_NOTICE_H

#include "nfs4/nfs4_proto.h"
#include "rpc/xdr_out.h"
#include "vfs/types.h"

/* nfs4_hooks.put_attrs */
void nfs4_put_notice_attrs(struct xdr_out *x, const uint32_t mask[NFS4_ATTR_WORDS],
			   const struct vfs_fh *fh, const struct vfs_attr *attr);

#endif
