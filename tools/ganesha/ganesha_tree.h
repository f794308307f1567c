/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of nfs-ganesha's configuration as a tree: blocks `NAME { ... }` and parameters `NAME = VALUE, ... ;`. Its
 * words are those of the file, whatever they mean.
 */
#ifndef RN_GANESHA_TREE_H
#define RN_GANESHA_TREE_H

#include <stdbool.h>
#include <stddef.h>

struct ganesha_item {
	char *name; /* of a directive, such as %include, with its % */
	unsigned line;
	bool block;
	size_t n; /* values */
	char **value;
	struct ganesha_item *first, *next; /* items of the block; the next one of the same block */
};

struct ganesha_error {
	unsigned line;
	char text[160]; /* what is wrong, and what would be right */
};

/* A block without a name that has all others. NULL: no memory, or the text is wrong; err->text is empty without memory. */
struct ganesha_item *ganesha_parse(const char *text, size_t len, struct ganesha_error *err);
void ganesha_free(struct ganesha_item *tree); /* NULL is allowed */

/* The next item of that name behind `after`, or the first of the block if that is NULL. Case does not count. */
const struct ganesha_item *ganesha_find(const struct ganesha_item *block, const char *name,
					const struct ganesha_item *after);

#endif
