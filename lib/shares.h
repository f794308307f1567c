/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded table that hosts share: nobody fills it for the others, whether one host tries it or many.
 *
 * Each item is some host's, and costs a part of the table. When an item does not fit, room is made by one rule:
 * - items of strangers, whom no export admits, go before those of admitted hosts, and make no room at their cost;
 * - of each kind the host that has most loses its oldest items. That is the newcomer's own if it would have most.
 * So a host that has little keeps it, whatever others do, and a newcomer finds its place among any number of hosts
 * that have more.
 *
 * The table is told of items, and keeps no more than their cost: they lie where their owner has put them, who guards
 * the table, and ends an item that is in the way. Each operation takes a time that grows with the logarithm of the
 * number of hosts.
 */
#ifndef RN_LIB_SHARES_H
#define RN_LIB_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/host.h"

struct rn_logger;
struct rn_share;

/* Embedded in what the table bounds. Zeroed, it is in no table. */
struct rn_share_item {
	TAILQ_ENTRY(rn_share_item) link;
	struct rn_share *of; /* account of its host; NULL: in no table */
	size_t cost;
	uint64_t order; /* ascending by time of entry */
};
TAILQ_HEAD(rn_share_items, rn_share_item);

#define RN_SHARES_BUCKETS 256u
LIST_HEAD(rn_share_list, rn_share);

struct rn_shares {
	size_t max, of_host; /* cost of all items; of one host's, at most */
	size_t used;
	uint64_t pushed_out; /* items that made room */
	uint64_t refused;    /* items that found none */
	/* Inside. */
	uint8_t seed[16];
	uint64_t order;
	struct rn_share_list bucket[RN_SHARES_BUCKETS];
	struct rn_share **heap; /* who makes room first */
	unsigned nheap, heap_size;
	uint64_t told_ns, told_out, told_refused; /* last line in the log, and the numbers in it */
};

/* of_host 0: as much as max. */
void rn_shares_init(struct rn_shares *s, size_t max, size_t of_host);
void rn_shares_fini(struct rn_shares *s); /* no item is in it */

/*
 * An item that has to go before one of that cost fits for the host, or NULL: it fits, or nothing may make room for it.
 * Counts it as pushed out: the caller removes it, ends it, and asks again.
 */
struct rn_share_item *rn_shares_in_the_way(struct rn_shares *s, const struct rn_host *host,
					   bool admitted, size_t cost);
/* Takes the item in. False: it does not fit, or there is no memory; counted as refused. */
bool rn_shares_add(struct rn_shares *s, const struct rn_host *host, bool admitted,
		   struct rn_share_item *item, size_t cost);
void rn_shares_remove(struct rn_shares *s, struct rn_share_item *item);
/* Cost of the host's items. */
size_t rn_shares_of(const struct rn_shares *s, const struct rn_host *host);

/*
 * A line for the log that says that there was no room for all, and who has most. It is due once in
 * RN_SHARES_TELL_SECONDS when items were pushed out or refused.
 */
#define RN_SHARES_TELL_SECONDS 60u
struct rn_shares_line {
	struct rn_host most;
	size_t has, max;
	uint64_t pushed_out, refused; /* since the line before */
};
/* True if one is due at that time (CLOCK_MONOTONIC), and fills it in. It is written without the table's lock. */
bool rn_shares_line_due(struct rn_shares *s, uint64_t now_ns, struct rn_shares_line *out);
/* items: "calls that wait" */
void rn_shares_tell(const struct rn_logger *log, const char *items,
		    const struct rn_shares_line *line);

#endif
