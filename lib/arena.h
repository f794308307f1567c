/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A per-request arena over one fixed buffer. An allocation that does not fit returns NULL and sets
 * a mark, so that a decoder may test once at its end. Memory comes back only by a reset; the owner
 * of the buffer owns the arena. Not thread-safe: a request stays on one worker.
 */
#ifndef RN_LIB_ARENA_H
#define RN_LIB_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct rn_arena {
	char *base;
	size_t size;
	size_t used;
	bool overflowed;
};

void rn_arena_init(struct rn_arena *a, void *buf, size_t size);

/* Zeroed memory aligned for any type, or NULL (and a->overflowed) when it does not fit. */
void *rn_arena_alloc(struct rn_arena *a, size_t size);

/* As rn_arena_alloc, for count elements of size; an overflowing product does not fit. */
void *rn_arena_array(struct rn_arena *a, size_t count, size_t size);

void rn_arena_reset(struct rn_arena *a);

/* Takes back what was allocated since used had that value. */
void rn_arena_rewind(struct rn_arena *a, size_t used);

#endif
