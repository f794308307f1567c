/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of text in columns that are as wide as their longest cell. Cells are shown as they are but for control
 * characters and bytes that are no UTF-8, each of which becomes \xNN: names that clients give must not reach the terminal.
 */
#ifndef RN_CTL_CTL_TABLE_H
#define RN_CTL_CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 24 };

struct table_column {
	const char *title;
	bool right; /* numbers stand at the right */
};

struct table;

/* The columns must outlive the table. NULL: no memory, or more than TABLE_COLUMNS_MAX columns. */
struct table *table_new(const struct table_column *columns, size_t n);
/* Adds a cell to the right of the last one; after the last column the next row begins. NULL is shown as "-".
 * Without memory the table remembers that, and table_print() fails. */
void table_cell(struct table *t, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t table_rows(const struct table *t);
/* Prints titles and rows; without rows nothing. 0 or -ENOMEM. */
int table_print(const struct table *t, FILE *out);
void table_free(struct table *t);

/* The text, made safe for a terminal as above. The caller frees it. NULL: no memory. */
char *table_safe_text(const char *text);

#endif
