/* SPDX-License-Identifier: BSD-2-Clause */
/* The step that NFSv3's ACCESS and that of NFSACL version 2 share. */
#ifndef RN_NFS3_ACCESS_H
#define RN_NFS3_ACCESS_H

#include "nfs3/op.h"

/* Finds which of the bits ACCESS3_* in want the caller has for node[0], and its attributes. 0 or -errno. */
int nfs3_access(struct nfs3_op *op, uint32_t want, uint32_t *granted, struct vfs_attr *attr);

#endif
