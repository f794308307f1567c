/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_GSS_GSS_PRIVATE_H
#define RN_GSS_GSS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "gss/contexts.h"
#include "gss/gss.h"
#include "gss/mech.h"
#include "lib/budget.h"
#include "lib/jobs.h"
#include "lib/log.h"
#include "rpc/backchannel.h"
#include "rpc/security.h"

/*
 * Memory of contexts, set aside at start, since payload slabs are never given back and would leave none. The library
 * allocates it, so it is counted by the number of contexts.
 */

/* More than a context takes whose keys for all flavours are in use, with ours and its places in the tables. A copy has no
 * name and no ticket. */
#define GSS_CONTEXT_BYTES 13312u
#define GSS_COPY_BYTES 13312u
#define GSS_PART 8u /* the part of the whole budget that is set aside, at most: one eighth */

struct gss_memory {
	size_t bytes;	   /* of the whole budget */
	unsigned contexts; /* established ones */
	unsigned copies;   /* of one context */
	unsigned grown;	   /* contexts with copies */
	size_t tokens;	   /* bytes of tokens that wait */
};

/* Divides an eighth of `whole`, or less if max_contexts need less. */
void gss_memory_divide(size_t whole, unsigned max_contexts, unsigned cpus, struct gss_memory *out);

struct gss {
	struct gss_config cfg;
	struct gss_memory memory;
	struct rn_budget tokens; /* of memory.tokens bytes */
	struct gss_contexts *contexts;
	/* Threads for calls of the library, whose replay cache, keytab and look-ups may wait for a disk or a name service: of
	 * contexts with clients that call, and of those that are called (gss_initiate()). */
	struct rn_jobs *acceptor, *initiator;
	pthread_mutex_t lock; /* guards cred */
	struct gss_mech_cred *cred;
	struct rn_log_hosts said; /* hosts whose failures were logged lately */
	_Atomic uint64_t accepted, refused, replays, unknown, bad;
};

/* A verified call: req->secured points to `base`. */
struct gss_call {
	struct rpc_secured base;
	struct gss_context *context; /* a reference */
	uint32_t seq;
	uint32_t service; /* enum gss_service of the results */
};

/* gss/gss_call.c */
enum rpc_secure_verdict gss_accept_call(void *ctx, struct rpc_request *req,
					enum rpc_auth_stat *stat);
void gss_release_call(struct rpc_request *req);
/* For rpc_security.called_as. */
const struct rpc_principal *gss_called_as(struct rpc_request *req);
/* gss/gss_reply.c */
bool gss_protect_reply(struct rpc_request *req);
/* gss/establish.c: INIT and CONTINUE_INIT, whose token is next in req->in. */
enum rpc_secure_verdict gss_establish(struct gss *g, struct rpc_request *req,
				      const struct gss_cred *cred);

/* Sets the sizes that answers of the context grow by. False: the library failed. */
bool gss_measure(struct gss_context *x, struct gss_mech_ctx *mech);

/* gss/gss_cb_auth.c */

/* For rpc_security.offered. */
struct rpc_cb_auth *gss_cb_auth_offered(void *ctx, const struct rpc_cb_auth_offer *o);

/* For rpc_security.initiate. */
bool gss_initiate(void *ctx, struct rpc_cb_initiation *init);

static inline void gss_count(_Atomic uint64_t *what)
{
	atomic_fetch_add_explicit(what, 1, memory_order_relaxed);
}

#endif
