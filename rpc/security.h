/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Security of whole calls, as RPCSEC_GSS (RFC 2203) gives it: dispatch hands over each call with such a
 * credential before its procedure is looked for, and each answer before it leaves. The module behind this
 * table is gss/; rpc/ knows nothing of mechanisms.
 */
#ifndef RN_RPC_SECURITY_H
#define RN_RPC_SECURITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/host.h"
#include "rpc/message.h"
#include "rpc/xdr_in.h"

struct rpc_principal;
struct rpc_request;
struct rpc_cb_auth;
struct rpc_cb_auth_offer;
struct rpc_cb_initiation;

/* Longer arguments and results are not unwrapped and wrapped on an event thread, which other connections wait for. */
#define RPC_SECURE_EVENT_MOST 16384u

/* Result of looking at a call's credential. */
enum rpc_secure_verdict {
	RPC_SECURE_CALL,   /* verified: req->secured is set, and the procedure may run */
	RPC_SECURE_ANSWER, /* the whole reply is in req->out */
	RPC_SECURE_DROP,   /* RFC 2203 section 5.3.3.1: discarded without an answer */
	RPC_SECURE_REFUSE, /* denied with the auth_stat */
	RPC_SECURE_GARBAGE,
	RPC_SECURE_NO_ROOM, /* nothing was done, for want of memory or of a place in a queue: tried again later */
	RPC_SECURE_FAILED, /* accepted with SYSTEM_ERR */
};

/* State of one verified call; the first member of the module's own. From req->secured's being set to the
 * request's reset. */
struct rpc_secured {
	size_t args_at; /* offset of the arguments in the segments, which hold plain text now */
	/* True with integrity or privacy: the results are wrapped as a whole, so no bulk item goes by a Write chunk
	 * (RFC 8166 section 8.2.2) or out of a pipe. */
	bool wraps;
	size_t overhead; /* bytes, at most, that protect() adds to a reply */
};

struct rpc_security {
	/*
	 * Looks at a call whose credential is RPCSEC_GSS; req->call's auth and verf members are set. In a fiber.
	 * *stat is for RPC_SECURE_REFUSE.
	 */
	enum rpc_secure_verdict (*accept)(void *ctx, struct rpc_request *req,
					  enum rpc_auth_stat *stat);
	/* Puts the verifier into req->out, which is a whole reply with an AUTH_NONE one, and wraps the results. False:
	 * there is no memory, or the library failed, and there must be no answer. */
	bool (*protect)(struct rpc_request *req);
	/* Frees req->secured. Any thread. */
	void (*release)(struct rpc_request *req);
	/* A reference of the security of calls by that context. NULL: there is none of that principal, or no memory. */
	struct rpc_cb_auth *(*offered)(void *ctx, const struct rpc_cb_auth_offer *offer);
	/* Begins to make a context. Does not wait. False: too many are being made, or there is no memory; made() is not called. */
	bool (*initiate)(void *ctx, struct rpc_cb_initiation *init);
	/* The name that the verified call gives this server: a reference, or NULL. */
	const struct rpc_principal *(*called_as)(struct rpc_request *req);
};

/*
 * Security of calls that this server makes (rpc/backchannel.h), as struct rpc_security is that of calls that it takes. It puts
 * credential and verifier on a call, wraps its arguments, and looks at the reply, by a context that the called client has agreed to. The module behind it is gss/. Thread-safe and reference-counted.
 */
struct rpc_cb_auth_ops {
	/* The sequence number of the next call. Each attempt to send one needs its own. */
	uint32_t (*seq)(struct rpc_cb_auth *s);
	/*
	 * Protects the call in msg, which has its xid, and AUTH_NONE as credential and verifier, and puts it into out. Returns its length
	 * in bytes; 0: it is too long, the context has ended, or the library failed.
	 */
	uint32_t (*wrap)(struct rpc_cb_auth *s, uint32_t seq, const struct rpc_seg *msg,
			 struct rpc_seg *out);
	/* True if that is the verifier of the reply to call `seq`. */
	bool (*verify)(struct rpc_cb_auth *s, uint32_t seq, const uint8_t *verf, uint32_t len);
	/* Moves x to the results of a reply in plain text, which then lie in *plain. False: they are not genuine. */
	bool (*unwrap)(struct rpc_cb_auth *s, uint32_t seq, struct xdr_in *x,
		       struct rpc_seg *plain);
	/* Fills in the offer by which rpc_security.offered makes the same in the next program. NULL: there is none. */
	void (*offer)(const struct rpc_cb_auth *s, struct rpc_cb_auth_offer *out);
	/* Seconds until the context ends. */
	uint64_t (*seconds)(const struct rpc_cb_auth *s);
	void (*destroy)(struct rpc_cb_auth *s);
};

struct rpc_cb_auth {
	const struct rpc_cb_auth_ops *ops;
	_Atomic unsigned refs;
	size_t cost;	   /* bytes of memory that it holds */
	uint32_t overhead; /* bytes, at most, that wrap() adds to a call */
};

static inline struct rpc_cb_auth *rpc_cb_auth_ref(struct rpc_cb_auth *s) /* NULL is allowed */
{
	if (s)
		atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

static inline void rpc_cb_auth_put(struct rpc_cb_auth *s) /* NULL is allowed */
{
	if (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
		s->ops->destroy(s);
}

/* A context that a client has made, and offers for calls to it (RFC 8881 section 18.36.3). */
struct rpc_cb_auth_offer {
	uint32_t service; /* rpc_gss_svc_t */
	uint32_t from_server_len, from_client_len;
	const uint8_t *from_server;	       /* the handle that this server knows it by */
	const uint8_t *from_client;	       /* the handle for calls to the client */
	const struct rpc_principal *principal; /* only a context of this one is taken */
};

/* Bytes that one takes, at most, whose context this server makes itself. */
#define RPC_CB_AUTH_COST 16384u

/* The making of a context by this server, to a client's principal. */
struct rpc_cb_initiation {
	/* Set by the caller. from is this server's own name. The names are needed during the call only. */
	const struct rpc_principal *from, *to;
	uint32_t service;    /* rpc_gss_svc_t */
	struct rn_host host; /* the client's */
	uint64_t due_ns;     /* CLOCK_MONOTONIC; nothing is begun later */
	/*
	 * Called once, on any thread; must not wait, nor begin another. auth: a reference, or NULL: there is none. The first call
	 * under it establishes the context with the client: its arguments must be empty, and no other call may be under way. Its
	 * end says whether the client has proved its name.
	 */
	void (*made)(struct rpc_cb_initiation *init, struct rpc_cb_auth *auth);
};

#endif
