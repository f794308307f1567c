/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory budget (memory_max): every large or peer-driven allocation is taken out of it first.
 * Bytes; thread-safe. Whoever took an amount gives the same amount back.
 */
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
