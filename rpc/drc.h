/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Duplicate request cache. A retransmitted call of a procedure that must not run twice gets the
 * first call's reply. Key: client address, with the port where a client keeps it when it reconnects
 * (TCP, UDP), whether it is a datagram, xid, program, version, procedure, length and keyed sum of all arguments. The caller's
 * identity is compared beside it, not the credential's bytes, which RPCSEC_GSS changes with each
 * transmission. A reply is kept for DRC_AGE_SECONDS at most. Memory is bounded, and hosts share it
 * (lib/quota.h): the host with most makes room, so what a busy one changes does not push out others' replies.
 * Entries in progress are never pushed out.
 * Thread-safe, sharded. doc/design/duplicate-requests.md says what two processes behind one
 * address can still do to each other.
 *
 * A duplicate that meets the first call still running is dropped if it came on the same connection:
 * the reply will come there. On another connection, after a reconnect, that reply would be lost
 * with the old connection, so the duplicate waits until the first call ends. One duplicate of each connection waits, up to
 * DRC_WAITING_MAX, so that the client's last one gets its reply.
 */
#ifndef RN_RPC_DRC_H
#define RN_RPC_DRC_H

#include <stddef.h>
#include <stdint.h>

#include "lib/image.h"
#include "rpc/request.h"

/* Age at which a call with the same key is a new call. Clients that lost a connection send their
 * calls again as soon as they have another; the kernel's server forgets after the same time. */
#define DRC_AGE_SECONDS 120u
/* Longest reply that is kept. NFSv3's are below 1 KiB; this is an NFSv4.0 COMPOUND that changes
 * something and asks for attributes several times. */
#define DRC_REPLY_MAX 4096u

#define DRC_WAITING_MAX 16u

struct drc;
struct drc_entry;

enum drc_verdict {
	DRC_NEW,	 /* run it, then drc_done or drc_abandon; req->drc is set */
	DRC_UNCACHED,	 /* run it; no entry could be made */
	DRC_REPLAY,	 /* the stored reply is in req->out */
	DRC_IN_PROGRESS, /* the first one is still running: drop this one */
};

/* max_bytes: of finished entries with their replies. NULL: no memory. */
struct drc *drc_new(size_t max_entries, size_t max_bytes);
void drc_free(struct drc *drc);
/* Another clock in place of CLOCK_MONOTONIC, in ns: for tests. */
void drc_set_clock(struct drc *drc, uint64_t (*now)(void));

/* req->call is decoded. May wait (rpc/wait.h). */
enum drc_verdict drc_lookup(struct drc *drc, struct rpc_request *req);
/* Stores req->out as the answer of req->drc; clears req->drc. */
void drc_done(struct drc *drc, struct rpc_request *req);
/* Forgets a call that got no reply. */
void drc_abandon(struct drc *drc, struct rpc_request *req);

/* Hands replies, and the keys that find them, to the next program (lib/image.h); nothing is under way. load: before any call. 0 or -EPROTO. */
void drc_save(struct drc *drc, struct image_writer *w);
int drc_load(struct drc *drc, struct image_reader *image);

struct drc_stats {
	uint64_t entries, bytes, hits, in_progress, misses, evicted, expired;
	uint64_t running; /* entries whose first call has not ended */
	/* Age of the newest reply that made room in the last DRC_AGE_SECONDS; without any, DRC_AGE_SECONDS. */
	uint64_t reach_seconds;
};
void drc_stats(struct drc *drc, struct drc_stats *out);

#endif
