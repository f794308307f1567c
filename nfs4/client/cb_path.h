/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The callback path of a session: the connections that the client has bound to the back channel (RFC
 * 8881 section 2.10.3.1), the slots for calls to it, and what is known of the path. It is made with
 * the session if the client's back channel can carry a callback at all. nfs4/callback/ makes the
 * calls.
 *
 * A path is untried after the first binding. The next SEQUENCE has it probed: the client knows the
 * session by then. A call that is not answered in time, or is refused, takes the path down, and so
 * does the end of the last bound connection; SEQUENCE's flags tell the client, which binds a
 * connection again.
 *
 * All members are under the session's lock.
 */
#ifndef RN_NFS4_CLIENT_CB_PATH_H
#define RN_NFS4_CLIENT_CB_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "nfs4/client/callback_security.h"
#include "rpc/backchannel.h"

#define NFS4_CB_CONNS 4u  /* bound connections, the latest */
#define NFS4_CB_SLOTS 16u /* calls under way at most; the client may allow fewer */

struct nfs4_cb;
struct nfs4_client;
struct nfs4_session;

enum nfs4_cb_state { NFS4_CB_UNBOUND, NFS4_CB_UNTRIED, NFS4_CB_TRYING, NFS4_CB_UP, NFS4_CB_DOWN };

struct nfs4_cb_slot {
	uint32_t seqid; /* of the next call */
	bool busy;
	/* The client may have accepted the last call or not, so no sequence id is right. */
	bool lost;
};

struct nfs4_cb_path {
	uint32_t program; /* number that the client has chosen */
	uint32_t minor;
	struct nfs4_cb_security security;
	enum nfs4_cb_state state;
	bool fault; /* the client must make a new session */
	uint32_t nslots;
	struct nfs4_cb_slot slot[NFS4_CB_SLOTS];
	uint32_t nconns;
	struct rpc_backchannel *conn[NFS4_CB_CONNS]; /* references, the latest last */
	TAILQ_HEAD(, nfs4_cb) waiting;		     /* for a slot */
	uint32_t nwaiting;
};

/* Makes the path of a session that is in no table yet. False: no memory; there are no callbacks then. */
bool nfs4_cb_path_new(struct nfs4_session *s, uint32_t minor, uint32_t program,
		      const struct nfs4_cb_security *security);
/* For nfs4_session_put. */
void nfs4_cb_path_free(struct nfs4_session *s);

/* The functions below, down to the next comment, take the session's lock. */

/* Binds a connection to the back channel, and gives a path that is down another chance. False: no
 * calls can be made over it. */
bool nfs4_cb_bind(struct nfs4_session *s, struct rpc_conn *conn);
bool nfs4_cb_is_bound(struct nfs4_session *s, const struct rpc_conn *conn);
/* BACKCHANNEL_CTL. */
void nfs4_cb_change(struct nfs4_session *s, uint32_t program,
		    const struct nfs4_cb_security *security);
/* True if callbacks are expected to arrive. */
bool nfs4_cb_works(struct nfs4_session *s);

/* The functions below need the session's lock. */

/* True if a connection is bound and open; others are unbound. */
bool nfs4_cb_is_connected(struct nfs4_session *s);
/* Unbinds a connection. */
void nfs4_cb_unbind(struct nfs4_session *s, const struct rpc_backchannel *conn);
/* Flags for SEQUENCE: SEQ4_STATUS_CB_PATH_DOWN_SESSION or SEQ4_STATUS_BACKCHANNEL_FAULT, or 0. */
uint32_t nfs4_cb_flags(struct nfs4_session *s);
/* True once for each path to be tried: the caller calls nfs4_cb_probe. */
bool nfs4_cb_begin_probe(struct nfs4_session *s);

/* A session of the client whose path works, with a reference: one that a callback has come through,
 * if there is one. NULL: there is none. Takes the client's lock. */
struct nfs4_session *nfs4_cb_session(struct nfs4_client *cl);
/* True if callbacks are expected to reach the client, of any minor version: in minor version 0 one was
 * answered. Takes the client's lock. */
bool nfs4_cb_reaches(struct nfs4_client *cl);

#endif
