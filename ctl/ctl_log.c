/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl log */
#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl.h"
#include "ctl/pages.h"
#include "ctl/rows.h"
#include "ctl/uri.h"
#include "lib/util.h"

static void ctl_log_put_row(struct table *t, const json_t *row)
{
	table_cell(t, pages_text(row, "module"));
	table_cell(t, pages_text(row, "level"));
}

static int ctl_log_print(const json_t *answer)
{
	static const struct table_column columns[] = { { "MODULE", false }, { "LEVEL", false } };
	static const struct rows_shape shape = { columns, rn_array_size(columns), ctl_log_put_row };

	return rows_print(&shape, json_object_get(answer, "modules"), stdout);
}

static int ctl_log_set(const struct ctl *ctl, const char *level, const char *module,
		       json_t **answer)
{
	char *uri = uri_add(uri_new("/v1/log"), "level", level);

	if (module)
		uri = uri_add(uri, "module", module);
	if (!uri)
		return pages_no_memory();
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
		status = ctl_log_set(ctl, argv[1], argc == 3 ? argv[2] : NULL, &answer);
	if (status == CTL_DONE && !ctl->json)
		status = ctl_log_print(answer);
	json_decref(answer);
	return status;
}
