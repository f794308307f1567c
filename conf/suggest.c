/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/suggest.h"

#include <string.h>

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment over three rows of the usual table. */
unsigned cfg_edit_distance(const char *a, const char *b)
{
	unsigned rows[3][CFG_WORD_MAX + 1];
	unsigned *before = rows[0], *prev = rows[1], *cur = rows[2];
	size_t na = strnlen(a, CFG_WORD_MAX);
	size_t nb = strnlen(b, CFG_WORD_MAX);

	for (size_t j = 0; j <= nb; j++)
		prev[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *spare = before;

		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned change = a[i - 1] != b[j - 1];

			cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < cur[j])
				cur[j] = before[j - 2] + 1;
		}
		before = prev;
		prev = cur;
		cur = spare;
	}
	return prev[nb];
}

void cfg_suggest_try(struct cfg_suggest *suggest, const char *candidate)
{
	size_t len = strlen(suggest->word);
	unsigned limit = len < 6 ? 2 : (unsigned)(len / 3);
	unsigned distance;

	if (!len || len > CFG_WORD_MAX)
		return;
	distance = cfg_edit_distance(suggest->word, candidate);
	/* A word that shares nothing is not similar. */
	if (distance > limit || distance >= len || distance >= strlen(candidate))
		return;
	if (!suggest->best || distance < suggest->distance) {
		suggest->best = candidate;
		suggest->distance = distance;
	}
}
