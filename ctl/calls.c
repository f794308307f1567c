/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl calls */
#include <inttypes.h>
#include <stdio.h>

#include "ctl/ctl.h"
#include "ctl/pages.h"
#include "ctl/rows.h"
#include "lib/util.h"

static void calls_put_ms(struct table *t, const json_t *c, const char *name)
{
	if (json_object_get(c, name))
		table_cellf(t, "%" PRIu64 " ms", pages_number(c, name));
	else
		table_cell(t, NULL);
}

static void calls_put_row(struct table *t, const json_t *c)
{
	const char *address = pages_text(c, "address"), *op = pages_text(c, "operation");

	table_cell(t, address);
	table_cellf(t, "%" PRIu64, pages_number(c, "connection"));
	table_cellf(t, "%08" PRIx64, pages_number(c, "xid"));
	table_cellf(t, "%s %" PRIu64, pages_text(c, "program"), pages_number(c, "version"));
	table_cellf(t, "%s%s%s", pages_text(c, "procedure"), op ? " " : "", op ? op : "");
	table_cellf(t, "%" PRIu64 " ms", pages_number(c, "age_ms"));
	table_cell(t, pages_text(c, "waits_for"));
	calls_put_ms(t, c, "waits_ms");
	calls_put_ms(t, c, "waits_most_ms");
}

static int calls_print(const json_t *rows, uint64_t younger)
{
	static const struct table_column columns[] = {
		{ "CLIENT", false },	{ "CONN", true },  { "XID", false },
		{ "PROGRAM", false },	{ "CALL", false }, { "AGE", true },
		{ "WAITS FOR", false }, { "FOR", true },   { "MOST", true },
	};
	static const struct rows_shape shape = { columns, rn_array_size(columns), calls_put_row };
	const int status = rows_print(&shape, rows, stdout);

	if (status == CTL_DONE && younger)
		printf("and %" PRIu64 " younger ones\n", younger);
	return status;
}

int ctl_calls(const struct ctl *ctl, int argc, char **argv)
{
	json_t *last = NULL, *rows;
	const struct pages_query q = { .path = "/v1/calls", .list = "calls", .last = &last };

	if (argc > 1) {
		fprintf(stderr, "ringnfsctl: calls takes no '%s'\n", argv[1]);
		return CTL_USAGE;
	}
	int status = pages_get(ctl, &q, &rows);

	if (status == CTL_DONE)
		status = ctl->json ? pages_print_json(&q, rows)
				   : calls_print(rows, pages_number(last, "younger"));
	json_decref(rows);
	json_decref(last);
	return status;
}
