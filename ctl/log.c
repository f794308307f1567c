/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl log */
#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl.h"
#include "ctl/table.h"
#include "ctl/uri.h"
#include "lib/util.h"

static int no_memory(void)
{
	fputs("ringnfsctl: out of memory\n", stderr);
	return CTL_UNREACHABLE;
}

static int print(const json_t *answer)
{
	static const struct table_column columns[] = { { "MODULE", false }, { "LEVEL", false } };
	struct table *t = table_new(columns, rn_array_size(columns));
	const json_t *row;
	size_t i;

	if (!t)
		return no_memory();
	json_array_foreach(json_object_get(answer, "modules"), i, row)
	{
		table_cell(t, json_string_value(json_object_get(row, "module")));
		table_cell(t, json_string_value(json_object_get(row, "level")));
	}
	const int rc = table_print(t, stdout);

	table_free(t);
	return rc ? no_memory() : CTL_DONE;
}

static int set(const struct ctl *ctl, const char *level, const char *module, json_t **answer)
{
	char *uri = uri_add(uri_new("/v1/log"), "level", level);

	if (module)
		uri = uri_add(uri, "module", module);
	if (!uri)
		return no_memory();
	const int status = ctl_post(ctl, uri, NULL, answer);

	free(uri);
	return status;
}

int ctl_log(const struct ctl *ctl, int argc, char **argv)
{
	json_t *answer = NULL;
	int status;

	if (argc > 3) {
		fputs("usage: ringnfsctl log [LEVEL [MODULE]]\n", stderr);
		return CTL_USAGE;
	}
	if (argc == 1)
		status = ctl_get(ctl, "/v1/log", &answer);
	else
		status = set(ctl, argv[1], argc == 3 ? argv[2] : NULL, &answer);
	if (status == CTL_DONE && !ctl->json)
		status = print(answer);
	json_decref(answer);
	return status;
}
