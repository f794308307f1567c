/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments of SETACL in both versions of NFSACL. */
#ifndef RN_NFS3_ACL_STEPS_H
#define RN_NFS3_ACL_STEPS_H

#include "rpc/xdr_in.h"
#include "vfs/types.h"

/* The secattr of a call of SETACL. The lists stay in the message: the arena has no room for the longest. */
struct nfsacl_change {
	uint32_t mask;
	struct xdr_in lists; /* stands at the lists, which have been checked */
};

struct nfsacl_setacl_args {
	struct vfs_fh fh;
	struct nfsacl_change change;
};

/* Checks a secattr and moves x over it. Sets x->err for one that breaks the protocol's rules. */
void nfsacl_get_change(struct xdr_in *x, struct nfsacl_change *c);

#endif
