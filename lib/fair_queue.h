/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fair queue: deficit round robin over flows, each a first-in-first-out list of items. Pure data
 * structure: no lock, no memory of its own, no clock.
 *
 * Turns. The first flow of the round is served while it has credit left; then it gets another
 * quantum and goes to the end of the round. An item costs what it is said to cost when it is
 * pushed, and more may be charged when it turns out to have been dearer (the length of a reply):
 * credit then goes below zero, and that many rounds pass without the flow. Debt is bounded, and
 * forgotten when nobody waits any more or nobody else does: it is about sharing, not about
 * punishment.
 *
 * Costs and quantum are in one unit of the user's choice. All operations take constant time, but
 * for rounds skipped to work off debt: at most debt / quantum for each item served.
 */
#ifndef RN_LIB_FAIR_QUEUE_H
#define RN_LIB_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define RN_FQ_DEBT_QUANTA 64

struct rn_fq_flow;

/* Embedded in what is queued. */
struct rn_fq_item {
	TAILQ_ENTRY(rn_fq_item) link;
	struct rn_fq_flow *flow; /* while queued; else NULL */
	uint32_t cost;
};
TAILQ_HEAD(rn_fq_items, rn_fq_item);

/* Embedded in what owns the items. Must be empty when it goes. */
struct rn_fq_flow {
	TAILQ_ENTRY(rn_fq_flow) link; /* in the round, while it has items */
	struct rn_fq_items items;
	int64_t credit;
	uint64_t epoch; /* that credit is of */
};
TAILQ_HEAD(rn_fq_flows, rn_fq_flow);

struct rn_fq {
	struct rn_fq_flows round;
	unsigned nflows;
	unsigned nitems;
	uint32_t quantum;
	uint64_t epoch; /* counts how often the queue has been empty */
};

void rn_fq_init(struct rn_fq *q, uint32_t quantum); /* quantum > 0 */
void rn_fq_flow_init(struct rn_fq_flow *f);

void rn_fq_push(struct rn_fq *q, struct rn_fq_flow *f, struct rn_fq_item *it, uint32_t cost);
/* The item whose turn it is, or NULL: empty. */
struct rn_fq_item *rn_fq_pop(struct rn_fq *q);
/*
 * The same among the flows that ok() says yes to (asked about a flow's first item). Others lose
 * their turn in this round but nothing else. Gives up after `tries` noes: the next call goes on
 * where this one stopped.
 */
struct rn_fq_item *rn_fq_pop_if(struct rn_fq *q, unsigned tries,
				bool (*ok)(void *ctx, const struct rn_fq_item *it), void *ctx);
void rn_fq_remove(struct rn_fq *q, struct rn_fq_item *it); /* a queued one */
/* Something of f that was popped cost so much more. */
void rn_fq_charge(struct rn_fq *q, struct rn_fq_flow *f, uint64_t cost);

static inline bool rn_fq_waits(const struct rn_fq_flow *f)
{
	return !TAILQ_EMPTY(&f->items);
}

#endif
