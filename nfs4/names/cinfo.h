/* SPDX-License-Identifier: BSD-2-Clause */
/* change_info4: a directory's change attribute before and after an operation. A client that is told
 * the two as atomic, and has the first one cached, keeps what it knows of the directory. */
#ifndef RN_NFS4_CINFO_H
#define RN_NFS4_CINFO_H

#include "rpc/xdr_out.h"
#include "vfs/vfs.h"

#define NFS4_CINFO_SIZE (4u + 8u + 8u) /* bytes */

/* Zeroes if the attributes could not be read. */
static inline void nfs4_put_cinfo(struct xdr_out *x, const struct vfs_dir_change *change)
{
	xdr_put_bool(x, change->known && change->atomic);
	xdr_put_u64(x, change->known ? change->before.change : 0);
	xdr_put_u64(x, change->known ? change->after.change : 0);
}

#endif
