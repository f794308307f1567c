/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of contexts, set aside at start, since payload slabs are never given back and would leave none. The library
 * allocates it, so it is counted by the number of contexts.
 */
#ifndef RN_GSS_GSS_MEMORY_H
#define RN_GSS_GSS_MEMORY_H

#include <stddef.h>

#include "lib/budget.h"

/* More than a context takes whose keys for all flavours are in use, with ours and its places in the tables. A copy has no
 * name and no ticket. */
#define GSS_CONTEXT_BYTES 10240u
#define GSS_COPY_BYTES 10240u
#define GSS_SHARE 8u /* the part of the whole budget that is set aside, at most: one eighth */

struct gss_memory {
	size_t bytes;	   /* of the whole budget */
	unsigned contexts; /* established ones */
	unsigned copies;   /* of one context */
	unsigned grown;	   /* contexts with copies */
	size_t tokens;	   /* bytes of tokens that wait */
};

/* Divides an eighth of `whole`, or less if max_contexts need less. */
void gss_memory_divide(size_t whole, unsigned max_contexts, unsigned cpus, struct gss_memory *out);

#endif
