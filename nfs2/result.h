/* SPDX-License-Identifier: BSD-2-Clause */
/* Statuses and attributes of NFSv2's results. */
#ifndef RN_NFS2_RESULT_H
#define RN_NFS2_RESULT_H

#include "nfs2/nfs2_proto.h"
#include "nfs3/op.h"

/* The status that tells of rc, 0 or negative, in the RFC's list; IO for what it has no word for. */
enum nfsstat2 nfs2_status(int rc);
/* Puts the status word of rc; true if it is NFS2_OK. */
bool nfs2_put_status(struct nfs3_op *op, int rc);
void nfs2_put_fattr(struct xdr_out *x, const struct vfs_attr *a);
/* Puts attrstat of op->node[0] and op->attr, which it reads if rc is 0. Returns the failure, or 0. */
int nfs2_put_attrstat(struct nfs3_op *op, int rc);
/* Puts diropres of op->node[1] and op->attr. */
void nfs2_put_diropres(struct nfs3_op *op, int rc);
/* nfs3_op_check_shares() for NFSv2, which has no status for "come again" (RFC 1094 section 2.3.1): it waits
 * where that answers -RN_EGRACE. */
int nfs2_check_shares(struct nfs3_op *op, uint8_t access);
/* A number of 64 bits in 32: small ones stay what they are. For inode numbers and ids of file systems. */
uint32_t nfs2_fold(uint64_t number);

#endif
