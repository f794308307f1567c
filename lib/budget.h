/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory budget (memory_max). Every large allocation, and every one that a peer brings about,
 * is taken out of it first. In bytes; thread-safe. Each amount is given back by its taker. */
#ifndef RN_LIB_BUDGET_H
#define RN_LIB_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct rn_budget {
	size_t max;
	_Atomic size_t used;
};

void rn_budget_init(struct rn_budget *b, size_t max);
bool rn_budget_take(struct rn_budget *b, size_t bytes); /* false: would exceed max, nothing taken */
void rn_budget_give(struct rn_budget *b, size_t bytes);

#endif
