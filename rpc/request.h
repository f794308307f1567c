/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request: one RPC call from its arrival to its reply.
 *
 * Ownership. A transport makes requests (sized at accept or start, so the hot path allocates
 * nothing), fills in the call's segments and the reply's limits and submits the request to the
 * rpc_sink. From then on the request belongs to one worker. It goes back to its transport by
 * exactly one call of rpc_conn_ops.reply or .drop, from the worker's thread; the transport then
 * releases the segments' payload, the reply's bulk and the connection reference. Until that call,
 * the request holds a reference on its connection, which may be closed under it; replying on a
 * closed connection is allowed.
 */
#ifndef RN_RPC_REQUEST_H
#define RN_RPC_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/arena.h"
#include "lib/certificate.h"
#include "lib/fair_queue.h"
#include "lib/inbox.h"
#include "rpc/message.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

#define RPC_HEAD_SIZE 8192  /* bytes of every request's reply head: any reply but READDIR's fits */
#define RPC_ARENA_SIZE 8192 /* decoded arguments and names */

struct rpc_request;
struct rpc_conn;
struct rpc_backchannel;
struct rpc_client;
struct rpc_conns;
struct rpc_worker;
struct rpc_secured;

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
	 * sent or will be, unless the connection ends; -ENOMEM, -EMSGSIZE, -EAGAIN. Any thread. NULL:
	 * this transport makes no calls. */
	int (*call)(struct rpc_conn *conn, const uint8_t *msg, uint32_t len);
	/* Closes a connection that this server has made (rpc/dial.h), soon: rpc/backchannel.h alone
	 * calls it. Any thread. NULL: this transport makes none. */
	void (*hang_up)(struct rpc_conn *conn);
	/* Called when the last reference is gone. */
	void (*destroy)(struct rpc_conn *conn);
};

#define RPC_STANDING_BITS 2
#define RPC_DEVICE_MAX 64

/* Figures of a connection, for listings: see rpc/conns.h. Times are CLOCK_MONOTONIC, ns. */
struct rpc_conn_tally {
	_Atomic uint64_t calls;		      /* handed to the sink */
	_Atomic uint64_t ended;		      /* of them: back from it */
	_Atomic uint64_t called_ns;	      /* time of the last call; 0: none has come */
	_Atomic uint64_t oldest_ns;	      /* time of the oldest call under way; 0: none is */
	_Atomic uint64_t bytes_in, bytes_out; /* of messages, and of RDMA Reads and Writes */
	/* Rare, so any thread adds to them: calls that ended without an answer, or with an error of RPC. */
	_Atomic uint64_t dropped, errors;
};

/* The same of a connection over RDMA. The first four members are constant. */
struct rpc_conn_rdma {
	char device[RPC_DEVICE_MAX];
	uint32_t inline_in, inline_out; /* longest message from and to the client, bytes */
	uint32_t credits;		/* granted to the client */
	_Atomic uint64_t err_chunk, err_vers;
};

/* The same of a connection under TLS. Constant. */
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
	struct rpc_client *client; /* client whose shares are used; a reference. NULL: no limits */
	uint64_t id;		   /* unique in this run of the daemon, and not 0 */
	bool dialed;		   /* made by the server, for calls to the client */
	uint64_t made_ns;	   /* CLOCK_MONOTONIC */
	struct rpc_conns *conns;   /* table that it is in, or NULL */
	TAILQ_ENTRY(rpc_conn) of_conns;
	TAILQ_HEAD(, rpc_request) under_way; /* calls that the sink has, oldest first */
	struct rpc_conn_tally tally;
	struct rpc_conn_rdma *rdma; /* NULL: another transport */
	/* NFSv4 client whose session the connection was bound to last, which may be gone; 0: none */
	_Atomic uint64_t session_client;
	_Atomic uint32_t refs;
	_Atomic(struct rpc_worker *) last_worker; /* the daemon's hint for dispatching */
	/* Its reverse direction, a reference; NULL: not used so far. For rpc/backchannel.c. */
	_Atomic(struct rpc_backchannel *) back;
	_Atomic bool back_closed;
	/* The last known standing, in the low RPC_STANDING_BITS, and until when it holds; the
	 * daemon's. */
	_Atomic uint64_t standing;
	/* enum rpc_protection; changes once, when a handshake is over and before any call is read under it */
	_Atomic uint8_t protection;
	/* Set before protection is, and valid as long as the connection; NULL: no TLS. */
	_Atomic(const struct rpc_conn_tls *) tls;
};

/* What the exports say about the host that a call came from: see rpc_server.standing. The values
 * are bits of rpc_conn.standing. */
enum rpc_standing {
	RPC_UNKNOWN,  /* not known yet: a name service is being asked */
	RPC_STRANGER, /* no export admits it */
	RPC_FORMER,   /* no export admits it any more; one did less than a lease time ago */
	RPC_ADMITTED, /* some export admits it */
};

