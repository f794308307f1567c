/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/budget.h"

Test(arena, fills_to_the_last_byte_and_marks_the_overflow)
{
	_Alignas(16) char buf[64];
	struct rn_arena a;

	memset(buf, 0xff, sizeof(buf));
	rn_arena_init(&a, buf, sizeof(buf));
	char *p = rn_arena_alloc(&a, 64);
	cr_assert_not_null(p);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(p[i], 0);
	cr_assert_not(a.overflowed);
	cr_assert_null(rn_arena_alloc(&a, 1));
	cr_assert(a.overflowed);
	rn_arena_reset(&a);
	cr_assert_not(a.overflowed);
	cr_assert_eq(rn_arena_alloc(&a, 1), p);
}

Test(arena, aligns_for_any_type_wherever_the_buffer_starts)
{
	_Alignas(16) char buf[65];
	struct rn_arena a;

	rn_arena_init(&a, buf + 1, 64);
	const char *p = rn_arena_alloc(&a, 3);
	cr_assert_eq((uintptr_t)p % _Alignof(max_align_t), 0);
	p = rn_arena_alloc(&a, 3);
	cr_assert_eq((uintptr_t)p % _Alignof(max_align_t), 0);
	cr_assert_not_null(rn_arena_alloc(&a, 65 - 48));
	cr_assert_null(rn_arena_alloc(&a, 1));
}

Test(arena, an_overflowing_product_does_not_fit)
{
	_Alignas(16) char buf[64];
	struct rn_arena a;

	rn_arena_init(&a, buf, sizeof(buf));
	cr_assert_null(rn_arena_array(&a, SIZE_MAX / 2, 4));
	cr_assert(a.overflowed);
	rn_arena_reset(&a);
	cr_assert_null(rn_arena_alloc(&a, SIZE_MAX));
	cr_assert_not_null(rn_arena_array(&a, 8, 8));
	cr_assert_not_null(rn_arena_array(&a, 0, 8), "nothing fits into nothing");
}

Test(budget, gives_up_at_the_maximum_only)
{
	struct rn_budget b;

	rn_budget_init(&b, 10);
	cr_assert(rn_budget_take(&b, 10));
	cr_assert_not(rn_budget_take(&b, 1));
	cr_assert(rn_budget_take(&b, 0));
	rn_budget_give(&b, 4);
	cr_assert_not(rn_budget_take(&b, 5));
	cr_assert_not(rn_budget_take(&b, SIZE_MAX));
	cr_assert(rn_budget_take(&b, 4));
}
