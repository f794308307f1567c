/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of contexts, bounded. Thread-safe.
 *
 * A context that is not established yet cost its client nothing, so few are kept: GSS_HALF_MAX, of which one host has
 * GSS_HALF_HOST at most; established ones never go for them. lib/quota.h says which makes room in either kind: the oldest
 * half-made one of the host with most, and the least used established one. A context removed from the table lives on
 * with its references.
 *
 * Few contexts have copies (gss/gss_copies.h) beside their first at a time: another that needs them takes those away of the
 * one that has had them longest.
 */
#ifndef RN_GSS_CONTEXTS_H
#define RN_GSS_CONTEXTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "gss/gss_copies.h"
#include "lib/quota.h"

/*
 * The sequence numbers of a context that have been used (RFC 2203 section 5.3.3.1). Not thread-safe.
 *
 * Other calls of a context may use up a whole window while one is held up: its thread gets no processor, or its file
 * system does not answer. So the numbers that have not come when the window leaves them are kept, the highest of them, and may come later.
 */
#define GSS_WINDOW 1024u /* calls that may overtake each other; clients are told the number */
#define GSS_LATE 256u	 /* numbers that may come late */

struct gss_window {
	uint32_t highest; /* 0: none has been used */
	uint64_t used[GSS_WINDOW / 64];
	uint32_t late[GSS_LATE]; /* in no order; 0: none */
};

/* Uses up a number whose verifier is right. False: it was used before, or is below the window and not late. */
bool gss_window_take(struct gss_window *w, uint32_t seq);

/* The credential of RPCSEC_GSS version 1 (RFC 2203 section 5). */
#define GSS_VERSION 1u
#define GSS_HANDLE_SIZE 16u
#define GSS_SEQ_MAX 0x80000000u /* section 5.3.3.1: numbers from here on end the context */

enum gss_proc { GSS_DATA = 0, GSS_INIT = 1, GSS_CONTINUE_INIT = 2, GSS_DESTROY = 3 };
enum gss_service { GSS_NONE = 1, GSS_INTEGRITY = 2, GSS_PRIVACY = 3 };

struct gss_cred {
	uint32_t version;
	uint32_t proc;
	uint32_t seq;
	uint32_t service;
	const uint8_t *handle; /* in the credential's body */
	uint32_t handle_len;
};

/* False: the body has another form or version, or bytes behind it. */
bool gss_get_cred(const uint8_t *body, uint32_t len, struct gss_cred *out);

#define GSS_HALF_MAX 128u
#define GSS_HALF_HOST 4u
#define GSS_HALF_SECONDS 30u /* age at which a half-made one is removed */
#define GSS_IDLE_SECONDS 86400u
#define GSS_GROW_SECONDS 10u

struct rpc_conn;
struct rpc_principal;

struct gss_context {
	_Atomic unsigned refs;
	uint8_t handle[GSS_HANDLE_SIZE];
	bool established;
	bool may_copy;			       /* gss_mech_may_copy() */
	const struct rpc_principal *principal; /* a reference; NULL while half-made */
	const struct rpc_principal
		*called;  /* this server, as the client names it: a reference, or NULL */
	uint64_t ends_ns; /* the ticket's end, by gss_contexts_now() */
	uint32_t mic_len; /* bytes of its MICs */
	size_t wrap_len;  /* bytes that encryption adds, at most */

	_Atomic uint32_t calls; /* numbers of calls to the client that were used up */
	struct gss_copies copies;
	pthread_mutex_t lock; /* guards window */
	struct gss_window window;

	/* For the table. */
	LIST_ENTRY(gss_context) of_bucket;
	TAILQ_ENTRY(gss_context) by_use;
	struct rn_quota_item place;
	struct rn_host from; /* whom it counts for */
	uint64_t used_ns;
	bool listed;
	/* Established contexts with more than one copy, the one first that got them first. */
	TAILQ_ENTRY(gss_context) by_growth;
	bool grown;
	uint64_t grown_ns; /* the last time that copies were made; 0: never */
};

TAILQ_HEAD(gss_use_list, gss_context);

struct gss_contexts;

/* max: established ones; grown: those of them with copies. NULL: no memory. */
struct gss_contexts *gss_contexts_new(unsigned max, unsigned grown);
/* No call may be under way. */
void gss_contexts_free(struct gss_contexts *t);

/* Takes over the library's context, also on failure (NULL: no memory). One reference, not in the table yet. */
struct gss_context *gss_context_new(struct gss_mech_ctx *mech);
void gss_context_put(struct gss_context *c); /* NULL is allowed */

/* The host that a connection counts for. Anybody can write another's address on a datagram, so all senders of those count
 * as one host, which no peer has the address of. */
void gss_host_of(const struct rpc_conn *conn, struct rn_host *host);

/* Adds c under a new handle, for the host it is from; takes no reference of the caller's. False: no memory. */
bool gss_contexts_add(struct gss_contexts *t, struct gss_context *c, const struct rn_host *from);
/* The same under the handle that it has; it was used so long ago. */
bool gss_contexts_restore(struct gss_contexts *t, struct gss_context *c, const struct rn_host *from,
			  uint64_t idle_ns);
/* Calls fn for each established context, the least used first. No call may be under way, and fn must not use the table. */
void gss_contexts_each(struct gss_contexts *t, void (*fn)(void *arg, struct gss_context *c),
		       void *arg);
/* A reference, or NULL: there is no such context. */
struct gss_context *gss_contexts_find(struct gss_contexts *t, const uint8_t *handle, uint32_t len);
/* Does nothing if it has been removed. */
void gss_contexts_remove(struct gss_contexts *t, struct gss_context *c);

/* True if c may be given copies now: it is in the table, and has got none for GSS_GROW_SECONDS. It counts as having them
 * from now on. */
bool gss_contexts_may_grow(struct gss_contexts *t, struct gss_context *c);
/* False: another took its place, or it is not in the table any more. */
bool gss_contexts_is_grown(struct gss_contexts *t, struct gss_context *c);

struct gss_contexts_stats {
	unsigned established, half, grown;
	uint64_t evicted;
};
void gss_contexts_stats(struct gss_contexts *t, struct gss_contexts_stats *out);
/* CLOCK_MONOTONIC in ns, and what was skipped of it. */
uint64_t gss_contexts_now(const struct gss_contexts *t);
/* Ns that were skipped. */
uint64_t gss_contexts_skipped(const struct gss_contexts *t);
/* Lets contexts age at once: for tests. */
void gss_contexts_skip(struct gss_contexts *t, unsigned seconds);
/* Another clock in place of CLOCK_MONOTONIC, in ns: for tests. */
void gss_contexts_set_clock(struct gss_contexts *t, uint64_t (*now)(void));

#endif
