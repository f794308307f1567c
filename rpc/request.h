/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request: one RPC call from its arrival to its reply.
 *
 * Ownership. A transport makes requests (sized at accept or start, so the hot path allocates
 * nothing), fills in the call's segments and the reply's limits and submits the request to the
 * rpc_executor. From then on the request belongs to one worker. It goes back to its transport by
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
#include "lib/fair_queue.h"
#include "lib/inbox.h"
#include "rpc/conn.h"
#include "rpc/message.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

#define RPC_HEAD_SIZE 8192  /* bytes of every request's reply head: any reply but READDIR's fits */
#define RPC_ARENA_SIZE 8192 /* decoded arguments and names */

struct rn_fiber;
struct rpc_worker;
struct rpc_secured;

struct rpc_request {
	struct rn_inbox_node node; /* while it waits in a worker's inbox */
	struct rn_fq_item turn;	   /* while it waits for a worker; used by the executor */
	/* queue of calls it waits in, below RPC_FS_QUEUES; used by the executor */
	unsigned fs_queue;
	unsigned
		entered; /* queue whose file system it uses now; 0: none yet; used by the executor */
	void (*work)(struct rpc_request
			     *req); /* called by the worker that takes it out, unless it waits */
	struct rn_fiber *fiber;	    /* that it runs in; rpc/worker.h */
	bool waits;		    /* its fiber is at rest */
	uint32_t moves; /* bytes that a piece of background work moves (rpc_server.background) */
	uint64_t
		queued_ns; /* CLOCK_MONOTONIC when it began to wait for a worker; used by the executor */
	struct rpc_conn *conn;
	TAILQ_ENTRY(rpc_request) under_way; /* among those of conn: rpc/conns.h */
	struct rpc_worker *worker;	    /* set by the executor */

	/* The call, from the transport. */
	struct rpc_seg seg[RPC_SEGS_MAX];
	unsigned nseg;

	/*
	 * Room for the reply, from the transport. reply_max: bytes of the stream, from the xid on.
	 * The n-th bulk item of a reply belongs to the n-th Write chunk (RFC 8267 section 6.4.1),
	 * which is bulk_space[n] bytes long: the item goes there and not into the stream, and must
	 * not be longer. With an empty chunk (0), or none, the item is part of the stream with its
	 * pad. The rpc_reply functions below take care of this.
	 */
	size_t reply_max;
	unsigned nbulk_spaces;
	uint32_t bulk_space[XDR_BULKS_MAX]; /* valid up to nbulk_spaces */

	/* Decoded by rpc_dispatch. */
	struct xdr_in in;
	struct rpc_call call;
	enum rpc_admission admission; /* admission of the client's host */
	size_t args_at;		      /* offset of the arguments in the segments, bytes */
	const struct rpc_proc *proc;
	void *program_ctx;
	void *args;		/* in the arena */
	bool waited;		/* as long as it may: rpc_try_later() (rpc/wait.h) */
	uint64_t wait_until_ns; /* CLOCK_MONOTONIC: the end of its waits there; 0: not waited yet */
	void *op; /* state of the handler, for whoever looks at the call; in the arena */
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
	/* CLOCK_MONOTONIC when an event thread began to run it, and when its work ended, if somebody has read the clock then; else
	 * 0. Counting reads the clock once for all who want to know. */
	uint64_t run_ns, ended_ns;
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
 * The functions below tell exactly what fits into the space that the client offered, with chunks and without. An operation
 * that changes something asks before it runs, because a change without an answer must not happen.
 */

/* Bytes that may be added to the stream; 0 also if it is too long already. */
size_t rpc_reply_space(const struct rpc_request *req);
/* Length of the Write chunk for the next bulk item; 0: the item will be part of the stream. */
uint32_t rpc_reply_bulk_chunk(const struct rpc_request *req);
/* True if there is room for head bytes more (length words of bulk items count there) and one bulk
 * item of bulk bytes. */
bool rpc_reply_fits(const struct rpc_request *req, size_t head, uint32_t bulk);
/* True if the reply fits as it is. */
bool rpc_reply_ok(const struct rpc_request *req);

/* True if bulk items of the reply may be in pipes. */
bool rpc_reply_takes_pipes(const struct rpc_request *req);
/* Bytes that the head of the reply may have: its buffer, but for that. */
size_t rpc_reply_head_size(const struct rpc_request *req, size_t buffer);

/* Runs the calls that transports receive. submit never fails and takes the request over;
 * req->conn holds a reference for it. Callable from any transport thread. */
struct rpc_executor {
	void (*submit)(void *ctx, struct rpc_request *req);
	void *ctx;
};

#endif
