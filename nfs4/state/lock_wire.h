/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding shared by LOCK, LOCKT, LOCKU and OPEN. */
#ifndef RN_NFS4_STATE_LOCK_WIRE_H
#define RN_NFS4_STATE_LOCK_WIRE_H

#include "nfs4/compound.h"
#include "vfs/lock.h"

enum nfs4_lock_type { NFS4_READ_LT = 1, NFS4_WRITE_LT, NFS4_READW_LT, NFS4_WRITEW_LT };

/* Any other value sets c->in->err. */
uint32_t nfs4_get_lock_type(struct nfs4_compound *c);

/*
 * NFS4ERR_INVAL if the range is empty or ends beyond the largest offset (RFC 8881 section 18.10.3).
 */
int nfs4_check_range(uint64_t offset, uint64_t length);

/* The lock type that vfs/ uses. */
enum vfs_lock_type nfs4_vfs_lock_type(uint32_t type);

/* Puts the LOCK4denied of a conflict. Returns NFS4ERR_DENIED. */
int nfs4_put_denied(struct nfs4_compound *c, const struct vfs_conflict *cf);

#endif
