/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/log_limit.h"

#define SPAN_NS (RN_LOG_LIMIT_SECONDS * 1000000000ull)
#define COUNT_MASK 0xffffffffu

bool rn_log_limit_pass(struct rn_log_limit *l, uint64_t now_ns, unsigned *left_out)
{
	const uint64_t number = now_ns / SPAN_NS + 1; /* never 0, the value in zeroed memory */
	uint64_t was = atomic_load_explicit(&l->span, memory_order_relaxed), is;

	do {
		is = was >> 32 == (number & COUNT_MASK) ? was + 1 : number << 32 | 1;
		if ((was >> 32 == (number & COUNT_MASK)) && (was & COUNT_MASK) >= RN_LOG_LIMIT) {
			atomic_fetch_add_explicit(&l->left_out, 1, memory_order_relaxed);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&l->span, &was, is));
	*left_out = atomic_exchange_explicit(&l->left_out, 0, memory_order_relaxed);
	return true;
}
