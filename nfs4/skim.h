/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is in a COMPOUND, looked at without running it. Pure; what is not understood is never an
 * error here, the COMPOUND is decoded properly later.
 */
#ifndef RN_NFS4_SKIM_H
#define RN_NFS4_SKIM_H

#include "rpc/xdr_in.h"

/* Passes over the arguments of an operation that changes nothing, or of SEQUENCE. False: it is none
 * of these, or it is cut off; the cursor may be anywhere then. */
bool nfs4_skim_op(struct xdr_in *x, uint32_t opnum);

/* Are the nops operations from the cursor on without an effect that a second run would repeat?
 * False also where that cannot be told. */
bool nfs4_skim_idempotent(const struct xdr_in *at, uint32_t nops);

#endif
