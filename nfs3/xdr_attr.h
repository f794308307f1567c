/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoding of the attribute structures that nearly every NFSv3 result has (RFC 1813 section 2.5).
 */
#ifndef RN_NFS3_XDR_ATTR_H
#define RN_NFS3_XDR_ATTR_H

#include "nfs3/nfs3_proto.h"
#include "rpc/xdr_out.h"
#include "vfs/types.h"

void nfs3_put_fattr(struct xdr_out *x, const struct vfs_attr *a);
/* post_op_attr; NULL: none to give. */
void nfs3_put_post_op_attr(struct xdr_out *x, const struct vfs_attr *a);
void nfs3_put_post_op_fh(struct xdr_out *x, const struct vfs_fh *fh); /* NULL: none */
/*
 * wcc_data. A client takes what changed between the two for its own doing, and keeps what it has
 * cached. So before is NULL unless nobody else changed the object in between (RFC 1813,
 * "wcc_data").
 */
void nfs3_put_wcc(struct xdr_out *x, const struct vfs_attr *before, const struct vfs_attr *after);

#endif
