/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection that records the calls made to it and a small RPC program, for tests of dispatch and
 * of the duplicate request cache. The connection's operations free requests made here. */
#ifndef RN_TESTS_RPC_FAKE_H
#define RN_TESTS_RPC_FAKE_H

#include "rpc/program.h"
#include "rpc/worker.h"

#define FAKE_PROG 400000u

enum fake_proc {
	FAKE_NULL,
	FAKE_ECHO,    /* opaque of at most 64 bytes: returns it */
	FAKE_HOLE,    /* no such procedure */
	FAKE_COUNT,   /* word: returns the number of COUNT calls that ran. Not idempotent */
	FAKE_BULK,    /* word n: n bytes of bulk and the word 7 */
	FAKE_LONG,    /* word n: n zero bytes in a grown head */
	FAKE_PENDING, /* word: waits until fake_complete(). Not idempotent */
	FAKE_HOW,     /* word: the value that run returns after a word of result. Not idempotent */
	/* bulk of at most 4 bytes, decoded by run: returns its length; cached unless 0 */
	FAKE_REST,
	FAKE_GIVE,  /* as COUNT, also for recently admitted hosts; may be repeated */
	FAKE_ASK,   /* as COUNT, for all hosts */
	FAKE_LIST,  /* as COUNT, for hosts known to be admitted */
	FAKE_STORE, /* bulk of at most 4096 bytes: returns its length */
	FAKE_PROCS,
};

struct fake_conn {
	struct rpc_conn base;
	unsigned replies, drops, too_longs, garbage, destroyed;
	uint8_t reply[32768]; /* the last reply, as a stream */
	size_t reply_len;
};

struct fake {
	struct rn_budget budget;
	struct rn_payload_pool *pool;
	struct rpc_server server;
	struct rpc_worker worker;
	unsigned count;		      /* number of COUNT calls that ran */
	struct rpc_request *pending;  /* the last PENDING call */
	pthread_mutex_t lock;	      /* of PENDING calls */
	enum rpc_run how;	      /* they end */
	enum rpc_admission admission; /* admission of all hosts */
	unsigned observed, errors;
};

/* drc_entries 0: without a cache. */
void fake_init(struct fake *f, size_t drc_entries);
void fake_fini(struct fake *f);
unsigned fake_leaks(struct fake *f); /* number of payload buffers still in use */

/* An IPv4 peer 10.0.0.host. */
void fake_conn_init(struct fake_conn *c, unsigned id, uint8_t host, uint16_t port);

/* The same over RDMA, where clients that reconnect use another port. */
void fake_conn_rdma(struct fake_conn *c, unsigned id, uint8_t host, uint16_t port);
/* The same, over UDP. */
void fake_conn_udp(struct fake_conn *c, unsigned id, uint8_t host, uint16_t port);

/* Starts a call with an AUTH_SYS credential (uid 1000, gid 100, groups 4 and 24). */
void fake_call(struct xdr_out *x, uint32_t xid, uint32_t proc);

/* A request with the call's bytes in one segment; reply_max is ample. */
struct rpc_request *fake_request(struct fake *f, struct fake_conn *c, const struct xdr_out *call);
/* Begins that request on its worker. */
void fake_begin(struct fake *f, struct rpc_request *req);
void fake_dispatch(struct fake *f, struct fake_conn *c, const struct xdr_out *call);

/* Runs the items of the worker's inbox; returns their number. */
unsigned fake_run_inbox(struct fake *f);
/* The same, when there are some. */
unsigned fake_await_inbox(struct fake *f);
/* Ends a PENDING call, which returns how. */
void fake_complete(struct fake *f, struct rpc_request *req, enum rpc_run how);

uint32_t fake_word(const struct fake_conn *c, unsigned index); /* a word of the last reply */

#endif
