/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/rows.h"

#include "ctl/ctl.h"
#include "ctl/pages.h"

int rows_end(struct table *t, FILE *out)
{
	const int rc = t ? table_print(t, out) : -1;

	table_free(t);
	return rc ? pages_no_memory() : CTL_DONE;
}

int rows_print(const struct rows_shape *shape, const json_t *rows, FILE *out)
{
	struct table *t = table_new(shape->columns, shape->n);
	const json_t *row;
	size_t i;

	if (t)
		json_array_foreach(rows, i, row) shape->put(t, row);
	return rows_end(t, out);
}
