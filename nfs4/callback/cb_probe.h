/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_SEQUENCE alone, or CB_NULL: tells whether the callback path of a session or of a minor version 0
 * client works. */
#ifndef RN_NFS4_CALLBACK_CB_PROBE_H
#define RN_NFS4_CALLBACK_CB_PROBE_H

struct nfs4_client;
struct nfs4_session;
struct rpc_server;

/* Tries the path of s. Does not wait; the caller holds a reference and no lock. */
void nfs4_cb_probe(struct nfs4_session *s);
/* The same for the connection to a minor version 0 client (nfs4/client/cb_conn.h). */
void nfs4_cb_probe_client(struct nfs4_client *cl, const struct rpc_server *rpc);

#endif
