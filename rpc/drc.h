/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Duplicate request cache. A retransmitted call of a procedure that must not run twice gets the
 * reply that the first one got. Key: client address, with the port where a client keeps it when it
 * connects anew (TCP), xid, program, version, procedure, length and keyed sum of all arguments.
 * The caller's identity is compared beside it, not the credential's bytes, which RPCSEC_GSS changes
 * with each transmission. A reply is kept for DRC_AGE_SECONDS at most. Memory is bounded by entries
 * and by bytes of stored replies; the oldest finished entries go first, entries in progress never.
 * Thread-safe, sharded. doc/design/duplicate-requests.md says what two processes behind one
 * address can still do to each other.
 *
 * A duplicate that meets the first call still running is dropped if it came on the same connection:
 * the reply will come there. On another one, after a reconnect, that reply would be lost with the
 * old connection, so the duplicate is parked with the entry and put back on its worker when the
 * first call ends. One of each connection is, up to DRC_PARKED_MAX: whichever is the client's last,
 * it gets its reply.
 */
#ifndef RN_RPC_DRC_H
#define RN_RPC_DRC_H

#include <stddef.h>
#include <stdint.h>

#include "rpc/request.h"

/* A call that comes later is a new one. Clients that lost a connection send their calls again as
 * soon as they have another; the kernel's server forgets after the same time. */
#define DRC_AGE_SECONDS 120u
/* A longer reply is not kept. NFSv3's are below 1 KiB; this is a COMPOUND of NFSv4.0 that changes
 * something and asks for attributes several times. */
#define DRC_REPLY_MAX 4096u

#define DRC_PARKED_MAX 16u

struct drc;
struct drc_entry;

enum drc_verdict {
	DRC_NEW,	 /* run it, then drc_done or drc_abandon; req->drc is set */
	DRC_UNCACHED,	 /* run it; no entry could be made */
	DRC_REPLAY,	 /* the stored reply is in req->out */
	DRC_IN_PROGRESS, /* the first one is still running: drop this one */
	DRC_PARKED,	 /* as above, and the entry has the request now: do not touch it */
};

struct drc *drc_new(size_t max_entries, size_t max_bytes);
void drc_free(struct drc *drc);
/* Another clock in place of CLOCK_MONOTONIC, in ns: for tests. */
void drc_set_clock(struct drc *drc, uint64_t (*now)(void));

/* req->call is decoded. again: what runs on a parked request's worker when the first call has
 * ended; NULL: never park. */
enum drc_verdict drc_lookup(struct drc *drc, struct rpc_request *req,
			    void (*again)(struct rpc_request *req));
/* Stores req->out as the answer of req->drc; clears req->drc. */
void drc_done(struct drc *drc, struct rpc_request *req);
/* The call got no reply: forget it. */
void drc_abandon(struct drc *drc, struct rpc_request *req);

struct drc_stats {
	uint64_t entries, bytes, hits, in_progress, misses, evicted, expired;
	uint64_t running; /* of entries: whose first call has not ended now */
};
void drc_stats(struct drc *drc, struct drc_stats *out);

#endif
