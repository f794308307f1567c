/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks over the operations of a COMPOUND without running them. Pure. Input that cannot be parsed
 * is no error here; it is decoded properly later. */
#ifndef RN_NFS4_SCAN_H
#define RN_NFS4_SCAN_H

#include "rpc/xdr_in.h"

/* Passes over the arguments of SEQUENCE or of an operation that changes nothing. False for other
 * operations and truncated arguments; the cursor is then undefined. */
bool nfs4_scan_op(struct xdr_in *x, uint32_t opnum);

/* True if none of the nops operations from the cursor on has an effect that a second run would
 * repeat. False also if that is unknown. */
bool nfs4_scan_idempotent(const struct xdr_in *at, uint32_t nops);

#endif
