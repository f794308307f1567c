/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Security of whole calls, as RPCSEC_GSS (RFC 2203) gives it: dispatch hands over each call with such a
 * credential before its procedure is looked for, and each answer before it leaves. The module behind this
 * table is gss/; rpc/ knows nothing of mechanisms.
 */
#ifndef RN_RPC_SECURITY_H
#define RN_RPC_SECURITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/message.h"

struct rpc_principal;
struct rpc_request;
struct rpc_cb_auth;
struct rpc_cb_auth_offer;
struct rpc_cb_initiation;

/* Longer arguments and results are not unwrapped and wrapped on an event thread, which other connections wait for. */
#define RPC_SECURE_PROMPT_MOST 16384u

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

#endif
