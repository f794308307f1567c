/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection, of any transport: its operations, peer, figures and protection. Over UDP it stands for a peer's datagrams. A
 * connection is counted by references: the transport has one until it is closed, and each request has one.
 */
#ifndef RN_RPC_CONN_H
#define RN_RPC_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/certificate.h"
#include "rpc/message.h"

struct rpc_backchannel;
struct rpc_client;
struct rpc_conn;
struct rpc_conns;
struct rpc_request;
struct rpc_worker;

struct rpc_conn_ops {
	const char *netid; /* "tcp", "udp", "rdma": for logs and counters */
	/* clients retransmit only after a reconnect: duplicates in flight are dropped */
	bool reliable;
	/* A client reconnects from the same port (as Linux does over TCP), so that the port tells
	 * one process or host behind an address from another. */
	bool keeps_port;
	/* Each message is a datagram of its own, so versions for streams are not served. */
	bool datagrams;
	uint32_t data_max; /* file data of one call, bytes; 0: no limit but the protocol's */
	/* Replies may have bulk items in pipes. */
	bool takes_pipes;
	/* Sends the reply in req->out. Always takes the request back. */
	void (*reply)(struct rpc_request *req);
	/* Sends no reply: for duplicates in flight, calls that RFC 2203 has discarded, and closed connections only. Always takes the
	 * request back. */
	void (*drop)(struct rpc_request *req);
	/* The reply does not fit what the client offered: RDMA answers ERR_CHUNK (RFC 8166 section
	 * 4.5), TCP closes. Always takes the request back. */
	void (*too_long)(struct rpc_request *req);
	bool says_too_long; /* too_long sends an answer, and the connection goes on */
	/* The message is no RPC call: closes the connection. Always takes the request back. NULL:
	 * as drop. */
	void (*garbage)(struct rpc_request *req);
	/* Sends a call to the client: rpc/backchannel.h alone calls it. Copies the message. 0: it is
	 * sent or will be, unless the connection ends; -ENOMEM, -EMSGSIZE. Any thread. NULL:
	 * this transport makes no calls. */
	int (*call)(struct rpc_conn *conn, const uint8_t *msg, uint32_t len);
	/* Closes a connection that this server has made (struct rpc_dialer), soon: rpc/backchannel.h alone
	 * calls it. Any thread. NULL: this transport makes none. */
	void (*hang_up)(struct rpc_conn *conn);
	/* Called when the last reference is gone. */
	void (*destroy)(struct rpc_conn *conn);
};

#define RPC_ADMISSION_BITS 2
#define RPC_DEVICE_MAX 64

/* Figures of a connection, for listings: see rpc/conns.h. Times are CLOCK_MONOTONIC, ns. */
struct rpc_conn_tally {
	_Atomic uint64_t calls;		      /* handed to the executor */
	_Atomic uint64_t ended;		      /* of them: back from it */
	_Atomic uint64_t called_ns;	      /* time of the last call; 0: none has come */
	_Atomic uint64_t oldest_ns;	      /* time of the oldest call under way; 0: none is */
	_Atomic uint64_t bytes_in, bytes_out; /* of messages, and of RDMA Reads and Writes */
	/* Rare, so any thread adds to them: calls that ended without an answer, or with an error of RPC. */
	_Atomic uint64_t dropped, errors;
};

/* Further figures of a connection over RDMA. The first four members are constant. */
struct rpc_conn_rdma {
	char device[RPC_DEVICE_MAX];
	uint32_t inline_in, inline_out; /* longest message from and to the client, bytes */
	uint32_t credits;		/* granted to the client */
	_Atomic uint64_t err_chunk, err_vers;
};

/* Facts of a connection under TLS. Constant. */
struct rpc_conn_tls {
	const char *version, *cipher;		  /* static texts */
	bool alpn;				  /* the client has named the protocol */
	bool ktls;				  /* the kernel encrypts what is sent */
	const struct rn_certificate *certificate; /* the client's, which was verified; or NULL */
};

struct rpc_conn {
	const struct rpc_conn_ops *ops;
	struct sockaddr_storage peer;
	struct sockaddr_storage local;
	struct rpc_client *client; /* client whose quotas are used; a reference. NULL: no limits */
	uint64_t id;		   /* unique in this run of the daemon, and not 0 */
	bool dialed;		   /* made by the server, for calls to the client */
	uint64_t made_ns;	   /* CLOCK_MONOTONIC */
	struct rpc_conns *conns;   /* table that it is in, or NULL */
	TAILQ_ENTRY(rpc_conn) of_conns;
	TAILQ_HEAD(, rpc_request) under_way; /* calls that the executor has, oldest first */
	struct rpc_conn_tally tally;
	struct rpc_conn_rdma *rdma; /* NULL: another transport */
	/* NFSv4 client whose session the connection was bound to last, which may be gone; 0: none */
	_Atomic uint64_t session_client;
	/* Client id of the one client of NFSv4.0 whose ids and states calls of the connection have named, which may be gone; 0: none;
	 * UINT64_MAX: several */
	_Atomic uint64_t only_client;
	_Atomic uint32_t refs;
	_Atomic(struct rpc_worker *) last_worker; /* the daemon's hint for dispatching */
	/* The connection's reverse direction, a reference; NULL: not used so far. For rpc/backchannel.c. */
	_Atomic(struct rpc_backchannel *) back;
	_Atomic bool
		closing; /* the client sends no more, or it is closed; set by rpc_backchannel_close() */
	/* The last known admission, in the low RPC_ADMISSION_BITS, and until when it holds; the
	 * daemon's. */
	_Atomic uint64_t admission;
	/* enum rpc_protection; changes once, when a handshake is over and before any call is read under it */
	_Atomic uint8_t protection;
	/* Bits (enum rpc_sec_bit) of the flavours of the calls that came so far, but for NULL calls */
	_Atomic uint8_t secs;
	/* Set before protection is, and valid as long as the connection; NULL: no TLS. */
	_Atomic(const struct rpc_conn_tls *) tls;
};

/* Admission of the host that a call came from, by the exports: see rpc_server.admission. The values are
 * bits of rpc_conn.admission. */
enum rpc_admission {
	RPC_UNKNOWN,  /* not known yet: a name service is being asked */
	RPC_STRANGER, /* no export admits it */
	RPC_RECENT,   /* no export admits it any more; one did less than a lease time ago */
	RPC_ADMITTED, /* some export admits it */
};

/* The last known admission; starts no query. */
static inline enum rpc_admission rpc_conn_admission(const struct rpc_conn *c)
{
	return (enum rpc_admission)(atomic_load_explicit(&c->admission, memory_order_relaxed) &
				    ((1u << RPC_ADMISSION_BITS) - 1));
}

static inline enum rpc_protection rpc_conn_protection(const struct rpc_conn *c)
{
	return (enum rpc_protection)atomic_load_explicit(&c->protection, memory_order_relaxed);
}

/* Certificate by which the client has proved who it is, or NULL. */
static inline const struct rn_certificate *rpc_conn_certificate(const struct rpc_conn *c)
{
	const struct rpc_conn_tls *tls = atomic_load_explicit(&c->tls, memory_order_acquire);

	return tls ? tls->certificate : NULL;
}

void rpc_conn_ref(struct rpc_conn *c);
void rpc_conn_put(struct rpc_conn *c); /* the last one calls ops->destroy */

#endif
