/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl config show */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/rows.h"
#include "lib/util.h"

static const char *config_text(const json_t *from, const char *name)
{
	return json_string_value(json_object_get(from, name));
}

static void config_put_value(struct table *t, const json_t *row)
{
	const char *value = config_text(row, "value"), *in_force = config_text(row, "in_force");

	if (!value || !*value)
		value = "-";
	if (in_force)
		table_cellf(t, "%s (in force: %s)", value, in_force);
	else
		table_cell(t, value);
}

static void put_origin(struct table *t, const json_t *row)
{
	const json_int_t line = json_integer_value(json_object_get(row, "line"));

	if (config_text(row, "file"))
		table_cellf(t, "%s:%" JSON_INTEGER_FORMAT, config_text(row, "file"), line);
	else
		table_cell(t, config_text(row, "option") ? config_text(row, "option")
							 : config_text(row, "from"));
}

static void config_put_row(struct table *t, const json_t *row)
{
	table_cell(t, config_text(row, "key"));
	config_put_value(t, row);
	put_origin(t, row);
}

static int config_print(const json_t *answer)
{
	static const struct table_column columns[] = {
		{ "SETTING", false },
		{ "VALUE", false },
		{ "FROM", false },
	};
	static const struct rows_shape shape = { columns, rn_array_size(columns), config_put_row };

	return rows_print(&shape, json_object_get(answer, "settings"), stdout);
}

int ctl_config(const struct ctl *ctl, int argc, char **argv)
{
	json_t *answer = NULL;

	if (argc != 2 || strcmp(argv[1], "show") != 0) {
		fputs("usage: ringnfsctl config show\n", stderr);
		return CTL_USAGE;
	}
	int status = ctl_get(ctl, "/v1/config", &answer);

	if (status == CTL_DONE && !ctl->json)
		status = config_print(answer);
	json_decref(answer);
	return status;
}
