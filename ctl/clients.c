/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl clients */
#include <inttypes.h>
#include <stdio.h>

#include "ctl/ctl.h"
#include "ctl/pages.h"
#include "ctl/print.h"
#include "ctl/table.h"
#include "lib/util.h"

static void put_state(struct table *t, const json_t *c)
{
	char since[PRINT_MAX], left[PRINT_MAX];
	const char *state = pages_text(c, "state");

	if (json_object_get(c, "lease_left"))
		table_cellf(t, "%s, lease for %s", state,
			    print_age(pages_number(c, "lease_left"), left));
	else
		table_cellf(t, "%s for %s", state, print_age(pages_number(c, "since"), since));
}

static int print(const json_t *rows)
{
	static const struct table_column columns[] = {
		{ "ID", false },   { "ADDRESS", false },    { "NET", false },
		{ "VERS", false }, { "SESSIONS", true },    { "OPENS", true },
		{ "LOCKS", true }, { "DELEGATIONS", true }, { "STATE", false },
		{ "NAME", false },
	};
	struct table *t = table_new(columns, rn_array_size(columns));
	const json_t *c;
	size_t i;

	if (!t)
		return pages_no_memory();
	json_array_foreach(rows, i, c)
	{
		table_cell(t, pages_text(c, "id"));
		table_cell(t, pages_text(c, "address"));
		table_cell(t, pages_text(c, "netid"));
		table_cell(t, pages_text(c, "version"));
		table_cellf(t, "%" PRIu64, pages_number(c, "sessions"));
		table_cellf(t, "%" PRIu64, pages_number(c, "opens"));
		table_cellf(t, "%" PRIu64, pages_number(c, "locks"));
		table_cellf(t, "%" PRIu64, pages_number(c, "delegations"));
		put_state(t, c);
		table_cell(t, pages_text(c, "name"));
	}
	const int rc = table_print(t, stdout);

	table_free(t);
	return rc ? pages_no_memory() : CTL_DONE;
}

int ctl_clients(const struct ctl *ctl, int argc, char **argv)
{
	const struct pages_query q = {
		.path = "/v1/clients",
		.list = "clients",
		.name = "id",
		.value = argc > 1 ? argv[1] : NULL,
	};
	json_t *rows;

	if (argc > 2) {
		fprintf(stderr, "ringnfsctl: clients takes an id at most, and not '%s'\n", argv[2]);
		return CTL_USAGE;
	}
	int status = pages_get(ctl, &q, &rows);

	if (status == CTL_DONE && argc == 2 && json_array_size(rows) == 0) {
		fprintf(stderr, "ringnfsctl: there is no client %s\n", argv[1]);
		status = CTL_REFUSED;
	}
	if (status == CTL_DONE)
		status = ctl->json ? pages_print_json(&q, rows) : print(rows);
	json_decref(rows);
	return status;
}
