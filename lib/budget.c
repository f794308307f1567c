/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/budget.h"

void rn_budget_init(struct rn_budget *b, size_t max)
{
	b->max = max;
	atomic_init(&b->used, 0);
}

bool rn_budget_take(struct rn_budget *b, size_t bytes)
{
	size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);

	do {
		if (used > b->max || bytes > b->max - used)
			return false;
	} while (!atomic_compare_exchange_weak(&b->used, &used, used + bytes));
	return true;
}

void rn_budget_give(struct rn_budget *b, size_t bytes)
{
	atomic_fetch_sub(&b->used, bytes);
}
