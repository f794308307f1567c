/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callbacks: CB_COMPOUNDs of one operation, behind CB_SEQUENCE in minor versions 1 and 2 (RFC 8881
 * section 20, RFC 7530 section 17). An operation is a row, struct nfs4_cb_op, at the foot of its own
 * file here; no other code knows it.
 *
 * The path to a client is a session of it, or in minor version 0 a connection that the server makes
 * (nfs4/callback/callback_v40.c). Over a session, a callback takes a slot of its session, waits for one if all are taken, and goes over the
 * connection that was bound last. If that is lost, the same bytes go over the next one, with the
 * same slot and sequence id (section 2.10.6.2). No thread waits. A callback ends once, by its row's
 * done(): with the client's answer, or with an error when no connection is left or its time is up.
 */
#ifndef RN_NFS4_CALLBACK_CALLBACK_H
#define RN_NFS4_CALLBACK_CALLBACK_H

#include <sys/queue.h>

#include "nfs4/nfs4_proto.h"
#include "rpc/backchannel.h"
#include "rpc/xdr_out.h"

#define NFS4_CB_WAITING_MAX 256u /* callbacks of a session that wait for a slot */

struct nfs4_cb;
struct nfs4_client;
struct nfs4_compound;
struct nfs4_server;
struct nfs4_session;

struct nfs4_cb_op {
	const char *name;
	uint32_t opnum; /* enum nfs_opnum4; 0: CB_SEQUENCE alone, or CB_NULL in minor version 0 */
	/* Puts the arguments; the same bytes whenever it is called. */
	void (*encode)(const struct nfs4_cb *cb, struct xdr_out *x);
	/*
	 * The end. Owns cb from here on; called without locks, must not wait. rc 0: the client has
	 * run the operation, status is its nfsstat4, and if that is NFS4_OK results is at its body.
	 * Otherwise the operation was not run, or that is not known: -ENOTCONN (no path), -ETIMEDOUT,
	 * -RN_ELATER (the client or the path is busy), -EPROTO, -EACCES, -EOPNOTSUPP, -ENOMEM,
	 * -EMSGSIZE.
	 */
	void (*done)(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results);
};

/* A request of the client's whose reply may still be under way. The client waits for that before it
 * runs the callback (RFC 8881 sections 2.10.6.3 and 20.9.3). */
struct nfs4_cb_referring {
	uint8_t session[NFS4_SESSIONID_SIZE];
	uint32_t seqid, slot;
};

/* The request that c runs. All zero in minor version 0, where callbacks refer to none. */
struct nfs4_cb_referring nfs4_cb_refer(const struct nfs4_compound *c);

/* Embedded in what an operation needs to know. */
struct nfs4_cb {
	struct rpc_callback rpc;
	const struct nfs4_cb_op *op;
	struct nfs4_session *session; /* a reference until done(); NULL in minor version 0 */
	struct nfs4_client *client;   /* minor version 0: a reference until done(); else NULL */
	struct rpc_backchannel *conn; /* over which it goes: a reference */
	TAILQ_ENTRY(nfs4_cb) link;    /* nfs4_cb_path.waiting */
	const struct nfs4_cb_referring
		*referring; /* set by the caller, stays until done(); or NULL */
	uint32_t slot, seqid, highest;
	bool sent; /* the client may have got it */
	bool last; /* true if a minor version 0 call is not sent again */
	/* Minor version 0: a context that is not the path's yet, which this probe establishes. A reference until done(). */
	struct rpc_cb_auth *trial;
};

/* Starts a callback over the path that the client has. done() may be called before this returns,
 * with -ENOTCONN if there is no path. The caller holds no lock of the client or of a session. */
void nfs4_cb_call(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_client *cl);

/* Like nfs4_cb_call(), for a probe of a minor version 0 client. The call goes by the context `trial` if that is not NULL;
 * takes over its reference. */
void nfs4_cb_try(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_client *cl,
		 struct rpc_cb_auth *trial);

/* Starts a callback; takes over a reference of s. done() may be called before this returns. */
void nfs4_cb_start(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_session *s);

/* Time until which a callback that starts now is to be answered: CLOCK_MONOTONIC, ns. */
uint64_t nfs4_cb_due(const struct nfs4_server *srv);

/* Callbacks of minor version 0: a CB_COMPOUND of one operation, or CB_NULL (RFC 7530 section 17). */

struct nfs4_cb;
struct nfs4_cb_op;
struct nfs4_client;

/* Starts a callback to a client of minor version 0, for nfs4_cb_call: over the connection that the
 * server has made to it. done() may be called before this returns. */
void nfs4_cb_start_v40(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_client *cl);

/* Slots of the back channel, and the connections that calls go over. */

/* All of these take the lock of the session. */

/* Fate of a slot whose call has ended: whether its sequence id was used. */
enum nfs4_cb_fate {
	NFS4_CB_UNTOUCHED, /* the client has not accepted the sequence id */
	NFS4_CB_ACCEPTED,
	NFS4_CB_LOST, /* unknown: the slot is not used any more */
};
/* State of the path that the end of a call shows. */
enum nfs4_cb_path_event {
	NFS4_CB_PATH_SAME,
	NFS4_CB_ANSWERED,
	NFS4_CB_FAILED, /* the path is down */
	NFS4_CB_BROKEN, /* the session's back channel cannot be used any more */
};

/* The results of a CB_COMPOUND. */

struct nfs4_cb_answer {
	int rc;		 /* as for nfs4_cb_op.done */
	uint32_t status; /* status of the operation, or of CB_SEQUENCE alone */
	enum nfs4_cb_fate fate;
	enum nfs4_cb_path_event path;
	bool has_highest; /* the client has said which slots it accepts */
	uint32_t highest;
};

/* Reads the results of a minor version 0 CB_COMPOUND. It has no slot, so only rc and status are set. */
void nfs4_cb_read_answer_v40(const struct nfs4_cb *cb, struct xdr_in *x,
			     struct nfs4_cb_answer *out);

#endif
