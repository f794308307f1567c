/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls from this server to a client, over a connection that the client has made, or that the server
 * has (struct rpc_dialer). A backchannel is that direction of one connection: the calls under way on it,
 * each of which ends once. A reply is matched by its xid among the calls of the connection that it came over and nowhere else,
 * so that no peer can answer a call that was made to another.
 *
 * The object outlives its connection, for those who hold a reference: calls then fail at once. It
 * holds no reference of the connection.
 *
 * Ownership. A callback belongs to its caller, and must stay where it is from a successful
 * rpc_backchannel_call() until done() is called, once, on any thread and without locks of rpc/.
 * done() must not wait; it may free the callback and make further calls. The message is copied.
 *
 * Locks: rpc_backchannel.lock is a leaf.
 */
#ifndef RN_RPC_BACKCHANNEL_H
#define RN_RPC_BACKCHANNEL_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "rpc/security.h"
#include "rpc/request.h"

#define RPC_CALLBACKS_MAX 64u	/* calls under way on one connection */
#define RPC_CALLBACK_SIZE 2048u /* longest call, in bytes */
/* Longest one under a context: a ticket in the first call of a context may be long. It fits into a request's head. */
#define RPC_CALLBACK_AUTH_SIZE 8000u
#define RPC_CALLBACK_REPLY 1024u /* longest reply, in bytes; but see rpc_route.reply_max */

struct rpc_callback {
	TAILQ_ENTRY(rpc_callback) link;
	uint32_t xid;
	uint64_t due_ns; /* CLOCK_MONOTONIC; the call is given up then */
	/* Context that protects the call, whose credential and verifier are AUTH_NONE in the message. It must stay until
	 * done(). NULL: the message goes as it is. */
	struct rpc_cb_auth *auth;
	uint32_t seq; /* its number in the context */
	/*
	 * The end of the call. rc 0: the client has run the procedure, and results is at the first
	 * byte of what it returned. Otherwise results is NULL: -ETIMEDOUT, -ENOTCONN (the connection
	 * is gone, and the client may have run it or not), -EACCES (the credential was refused),
	 * -EOPNOTSUPP (the client has no such procedure, or rejects the arguments or the message),
	 * -EPROTO (the reply is no RPC reply, or not the client's own under a context).
	 */
	void (*done)(struct rpc_callback *cb, int rc, struct xdr_in *results);
};

struct rpc_backchannel;

/* The backchannel of a connection, with a reference for the caller. NULL: the connection is closed,
 * its transport makes no calls, or there is no memory. The caller holds a reference of the
 * connection. */
struct rpc_backchannel *rpc_backchannel_get(struct rpc_conn *conn);
void rpc_backchannel_ref(struct rpc_backchannel *b);
void rpc_backchannel_put(struct rpc_backchannel *b); /* NULL is allowed */
/* The id of its connection, which may be closed. */
uint64_t rpc_backchannel_conn_id(const struct rpc_backchannel *b);
/* Bytes of memory that one takes. */
size_t rpc_backchannel_size(void);

/* True until the connection is closed. */
bool rpc_backchannel_is_open(const struct rpc_backchannel *b);
/* True if it is that of the connection. */
bool rpc_backchannel_is_of(const struct rpc_backchannel *b, const struct rpc_conn *conn);

/*
 * Sends the call in msg (len bytes, of at most RPC_CALLBACK_SIZE), whose first word is replaced by a
 * fresh xid. cb->done and cb->due_ns are set. 0: done() will be called, or has been. -ENOTCONN: the
 * connection is closed; -RN_EFULL: too many calls are under way; -ENOMEM; -EMSGSIZE: it is longer than
 * the transport sends; -EACCES: its context is of no more use. The call was not sent then, and done() is not called.
 */
int rpc_backchannel_call(struct rpc_backchannel *b, struct rpc_callback *cb, uint8_t *msg,
			 uint32_t len);

/* Closes a connection that this server has made, when it comes to that: calls under way end with
 * -ENOTCONN. Nothing for one that is closed already. */
void rpc_backchannel_hang_up(struct rpc_backchannel *b);

/* For transports. */

enum rpc_reply_use {
	RPC_REPLY_USED,	      /* the reply ended a call */
	RPC_REPLY_STRAY,      /* no call waits for it: too late, a second one, or made up */
	RPC_REPLY_UNEXPECTED, /* the connection has never been used for calls to the client */
};
/* A message of len bytes with direction REPLY has come over the connection. */
enum rpc_reply_use rpc_backchannel_reply(struct rpc_conn *conn, uint8_t *msg, uint32_t len);
/* Like rpc_backchannel_reply(), for a message in several pieces. */
enum rpc_reply_use rpc_backchannel_long_reply(struct rpc_conn *conn, const struct rpc_seg *seg,
					      unsigned nseg);
/* The client's transport has refused the call with this xid. False: no call waits for that. */
bool rpc_backchannel_refused(struct rpc_conn *conn, uint32_t xid);
/* True if a call with this xid is under way. */
bool rpc_backchannel_awaits(struct rpc_conn *conn, uint32_t xid);
/* Gives up the calls whose time is up; called about once a second. now: CLOCK_MONOTONIC, ns. */
void rpc_backchannel_expire(struct rpc_conn *conn, uint64_t now);
/* The connection is closed, or the client sends no more: waits of its calls end soon (rpc_try_later), calls under way end with -ENOTCONN, and none are made any more. The
 * caller holds a reference of the connection, and no lock that done() may take. Idempotent. */
void rpc_backchannel_close(struct rpc_conn *conn);

/*
 * Connections that this server makes: to call a client that takes calls at an address of its own
 * (NFSv4.0's callbacks, RFC 7530 section 16.33), or to read from another server (nfs4/remote/). Calls are made
 * as over connections that clients make.
 */

/* IPv4 addresses are mapped into IPv6. */
struct rpc_route {
	struct sockaddr_in6
		from; /* address to call from; its port is not used. sin6_family 0: any */
	struct sockaddr_in6 to;
	/* Longest reply, bytes; 0: RPC_CALLBACK_REPLY. Memory for a longer one is charged to the
	 * address that is called. */
	uint32_t reply_max;
	/* Calls from a privileged port: the one that is called was chosen by the administrator. */
	bool reserved;
};

static inline bool rpc_route_equal(const struct rpc_route *a, const struct rpc_route *b)
{
	return memcmp(&a->from, &b->from, sizeof(a->from)) == 0 &&
	       memcmp(&a->to, &b->to, sizeof(a->to)) == 0 && a->reply_max == b->reply_max &&
	       a->reserved == b->reserved;
}

struct rpc_dialer {
	/*
	 * Begins a connection, over which calls may be made at once: they go out when it is
	 * established, and end with -ENOTCONN if it is not. Does not wait. 0, and *out has a
	 * reference for the caller; -RN_EFULL: there are too many such connections, in all or to that
	 * host; -ENOTCONN: the server stops; other -errno of the network or for want of descriptors
	 * or memory. The connection ends by its peer, when it is idle, or by
	 * rpc_backchannel_hang_up(). Any thread.
	 */
	int (*dial)(void *ctx, const struct rpc_route *route, struct rpc_backchannel **out);
	void *ctx;
};

#endif