/* The last known standing; starts no query. */
static inline enum rpc_standing rpc_conn_standing(const struct rpc_conn *c)
{
	return (enum rpc_standing)(atomic_load_explicit(&c->standing, memory_order_relaxed) &
				   ((1u << RPC_STANDING_BITS) - 1));
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

struct rpc_request {
	struct rn_inbox_node node; /* while it waits in a worker's inbox */
	struct rn_fq_item turn;	   /* while it waits for a worker; used by the sink */
	/* queue of calls it waits in, below RPC_LANES; used by the sink */
	unsigned lane;
	void (*work)(struct rpc_request *req); /* called by the worker that takes it out */
	uint32_t moves; /* bytes that a piece of background work moves (rpc_server.background) */
	uint64_t
		queued_ns; /* CLOCK_MONOTONIC when it began to wait for a worker; used by the sink */
	bool given; /* counts among the calls that its worker has not begun; used by the sink */
	struct rpc_conn *conn;
	TAILQ_ENTRY(rpc_request) under_way; /* among those of conn: rpc/conns.h */
	struct rpc_worker *worker;	    /* set by the sink */

	/* The call, from the transport. */
	struct rpc_seg seg[RPC_SEGS_MAX];
	unsigned nseg;

	/*
	 * Room for the reply, from the transport. reply_max: bytes of the stream, from the xid on.
	 * The n-th bulk item of a reply belongs to the n-th Write chunk (RFC 8267 section 6.4.1),
	 * which is bulk_room[n] bytes long: the item goes there and not into the stream, and must
	 * not be longer. With an empty chunk (0), or none, the item is part of the stream with its
	 * pad. The rpc_reply functions below take care of this.
	 */
	size_t reply_max;
	unsigned nbulk_rooms;
	uint32_t bulk_room[XDR_BULKS_MAX]; /* valid up to nbulk_rooms */

	/* Decoded by rpc_dispatch. */
	struct xdr_in in;
	struct rpc_call call;
	enum rpc_standing standing; /* standing of the client's host */
	size_t args_at;		    /* offset of the arguments in the segments, bytes */
	const struct rpc_proc *proc;
	void *program_ctx;
	void *args;	       /* in the arena */
	size_t arena_at;       /* used bytes of the arena behind the arguments */
	bool must_answer;      /* RPC_RUN_AGAIN is not allowed */
	void *op;	       /* state of the handler across a pending step, in the arena */
	struct drc_entry *drc; /* in-progress entry, or NULL */
	struct rpc_server *server;

	/* State of a call under RPCSEC_GSS whose verifier was right; NULL: another flavour. For rpc/security.h. */
	struct rpc_secured *secured;

	/* The reply. out starts at head; a handler with a long reply moves it to a payload buffer
	 * with rpc_reply_grow(). */
	struct xdr_out out;
	/* RPC_HEAD_SIZE bytes of registered memory, kept for the request's life */
	struct rn_payload *head;
	struct rn_payload *long_head; /* from rpc_reply_grow, or NULL; released with the request */

	struct rn_arena arena;
	uint64_t arrived_ns; /* CLOCK_MONOTONIC at submission */
	/* The same when an event thread began to run it, and when its work ended, if somebody has read the clock then; else
	 * 0. Counting reads the clock once for all who want to know. */
	uint64_t run_ns, ended_ns;
	struct rn_payload_waiter waiter; /* for a handler that waits for memory */
	void *transport_private;
	_Alignas(16) char arena_mem[RPC_ARENA_SIZE];
};

/* Made and freed by transports; the head comes from pool. NULL: no memory in the budget. */
struct rpc_request *rpc_request_new(struct rn_payload_pool *pool);
void rpc_request_free(struct rpc_request *req);
/* The account that memory for the request is taken on, or NULL. */
struct rn_payload_account *rpc_request_account(const struct rpc_request *req);
/* Releases the call's segments, which must not be used afterwards. Called before waiting for
 * memory: requests that hold some while they wait for more would wait for each other. */
void rpc_request_forget_call(struct rpc_request *req);
/* Makes the request ready for the next call: releases the payload of the segments, bulk items and
 * long head; keeps head and conn. */
void rpc_request_reset(struct rpc_request *req);

/*
 * True if the reply, as encoded so far, fits what the client offered: exact, whatever chunks there
 * are. An operation that changes something calls this before it runs, because a change without an
 * answer must not happen.
 */
/* Bytes that may be added to the stream; 0 also if it is too long already. */
size_t rpc_reply_room(const struct rpc_request *req);
/* Length of the Write chunk for the next bulk item; 0: the item will be part of the stream. */
uint32_t rpc_reply_bulk_chunk(const struct rpc_request *req);
/* True if there is room for head bytes more (length words of bulk items count there) and one bulk
 * item of bulk bytes. */
bool rpc_reply_fits(const struct rpc_request *req, size_t head, uint32_t bulk);
/* True if the reply fits as it is. */
bool rpc_reply_ok(const struct rpc_request *req);

/* True if bulk items of the reply may be in pipes. */
bool rpc_reply_takes_pipes(const struct rpc_request *req);
/* Bytes that securing the reply may add to its head, with a word for what each bulk item leaves over. */
size_t rpc_reply_overhead(const struct rpc_request *req);
/* Bytes that the head of the reply may have: its buffer, but for that. */
size_t rpc_reply_head_size(const struct rpc_request *req, size_t buffer);

/* Consumer of the calls that transports receive. submit never fails and takes the request over;
 * req->conn holds a reference for it. Callable from any transport thread. */
struct rpc_sink {
	void (*submit)(void *ctx, struct rpc_request *req);
	void *ctx;
};

#endif
