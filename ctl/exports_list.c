/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl exports list */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl_exports.h"
#include "ctl/rows.h"
#include "lib/util.h"

static const struct table_column columns[] = {
	{ "EXPORT", false },  { "CLIENT", false }, { "OPTIONS", false }, { "STATE", false },
	{ "FS TYPE", false }, { "ID", true },	   { "FROM", false },
};

static const char *exports_list_text(const json_t *from, const char *name)
{
	return json_string_value(json_object_get(from, name));
}

static void exports_list_add_row(struct table *t, const json_t *export, const json_t *client)
{
	const bool waits = json_is_true(json_object_get(client, "waiting"));
	const char *file = exports_list_text(client, "file");

	table_cell(t, exports_list_text(export, "path"));
	table_cell(t, exports_list_text(client, "client"));
	table_cell(t, exports_list_text(client, "options"));
	table_cell(t, waits ? "waiting" : exports_list_text(export, "state"));
	table_cell(t, exports_list_text(export, "fs_type"));
	table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(export, "id")));
	if (file)
		table_cellf(t, "%s:%" JSON_INTEGER_FORMAT, file,
			    json_integer_value(json_object_get(client, "line")));
	else
		table_cell(t, "temporary");
}

static void print_reasons(const json_t *exports)
{
	const json_t *e;
	size_t i;

	json_array_foreach(exports, i, e)
	{
		if (!exports_list_text(e, "reason"))
			continue;
		const bool moved =
			strcmp(exports_list_text(e, "state") ? exports_list_text(e, "state") : "",
			       "moved") == 0;

		exports_print_text(e, "path", moved ? ": " : ": not served: ", stdout);
		exports_print_text(e, "reason", "\n", stdout);
	}
}

static void print_edits(json_int_t n)
{
	if (n == 1)
		puts("1 temporary change holds until the next reload");
	else if (n > 1)
		printf("%" JSON_INTEGER_FORMAT " temporary changes hold until the next reload\n",
		       n);
}

static int exports_list_print(const json_t *answer)
{
	const json_t *exports = json_object_get(answer, "exports"), *e, *client;
	struct table *t = table_new(columns, rn_array_size(columns));
	size_t i, j;

	json_array_foreach(exports, i, e)
	{
		json_array_foreach(json_object_get(e, "clients"), j, client)
		{
			if (t)
				exports_list_add_row(t, e, client);
		}
	}
	const int status = rows_end(t, stdout);

	if (status != CTL_DONE)
		return status;
	print_reasons(exports);
	exports_print_messages(answer, stdout);
	print_edits(json_integer_value(json_object_get(answer, "temporary_changes")));
	return CTL_DONE;
}

int exports_list(const struct ctl *ctl, int argc, char **argv)
{
	json_t *answer;

	if (argc > 1) {
		fprintf(stderr, "ringnfsctl: exports list takes no argument, such as '%s'\n",
			argv[1]);
		return CTL_USAGE;
	}
	int status = ctl_get(ctl, "/v1/exports", &answer);

	if (status == CTL_DONE && answer)
		status = exports_list_print(answer);
	json_decref(answer);
	return status;
}
