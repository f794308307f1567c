/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of an answer as a table. */
#ifndef RN_CTL_ROWS_H
#define RN_CTL_ROWS_H

#include <jansson.h>

#include "ctl/ctl_table.h"

struct rows_shape {
	const struct table_column *columns;
	size_t n;
	void (*put)(struct table *t, const json_t *row); /* adds the cells of a row */
};

/* Prints the elements of the array; without any, nothing. An exit status, with a message on standard error. */
int rows_print(const struct rows_shape *shape, const json_t *rows, FILE *out);
/* Prints the table and frees it. NULL: there was no memory for it. An exit status as above. */
int rows_end(struct table *t, FILE *out);

#endif
