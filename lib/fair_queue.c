/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/fair_queue.h"

#include <limits.h>
#include <stddef.h>

void rn_fq_init(struct rn_fq *q, uint32_t quantum)
{
	*q = (struct rn_fq){ .quantum = quantum, .epoch = 1 };
	TAILQ_INIT(&q->round);
}

void rn_fq_flow_init(struct rn_fq_flow *f)
{
	*f = (struct rn_fq_flow){ 0 };
	TAILQ_INIT(&f->items);
}

/* Old debts and savings are void once the queue has been empty. */
static void fq_flow_refresh(const struct rn_fq *q, struct rn_fq_flow *f)
{
	if (f->epoch == q->epoch)
		return;
	f->epoch = q->epoch;
	f->credit = q->quantum;
}

void rn_fq_push(struct rn_fq *q, struct rn_fq_flow *f, struct rn_fq_item *it, uint32_t cost)
{
	fq_flow_refresh(q, f);
	if (TAILQ_EMPTY(&f->items)) {
		TAILQ_INSERT_TAIL(&q->round, f, link);
		q->nflows++;
	}
	it->flow = f;
	it->cost = cost;
	TAILQ_INSERT_TAIL(&f->items, it, link);
	q->nitems++;
}

void rn_fq_remove(struct rn_fq *q, struct rn_fq_item *it)
{
	struct rn_fq_flow *f = it->flow;

	TAILQ_REMOVE(&f->items, it, link);
	it->flow = NULL;
	q->nitems--;
	if (!TAILQ_EMPTY(&f->items))
		return;
	TAILQ_REMOVE(&q->round, f, link);
	q->nflows--;
	if (q->nflows == 0)
		q->epoch++;
}

static void pay(const struct rn_fq *q, struct rn_fq_flow *f, uint64_t cost)
{
	const int64_t least = -(int64_t)q->quantum * RN_FQ_DEBT_QUANTA;

	if (cost > INT64_MAX / 2 || f->credit - (int64_t)cost < least)
		f->credit = least;
	else
		f->credit -= (int64_t)cost;
}

void rn_fq_charge(struct rn_fq *q, struct rn_fq_flow *f, uint64_t cost)
{
	/* Forgive the debt: nobody else waits, so nothing was taken from anybody. */
	if (q->nflows == 0 || (q->nflows == 1 && TAILQ_FIRST(&q->round) == f))
		return;
	fq_flow_refresh(q, f);
	pay(q, f, cost);
}

static void to_end(struct rn_fq *q, struct rn_fq_flow *f)
{
	TAILQ_REMOVE(&q->round, f, link);
	TAILQ_INSERT_TAIL(&q->round, f, link);
}

static struct rn_fq_item *fq_flow_serve(struct rn_fq *q, struct rn_fq_flow *f)
{
	struct rn_fq_item *it = TAILQ_FIRST(&f->items);

	pay(q, f, it->cost);
	rn_fq_remove(q, it);
	return it;
}

struct rn_fq_item *rn_fq_pop_if(struct rn_fq *q, unsigned tries,
				bool (*ok)(void *ctx, const struct rn_fq_item *it), void *ctx)
{
	/* refusals by ok() in all, and since a flow last got credit */
	unsigned noes = 0, since = 0;
	struct rn_fq_flow *f;

	while ((f = TAILQ_FIRST(&q->round)) && since < q->nflows && noes < tries) {
		if (q->nflows == 1 && f->credit <= 0)
			f->credit = q->quantum;
		if (f->credit <= 0) {
			f->credit += q->quantum;
			to_end(q, f);
			since = 0; /* a flow may have been refused twice before its turn comes */
			continue;
		}
		if (!ok || ok(ctx, TAILQ_FIRST(&f->items)))
			return fq_flow_serve(q, f);
		to_end(q, f);
		noes++;
		since++;
	}
	return NULL;
}

struct rn_fq_item *rn_fq_pop(struct rn_fq *q)
{
	return rn_fq_pop_if(q, UINT_MAX, NULL, NULL);
}
