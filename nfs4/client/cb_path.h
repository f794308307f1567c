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
#include "nfs4/client/nfs4_client.h"
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
	/* Ids of connections that were bound in the program before this one, and are bound again by their next SEQUENCE; 0: none. */
	uint64_t returning[NFS4_CB_CONNS];
	TAILQ_HEAD(, nfs4_cb) waiting; /* for a slot */
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

/* Binds the connection if it was bound in the program before this one. */
void nfs4_cb_return(struct nfs4_session *s, struct rpc_conn *conn);
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
/* True until a client can be called again that the program before could call. Takes the client's lock. */
bool nfs4_cb_returns(struct nfs4_client *cl);
/* True if callbacks are expected to reach the client, of any minor version: in minor version 0 one was
 * answered. Takes the client's lock. */
bool nfs4_cb_reaches(struct nfs4_client *cl);

/*
 * The callback path of a minor version 0 client: the address that its SETCLIENTID gave, and the
 * connection to it, which the server makes when it has something to say (RFC 7530 section 16.33).
 * nfs4/callback/ makes the calls.
 *
 * Only the address that the SETCLIENTID came from is called, and only by TCP. The program number
 * must be of the transient range, as section 15 has it. Otherwise a client could have the server
 * call any service of any host.
 *
 * A path is probed when SETCLIENTID_CONFIRM has installed it, and when the client renews its lease
 * while the path is down.
 */

struct nfs4_compound;

/* The callback4 and callback_ident of SETCLIENTID. A text that is too long, or has a NUL, is empty. */
struct nfs4_callback_args {
	uint32_t program, ident;
	char netid[NFS4_NETID_MAX];
	char addr[NFS4_UADDR_MAX];
};

struct nfs4_callback {
	uint32_t program, ident;
	struct rpc_route route; /* unless state is NFS4_CB_UNBOUND */
	/* Under Kerberos: the server's name that the client uses, a reference; else NULL. service is that of SETCLIENTID. */
	const struct rpc_principal *me;
	uint32_t service;
	/* Under the client's lock once SETCLIENTID has stored it, as the members below. UNBOUND: the
	 * client is not called. */
	enum nfs4_cb_state state;
	uint64_t tried;		      /* time of the last probe: nfs4_clients_now() */
	struct rpc_backchannel *conn; /* a reference; NULL: none was made, or it failed */
	/* Under Kerberos: a reference; NULL: no call can be made, but the one that makes a context. */
	struct rpc_cb_auth *auth;
};

/* NULL: no memory. */
struct nfs4_callback *nfs4_callback_new(const struct nfs4_compound *c,
					const struct nfs4_callback_args *a);
/* Gives up its connection, too. The caller holds no lock. NULL is allowed. */
void nfs4_callback_free(struct nfs4_callback *cb);
/* Bytes that a client with a callback, and another one that waits for its confirmation, costs. */
size_t nfs4_callback_cost(const struct nfs4_compound *c);

/* The functions below take the client's lock. */

/* Puts cl->update in the place of cl->callback, which the caller gets, to free it without the lock of
 * the client table that it holds. */
struct nfs4_callback *nfs4_callback_replace(struct nfs4_client *cl);

struct nfs4_cb_target {
	struct rpc_backchannel *conn; /* a reference */
	bool fresh;		      /* made by this call */
	uint32_t program, ident;
	struct rpc_cb_auth *auth; /* a reference, or NULL */
};
/* Finds the connection for a call to cl, or makes one. auth: the call tries that one; NULL: it uses the path's own, if there is one. 0; -ENOTCONN: the client cannot be called;
 * -ENOKEY: the path has no context yet, which its probe brings; other errors of rpc_dialer.dial. */
int nfs4_cb_conn_get(struct nfs4_client *cl, struct rpc_cb_auth *auth, struct nfs4_cb_target *out);

/* A call over conn has ended (NULL: no connection could be made). UP: it was answered. DOWN: it was
 * not, and the connection is given up. UNTRIED: that is not known. Nothing if the path has another
 * connection by now. */
void nfs4_cb_conn_is(struct nfs4_client *cl, const struct rpc_backchannel *conn,
		     enum nfs4_cb_state state);
/* A call over conn by that context was answered: it protects those that follow. */
void nfs4_cb_conn_auth(struct nfs4_client *cl, const struct rpc_backchannel *conn,
		       struct rpc_cb_auth *auth);
/* The probe came to nothing before it had a connection, for want of a context. */
void nfs4_cb_conn_no_auth(struct nfs4_client *cl);
/* Fills in what a context is made by. False: the path needs none. The caller puts both names. */
bool nfs4_cb_conn_initiation(struct nfs4_client *cl, struct rpc_cb_initiation *out);
/* True if the path is to be probed now: the caller calls nfs4_cb_probe_client. */
bool nfs4_cb_conn_begin_probe(struct nfs4_client *cl);
/* True if the path has failed, or there is none; false while it is probed. */
bool nfs4_cb_conn_is_down(struct nfs4_client *cl);
/* Ends the path of a client that goes. */
void nfs4_cb_conn_drop(struct nfs4_client *cl);

#endif
