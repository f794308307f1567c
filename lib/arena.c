/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/arena.h"

#include <stdint.h>
#include <string.h>

void rn_arena_init(struct rn_arena *a, void *buf, size_t size)
{
	a->base = buf;
	a->size = size;
	rn_arena_reset(a);
}

/* Bytes that bring the next allocation to the alignment of any type, wherever the buffer starts. */
static size_t align_gap(const struct rn_arena *a)
{
	const uintptr_t at = (uintptr_t)a->base + a->used;

	return -at & (_Alignof(max_align_t) - 1);
}

void *rn_arena_alloc(struct rn_arena *a, size_t size)
{
	const size_t gap = align_gap(a), left = a->size - a->used;

	if (gap > left || size > left - gap) {
		a->overflowed = true;
		return NULL;
	}
	char *p = a->base + a->used + gap;
	a->used += gap + size;
	return memset(p, 0, size);
}

void *rn_arena_array(struct rn_arena *a, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		a->overflowed = true;
		return NULL;
	}
	return rn_arena_alloc(a, bytes);
}

void rn_arena_reset(struct rn_arena *a)
{
	a->used = 0;
	a->overflowed = false;
}

void rn_arena_rewind(struct rn_arena *a, size_t used)
{
	if (used < a->used)
		a->used = used;
	a->overflowed = false;
}
