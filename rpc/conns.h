/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a server's connections, whatever their transport, and their figures, for listings. A
 * connection is in the table from its start until it is freed, with an id that no other one gets. The
 * table's lock is a leaf, and is held for the copy of a few connections at most.
 *
 * The figures are plain counters: one thread at a time writes those of a connection. Its transport sees
 * to that, by its own lock or because it uses one thread for the connection.
 */
#ifndef RN_RPC_CONNS_H
#define RN_RPC_CONNS_H

#include "rpc/request.h"

struct rpc_conns;

struct rpc_conns *rpc_conns_new(void);	      /* NULL: no memory */
void rpc_conns_free(struct rpc_conns *conns); /* after all connections have gone. NULL is allowed */

/* Gives the connection its id, unless it has one of the program before, and adds it. Its constant members are set. */
void rpc_conns_enter(struct rpc_conns *conns, struct rpc_conn *conn);
/* The last id that was given. */
uint64_t rpc_conns_last_id(struct rpc_conns *conns);
/* Before the first connection: ids begin behind that one. State of the program before still names its connections, which may have ended. */
void rpc_conns_begin_after(struct rpc_conns *conns, uint64_t id);
/* Calls that the executor has, of all connections. */
uint64_t rpc_conns_under_way(struct rpc_conns *conns);
/* Removes the connection, if it was added. Any thread. */
void rpc_conns_leave(struct rpc_conn *conn);

/* The first call has come over the connection. */
void rpc_conn_heard(struct rpc_conn *conn);

static inline void rpc_tally(_Atomic uint64_t *n, uint64_t add)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + add,
			      memory_order_relaxed);
}

/* A call that has come over the connection is handed to the executor; arrived_ns is set. */
static inline void rpc_conn_begin(struct rpc_conn *conn, struct rpc_request *req)
{
	struct rpc_conn_tally *n = &conn->tally;

	if (atomic_load_explicit(&n->calls, memory_order_relaxed) == 0)
		rpc_conn_heard(conn);
	TAILQ_INSERT_TAIL(&conn->under_way, req, under_way);
	rpc_tally(&n->calls, 1);
	atomic_store_explicit(&n->called_ns, req->arrived_ns, memory_order_relaxed);
	if (TAILQ_FIRST(&conn->under_way) == req)
		atomic_store_explicit(&n->oldest_ns, req->arrived_ns, memory_order_relaxed);
}

/* The call is back from the executor. Nothing for a request that was not begun. */
static inline void rpc_conn_end(struct rpc_conn *conn, struct rpc_request *req)
{
	struct rpc_conn_tally *n = &conn->tally;
	const struct rpc_request *oldest = TAILQ_FIRST(&conn->under_way);

	if (!req->under_way.tqe_prev)
		return;
	TAILQ_REMOVE(&conn->under_way, req, under_way);
	req->under_way.tqe_prev = NULL;
	rpc_tally(&n->ended, 1);
	if (oldest != req)
		return;
	oldest = TAILQ_FIRST(&conn->under_way);
	atomic_store_explicit(&n->oldest_ns, oldest ? oldest->arrived_ns : 0, memory_order_relaxed);
}

struct rpc_conn_view {
	uint64_t id;
	struct sockaddr_storage peer, local;
	const char *netid;
	bool dialed;  /* the server has made it, for calls to the client */
	bool closing; /* the connection is closed, but calls of it are still under way */
	bool back;    /* the server may call the client over it */
	enum rpc_protection protection;
	const char *tls_version, *tls_cipher;	/* NULL: no TLS */
	bool tls_alpn;				/* the client has named the protocol sunrpc */
	bool ktls;				/* the kernel encrypts what is sent */
	char subject[RN_CERT_SUBJECT_MAX];	/* of the client's certificate; empty: none */
	uint64_t user_found;			/* rn_certificate.found of that certificate */
	uint8_t secs;				/* as rpc_conn.secs */
	uint64_t session_client;		/* as rpc_conn.session_client */
	uint64_t made_ns, called_ns, oldest_ns; /* CLOCK_MONOTONIC; 0: never, or none */
	uint64_t calls, ended, dropped, errors, bytes_in, bytes_out;
	char device[RPC_DEVICE_MAX]; /* of RDMA; empty: none, and the members below are 0 */
	uint32_t inline_in, inline_out, credits;
	uint64_t err_chunk, err_vers;
};

/*
 * Shows connections, most of them at a time; true: it has come to the end. *after is 0 at the
 * beginning, and tells where to go on; any value is safe. A connection that is there from the
 * beginning of the walk to its end is shown once. No lock is held during show().
 */
bool rpc_conns_view(struct rpc_conns *conns, uint64_t *after, unsigned most,
		    void (*show)(void *arg, const struct rpc_conn_view *v), void *arg);
/* Copies the connection with that id. False: there is none. */
bool rpc_conns_find(struct rpc_conns *conns, uint64_t id, struct rpc_conn_view *out);

#endif
