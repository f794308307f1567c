/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutators for inputs that are steps of eight bytes. They insert, remove, move and change whole
 * steps, so that most results stay meaningful. libFuzzer's own mutators would shift all later
 * steps.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STEP 8u

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size,
				 unsigned int seed);

/* splitmix64 */
static uint32_t pick(uint64_t *state, size_t n)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)(z >> 24) % (uint32_t)n;
}

/* Inserts a random step, or a copy of one of the input's, before step at. */
static size_t insert(uint8_t *data, size_t n, uint64_t *rng)
{
	const size_t at = pick(rng, n + 1);
	uint8_t step[STEP];

	for (unsigned i = 0; i < STEP; i++)
		step[i] = (uint8_t)pick(rng, i < 4 ? 16 : 256);
	if (n > 0 && pick(rng, 3) == 0)
		memcpy(step, data + pick(rng, n) * STEP, STEP);
	memmove(data + (at + 1) * STEP, data + at * STEP, (n - at) * STEP);
	memcpy(data + at * STEP, step, STEP);
	return n + 1;
}

static size_t take_out(uint8_t *data, size_t n, uint64_t *rng)
{
	const size_t at = pick(rng, n);

	memmove(data + at * STEP, data + (at + 1) * STEP, (n - at - 1) * STEP);
	return n - 1;
}

static void swap(uint8_t *data, size_t n, uint64_t *rng)
{
	uint8_t *a = data + pick(rng, n) * STEP, *b = data + pick(rng, n) * STEP, step[STEP];

	memcpy(step, a, STEP);
	memmove(a, b, STEP);
	memcpy(b, step, STEP);
}

static void change(uint8_t *data, size_t n, uint64_t *rng)
{
	static const uint8_t telling[] = { 0, 1, 2, 3, 7, 8, 0x7f, 0x80, 0xc0, 0xf0, 0xfe, 0xff };
	uint8_t *p = data + pick(rng, n) * STEP + pick(rng, STEP);

	switch (pick(rng, 4)) {
	case 0:
		*p ^= (uint8_t)(1u << pick(rng, 8));
		break;
	case 1:
		*p = telling[pick(rng, sizeof(telling))];
		break;
	case 2:
		*p = (uint8_t)(*p + pick(rng, 9) - 4);
		break;
	default:
		*p = (uint8_t)pick(rng, 256);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	uint64_t rng = seed;
	size_t n = size / STEP;

	for (unsigned i = 1 + pick(&rng, 4); i > 0; i--) {
		const uint32_t what = n > 0 ? pick(&rng, 10) : 0;

		if (what < 3 && (n + 1) * STEP <= max_size)
			n = insert(data, n, &rng);
		else if (what == 3 && n > 1)
			n = take_out(data, n, &rng);
		else if (what == 4 && n > 0)
			swap(data, n, &rng);
		else if (n > 0)
			change(data, n, &rng);
	}
	return n * STEP;
}

/* Joins the beginning of one input and the end of another. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size, unsigned int seed)
{
	uint64_t rng = seed;
	size_t keep = pick(&rng, size1 / STEP + 1) * STEP, skip, rest;

	skip = pick(&rng, size2 / STEP + 1) * STEP;
	rest = size2 / STEP * STEP - skip;
	if (keep > max_out_size)
		keep = max_out_size / STEP * STEP;
	if (rest > max_out_size - keep)
		rest = (max_out_size - keep) / STEP * STEP;
	memcpy(out, data1, keep);
	memcpy(out + keep, data2 + skip, rest);
	return keep + rest;
}
