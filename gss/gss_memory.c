/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/gss_memory.h"

#include "gss/contexts.h"
#include "gss/gss_copies.h"
#include "lib/util.h"

#define GROWN_MOST 64u
#define TOKENS_MOST ((size_t)16 << 20)

void gss_memory_divide(size_t whole, unsigned max_contexts, unsigned cpus, struct gss_memory *out)
{
	const size_t share = whole / GSS_SHARE, quarter = share / 4;
	const size_t half_made = (size_t)GSS_HALF_MAX * GSS_CONTEXT_BYTES;
	size_t left, one;

	out->copies = rn_max(1u, rn_min(cpus, GSS_COPIES_MOST));
	one = (size_t)(out->copies - 1) * GSS_COPY_BYTES;
	out->grown = one ? (unsigned)rn_min(quarter / one, (size_t)GROWN_MOST) : 0;
	out->tokens = rn_min(quarter, TOKENS_MOST);
	out->bytes = one * out->grown + out->tokens + half_made;
	left = share > out->bytes ? (share - out->bytes) / GSS_CONTEXT_BYTES : 0;
	out->contexts = (unsigned)rn_min((size_t)max_contexts, rn_max(left, (size_t)1));
	out->bytes += (size_t)out->contexts * GSS_CONTEXT_BYTES;
}
