/* SPDX-License-Identifier: BSD-2-Clause */
/* Selection of cases: numbers, ranges of numbers, ids, names of groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/conform/run.h"

static bool word_names(const char *word, const struct cf_group *g, unsigned index)
{
	unsigned number = g->first + index;
	char *end;
	unsigned long low = strtoul(word, &end, 10), high = low;

	if (end == word)
		return !strcmp(word, g->name) || !strcmp(word, g->cases[index].id);
	if (*end == '-')
		high = strtoul(end + 1, &end, 10);
	return !*end && number >= low && number <= high;
}

/* Copies the next word of the list to word; returns the rest, or NULL. */
static const char *next_word(const char *list, char *word, size_t size)
{
	while (*list == ',')
		list++;
	size_t n = strcspn(list, ",");
	if (!n)
		return NULL;
	snprintf(word, size, "%.*s", (int)n, list);
	return list + n;
}

bool cf_selected(const char *list, const struct cf_group *g, unsigned index)
{
	char word[128];

	if (!list)
		return true;
	while ((list = next_word(list, word, sizeof(word))))
		if (word_names(word, g, index))
			return true;
	return false;
}

static bool names_something(const char *word)
{
	for (const struct cf_group *const *g = cf_groups; *g; g++)
		for (unsigned i = 0; i < (*g)->ncases; i++)
			if (word_names(word, *g, i))
				return true;
	return false;
}

const char *cf_select_check(const char *list, char *word, size_t size)
{
	while ((list = next_word(list, word, size)))
		if (!names_something(word))
			return word;
	return NULL;
}
