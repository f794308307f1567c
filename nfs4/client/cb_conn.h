/* SPDX-License-Identifier: BSD-2-Clause */
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
#ifndef RN_NFS4_CLIENT_CB_CONN_H
#define RN_NFS4_CLIENT_CB_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "rpc/backchannel.h"

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
