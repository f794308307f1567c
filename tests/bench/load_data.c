/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents of the files: one long random sequence, repeated, which each file begins elsewhere. So
 * any WRITE sends a part of it in place, and a READ of the wrong file or offset is noticed.
 */
#include <stdlib.h>
#include "load.h"

#define PERIOD 1052687u /* odd and over 1 MiB: no two offsets that calls use look the same */

static uint8_t *sequence;

void data_init(void)
{
	uint64_t x = 88172645463325252u;
	size_t i;

	sequence = malloc(PERIOD + SIZE_MAX_IO);
	if (!sequence)
		die("no memory");
	for (i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		sequence[i] = (uint8_t)(x >> 32);
	}
	memcpy(sequence + PERIOD, sequence, SIZE_MAX_IO);
}

const uint8_t *data_at(unsigned file, uint64_t offset)
{
	return sequence + (offset + file * 7919u) % PERIOD;
}

/* Compares every byte, or the first eight and the last of each page. */
bool data_good(const uint8_t *p, size_t n, unsigned file, uint64_t offset, bool all)
{
	const uint8_t *want = data_at(file, offset);
	size_t i;

	if (all || n < 4096)
		return !memcmp(p, want, n);
	for (i = 0; i + 4096 <= n; i += 4096)
		if (memcmp(p + i, want + i, 8) != 0 || p[i + 4095] != want[i + 4095])
			return false;
	return p[n - 1] == want[n - 1];
}

/* Offset of a call's next READ or WRITE: scattered over the file, in whole sizes. */
uint64_t data_offset(const struct load *l, const struct call *c)
{
	uint64_t blocks = l->o.file_size / l->o.size;
	uint64_t at = c->serial + (uint64_t)c->index * 977u + (uint64_t)c->conn->index * 31u;

	return at * 0x9e3779b97f4a7c15u % blocks * l->o.size;
}
