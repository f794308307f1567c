/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callbacks of minor versions 1 and 2: a CB_COMPOUND of CB_SEQUENCE and at most one operation (RFC
 * 8881 section 20). An operation is a row, struct nfs4_cb_op, at the foot of its own file here; no
 * other code knows it.
 *
 * A callback takes a slot of its session, waits for one if all are taken, and goes over the
 * connection that was bound last. If that is lost, the same bytes go over the next one, with the
 * same slot and sequence id (section 2.10.6.2). No thread waits. A callback ends once, by its row's
 * done(): with the client's answer, or with an error when no connection is left or its time is up.
 */
#ifndef RN_NFS4_CALLBACK_CALLBACK_H
#define RN_NFS4_CALLBACK_CALLBACK_H

#include <sys/queue.h>

#include "rpc/backchannel.h"
#include "rpc/xdr_out.h"

#define NFS4_CB_WAITING_MAX 256u /* callbacks of a session that wait for a slot */

struct nfs4_cb;
struct nfs4_session;

struct nfs4_cb_op {
	const char *name;
	uint32_t opnum; /* enum nfs_opnum4; 0: CB_SEQUENCE alone */
	/* Puts the arguments; the same bytes whenever it is called. */
	void (*encode)(const struct nfs4_cb *cb, struct xdr_out *x);
	/*
	 * The end. Owns cb from here on; called without locks, must not wait. rc 0: the client has
	 * run the operation, status is its nfsstat4, and if that is NFS4_OK results is at its body.
	 * Otherwise the operation was not run, or that is not known: -ENOTCONN (no path), -ETIMEDOUT,
	 * -EAGAIN (the client or the path is busy), -EPROTO, -EACCES, -EOPNOTSUPP, -ENOMEM,
	 * -EMSGSIZE.
	 */
	void (*done)(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results);
};

/* Embedded in what an operation needs to know. */
struct nfs4_cb {
	struct rpc_callback rpc;
	const struct nfs4_cb_op *op;
	struct nfs4_session *session; /* a reference until done() */
	struct rpc_backchannel *conn; /* over which it goes: a reference */
	TAILQ_ENTRY(nfs4_cb) link;    /* nfs4_cb_path.waiting */
	uint32_t slot, seqid, highest;
	bool sent; /* the client may have got it */
};

/* Starts a callback; takes over a reference of s. done() may be called before this returns. */
void nfs4_cb_start(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_session *s);

#endif
