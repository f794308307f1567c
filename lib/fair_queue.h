/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fair queue: deficit round robin over flows, each a first-in-first-out list of items. Pure data
 * structure: no lock, no memory of its own, no clock.
 *
 * The first flow of the round is served while it has credit left; then it gets another quantum and
 * goes to the end of the round. The cost of an item is given when the item is pushed. More may be
 * charged later, when the true cost is known (the length of a reply): credit then goes below zero,
 * and the flow is passed over for that many rounds. Debt is bounded. It is forgotten when no item
 * waits any more, or no other flow does: the queue shares, it does not punish.
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

/* Embedded in a queued object. */
struct rn_fq_item {
	TAILQ_ENTRY(rn_fq_item) link;
	struct rn_fq_flow *flow; /* NULL unless queued */
	uint32_t cost;
};
TAILQ_HEAD(rn_fq_items, rn_fq_item);

/* Embedded in the owner of the items. Must be empty when it is freed. */
struct rn_fq_flow {
	TAILQ_ENTRY(rn_fq_flow) link; /* in rn_fq.round, while the flow has items */
	struct rn_fq_items items;
	int64_t credit;
	uint64_t epoch; /* rn_fq.epoch in which credit was last changed */
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
/* Takes out the next item; NULL if the queue is empty. */
struct rn_fq_item *rn_fq_pop(struct rn_fq *q);
/*
 * As rn_fq_pop, but only from flows whose first item ok() accepts. Other flows lose their turn in
 * this round and nothing else. Gives up after `tries` refusals: the next call goes on where this
 * one stopped.
 */
struct rn_fq_item *rn_fq_pop_if(struct rn_fq *q, unsigned tries,
				bool (*ok)(void *ctx, const struct rn_fq_item *it), void *ctx);
void rn_fq_remove(struct rn_fq *q, struct rn_fq_item *it); /* it must be queued */
/* Charges f for an item that was popped and has cost that much more. */
void rn_fq_charge(struct rn_fq *q, struct rn_fq_flow *f, uint64_t cost);

static inline bool rn_fq_waits(const struct rn_fq_flow *f)
{
	return !TAILQ_EMPTY(&f->items);
}

#endif
