/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/deleg/deleg_policy.h"

uint64_t nfs4_deleg_excess(uint64_t used, uint64_t most)
{
	const uint64_t eighth = most / 8;

	return used > most - eighth ? used - (most - 2 * eighth) : 0;
}

uint64_t nfs4_deleg_memory_excess(const struct nfs4_deleg_memory *m)
{
	const uint64_t bytes = nfs4_deleg_excess(m->used, m->most);
	const uint64_t fair = m->most / 16 / m->cost;
	uint64_t excess = (bytes + m->cost - 1) / m->cost;

	if (m->delegs <= fair)
		return 0;
	return excess < m->delegs - fair ? excess : m->delegs - fair;
}

/* Sum of what is above a level. */
static uint64_t nfs4_deleg_sum_above(const uint32_t *has, unsigned n, uint64_t level)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n && has[i] > level; i++)
		sum += has[i] - level;
	return sum;
}

/* The highest level above which there is as much as excess; at least low. */
static uint32_t find_level(const uint32_t *has, unsigned n, uint32_t low, uint64_t excess)
{
	uint32_t high = n > 0 && has[0] > low ? has[0] : low;

	while (low < high) {
		const uint32_t middle = high - (high - low) / 2;

		if (nfs4_deleg_sum_above(has, n, middle) >= excess)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

void nfs4_deleg_share(const uint32_t *has, unsigned n, uint32_t next, uint64_t excess,
		      uint32_t *give)
{
	const uint32_t level = find_level(has, n, next, excess);

	for (unsigned i = 0; i < n; i++) {
		const uint32_t least = has[i] / 4 + (has[i] % 4 ? 1 : 0);
		uint64_t part = has[i] > level ? has[i] - level : 0;

		if (part < least)
			part = least;
		if (part > excess)
			part = excess;
		give[i] = (uint32_t)part;
		excess -= part;
	}
}

bool nfs4_deleg_may_ask(const struct nfs4_deleg_asked *a, uint32_t keep, uint64_t now)
{
	if (a->keep == NFS4_DELEG_KEEP_ALL)
		return true;
	return keep <= a->keep && now >= a->last + NFS4_DELEG_ASK_AGAIN_S;
}

uint32_t nfs4_deleg_to_take(const struct nfs4_deleg_asked *a, uint32_t n, uint64_t now,
			    uint64_t lease)
{
	if (n <= a->keep || (!a->deaf && now < a->since + lease))
		return 0;
	return n - a->keep < NFS4_DELEG_TAKEN_AT_ONCE ? n - a->keep : NFS4_DELEG_TAKEN_AT_ONCE;
}
