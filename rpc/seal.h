/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Security of calls that this server makes (rpc/backchannel.h), as rpc/security.h is that of calls that it takes. A seal is a context that
 * the called client has agreed to. The module behind it is gss/. Thread-safe and reference-counted.
 */
#ifndef RN_RPC_SEAL_H
#define RN_RPC_SEAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/xdr_in.h"

struct rpc_principal;
struct rpc_seal;

struct rpc_seal_ops {
	/* The number of the next call. Each attempt to send one needs its own. */
	uint32_t (*number)(struct rpc_seal *s);
	/*
	 * Puts into out the call in msg, which has its xid, and credential and verifier of AUTH_NONE. Bytes; 0: it is too
	 * long, the context has ended, or the library failed.
	 */
	uint32_t (*seal)(struct rpc_seal *s, uint32_t number, const struct rpc_seg *msg,
			 struct rpc_seg *out);
	/* True if that is the verifier of the reply to call `number`. */
	bool (*verify)(struct rpc_seal *s, uint32_t number, const uint8_t *verf, uint32_t len);
	/* Moves x to the results of a reply in plain text, which then lie in *plain. False: they are not genuine. */
	bool (*open)(struct rpc_seal *s, uint32_t number, struct xdr_in *x, struct rpc_seg *plain);
	/* Seconds until the context ends. */
	uint64_t (*seconds)(const struct rpc_seal *s);
	void (*destroy)(struct rpc_seal *s);
};

struct rpc_seal {
	const struct rpc_seal_ops *ops;
	_Atomic unsigned refs;
	size_t cost;	   /* bytes of memory that it holds */
	uint32_t overhead; /* bytes, at most, that seal() adds to a call */
};

static inline struct rpc_seal *rpc_seal_ref(struct rpc_seal *s) /* NULL is allowed */
{
	if (s)
		atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

static inline void rpc_seal_put(struct rpc_seal *s) /* NULL is allowed */
{
	if (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
		s->ops->destroy(s);
}

/* A context that a client has made, and offers for calls to it (RFC 8881 section 18.36.3). */
struct rpc_seal_offer {
	uint32_t service; /* rpc_gss_svc_t */
	uint32_t from_server_len, from_client_len;
	const uint8_t *from_server;	       /* the handle that this server knows it by */
	const uint8_t *from_client;	       /* the handle for calls to the client */
	const struct rpc_principal *principal; /* only a context of this one is taken */
};

/* Bytes that a seal takes, at most, which this server makes itself. */
#define RPC_SEAL_COST 16384u

/* A seal that is wished for: the server makes a context to a client's principal. */
struct rpc_seal_wish {
	/* Set by the caller. from is this server's own name. The names are needed during the call only. */
	const struct rpc_principal *from, *to;
	uint32_t service; /* rpc_gss_svc_t */
	uint8_t host[16]; /* the client's: rpc_address_host() */
	uint64_t due_ns;  /* CLOCK_MONOTONIC; nothing is begun later */
	/*
	 * Called once, on any thread; must not wait, nor wish. seal: a reference, or NULL: there is none. The first call
	 * under it establishes the context with the client: its arguments must be empty, and no other call may be under way. Its
	 * end says whether the client has proved its name.
	 */
	void (*made)(struct rpc_seal_wish *wish, struct rpc_seal *seal);
};

#endif
