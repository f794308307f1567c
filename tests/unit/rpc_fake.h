/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection that records what it is told and a small program, for tests of dispatch and of the
 * duplicate request cache. Requests made here are freed by the connection's operations.
 */
#ifndef RN_TESTS_RPC_FAKE_H
#define RN_TESTS_RPC_FAKE_H

#include "rpc/program.h"
#include "rpc/worker.h"

#define FAKE_PROG 400000u

enum fake_proc {
	FAKE_NULL,
	FAKE_ECHO,    /* opaque of at most 64 bytes: the same */
	FAKE_HOLE,    /* no such procedure */
	FAKE_COUNT,   /* word: how often COUNT ran. Not idempotent */
	FAKE_BULK,    /* word n: n bytes of bulk and the word 7 */
	FAKE_LONG,    /* word n: n zero bytes in a grown head */
	FAKE_PENDING, /* word: pending, until rpc_complete. Not idempotent */
	FAKE_HOW,     /* word: run returns it, after a word of result. Not idempotent */
	FAKE_REST,    /* bulk of at most 4 bytes, decoded by run: its length; cached unless 0 */
	FAKE_GIVE,    /* as COUNT, for those that were admitted until lately; may be repeated */
	FAKE_ASK,     /* as COUNT, for all */
	FAKE_LIST,    /* as COUNT, for those known to be admitted */
	FAKE_STORE,   /* bulk of at most 4096 bytes: its length */
	FAKE_PROCS,
};

struct fake_conn {
	struct rpc_conn base;
	unsigned replies, drops, too_longs, garbage, destroyed;
	uint8_t reply[16384]; /* the last one, as a stream */
	size_t reply_len;
};

struct fake {
	struct rn_budget budget;
	struct rn_payload_pool *pool;
	struct rpc_server server;
	struct rpc_worker worker;
	unsigned count;		     /* how often COUNT ran */
	struct rpc_request *pending; /* the last PENDING */
	enum rpc_standing standing;  /* of everybody */
	bool known;		     /* HOW is not to wait any more */
	unsigned observed, errors;
};

/* drc_entries 0: no cache. */
void fake_init(struct fake *f, size_t drc_entries);
void fake_fini(struct fake *f);
unsigned fake_leaks(struct fake *f); /* payload buffers still in use */

/* An IPv4 peer 10.0.0.host. */
void fake_conn_init(struct fake_conn *c, unsigned id, uint8_t host, uint16_t port);

/* The same over RDMA, where clients that connect anew come from another port. */
void fake_conn_rdma(struct fake_conn *c, unsigned id, uint8_t host, uint16_t port);

/* Starts a call with an AUTH_SYS credential (uid 1000, gid 100, groups 4 and 24). */
void fake_call(struct xdr_out *x, uint32_t xid, uint32_t proc);

/* A request with the call's bytes in one segment; reply_max is ample. */
struct rpc_request *fake_request(struct fake *f, struct fake_conn *c, const struct xdr_out *call);
void fake_dispatch(struct fake *f, struct fake_conn *c, const struct xdr_out *call);

/* Runs what waits in the worker's inbox; how many. */
unsigned fake_run_inbox(struct fake *f);

uint32_t fake_word(const struct fake_conn *c, unsigned index); /* of the last reply */

#endif
