/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded table with a quota for each host: nobody fills it for the others, whether one host tries it or many.
 *
 * Each item is some host's, and costs a part of the table. A host that is at its own limit loses its oldest items first. When an item does
 * not fit into the table, room is made by one rule:
 * - items of strangers, whom no export admits, go before those of admitted hosts, and make no room at their cost;
 * - of each kind the host that has most loses its oldest items. That is the newcomer's own if it would have most.
 * So a host that has little keeps it, whatever others do, and a newcomer finds its place among any number of hosts
 * that have more.
 *
 * The table is told of items, and keeps no more than their cost: they lie where their owner has put them, who guards
 * the table, and ends an item that is in the way. Each operation takes a time that grows with the logarithm of the
 * number of hosts.
 */
#ifndef RN_LIB_QUOTA_H
#define RN_LIB_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/host.h"

struct rn_logger;
struct rn_quota_account;

/* Embedded in what the table bounds. Zeroed, it is in no table. */
struct rn_quota_item {
	TAILQ_ENTRY(rn_quota_item) link;
	struct rn_quota_account *of; /* account of its host; NULL: in no table */
	size_t cost;
	uint64_t order; /* ascending by time of entry */
};
TAILQ_HEAD(rn_quota_items, rn_quota_item);

struct rn_quota {
	size_t max, of_host; /* cost of all items; of one host's, at most */
	size_t used;
	uint64_t pushed_out; /* items that made room */
	uint64_t refused;    /* items that found none */
	/* Inside. */
	struct rn_host_table hosts; /* their accounts */
	uint64_t order;
	struct rn_quota_account **heap; /* who makes room first */
	unsigned nheap, heap_size;
	uint64_t told_ns, told_out, told_refused; /* last line in the log, and the numbers in it */
};

/* of_host 0: as much as max. */
void rn_quota_init(struct rn_quota *s, size_t max, size_t of_host);
void rn_quota_fini(struct rn_quota *s); /* no item is in it */

/*
 * An item that has to go before one of that cost fits for the host, or NULL: it fits, or nothing may make room for it.
 * Counts it as pushed out: the caller removes it, ends it, and asks again.
 */
struct rn_quota_item *rn_quota_in_the_way(struct rn_quota *s, const struct rn_host *host,
					  bool admitted, size_t cost);
/* Takes the item in. False: it does not fit, or there is no memory; counted as refused. */
bool rn_quota_add(struct rn_quota *s, const struct rn_host *host, bool admitted,
		  struct rn_quota_item *item, size_t cost);
void rn_quota_remove(struct rn_quota *s, struct rn_quota_item *item);
/* Makes it the newest: it was used. */
void rn_quota_renew(struct rn_quota *s, struct rn_quota_item *item);
/* Cost of the host's items. */
size_t rn_quota_of(const struct rn_quota *s, const struct rn_host *host);

/*
 * A line for the log that says that there was no room for all, and who has most. It is due once in
 * RN_QUOTA_TELL_SECONDS when items were pushed out or refused.
 */
#define RN_QUOTA_TELL_SECONDS 60u
struct rn_quota_line {
	struct rn_host most;
	size_t has, max;
	uint64_t pushed_out, refused; /* since the line before */
};
/* True if one is due at that time (CLOCK_MONOTONIC), and fills it in. It is written without the table's lock. */
bool rn_quota_line_due(struct rn_quota *s, uint64_t now_ns, struct rn_quota_line *out);
/* items: "calls that wait" */
void rn_quota_tell(const struct rn_logger *log, const char *items,
		   const struct rn_quota_line *line);

#endif
