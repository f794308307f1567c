/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks of minor version 0: a CB_COMPOUND of one operation, or CB_NULL (RFC 7530 section 17). */
#ifndef RN_NFS4_CALLBACK_CALLBACK_V40_H
#define RN_NFS4_CALLBACK_CALLBACK_V40_H

struct nfs4_cb;
struct nfs4_cb_op;
struct nfs4_client;

/* Starts a callback to a client of minor version 0, for nfs4_cb_call: over the connection that the
 * server has made to it. done() may be called before this returns. */
void nfs4_cb_start_v40(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_client *cl);

#endif
