/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call looked at before it is decoded, to find out where it is to be run or where its data are to
 * lie. Nothing is checked but lengths: whoever looks must not rely on what is found.
 */
#ifndef RN_RPC_PEEK_H
#define RN_RPC_PEEK_H

#include "rpc/xdr_in.h"

struct rpc_peek {
	uint32_t prog, vers, proc;
};

/* Moves x from the start of a message to the arguments. False: it is no call, or cut off. */
bool rpc_peek_call(struct xdr_in *x, struct rpc_peek *out);

#endif
