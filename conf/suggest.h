/* SPDX-License-Identifier: BSD-2-Clause */
/* The nearest known word to an unknown one, for messages. */
#ifndef RINGNFS_CONF_SUGGEST_H
#define RINGNFS_CONF_SUGGEST_H

#include <stddef.h>

enum { CFG_WORD_MAX = 64 };

/* Letters to insert, delete, replace or swap with their neighbour; words are cut at CFG_WORD_MAX.
 */
unsigned cfg_edit_distance(const char *a, const char *b);

/*
 * Feed candidates one by one; best stays NULL when none is near enough to be what was meant: more
 * than a third of the word would have to change.
 */
struct cfg_suggest {
	const char *word;
	const char *best;
	unsigned distance;
};

void cfg_suggest_try(struct cfg_suggest *suggest, const char *candidate);

#endif
