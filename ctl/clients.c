/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl clients */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl.h"
#include "ctl/print.h"
#include "ctl/table.h"
#include "ctl/uri.h"
#include "lib/util.h"

static const char *text(const json_t *from, const char *name)
{
	return json_string_value(json_object_get(from, name));
}

static uint64_t number(const json_t *from, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(from, name));
}

static int no_memory(void)
{
	fputs("ringnfsctl: no memory\n", stderr);
	return CTL_UNREACHABLE;
}

/* Adds a page to rows. *after has the place of the next one, or NULL at the end. */
static int get_page(const struct ctl *ctl, const char *id, json_t *rows, char **after)
{
	const struct ctl plain = { .socket = ctl->socket };
	char *uri = uri_new("/v1/clients");
	json_t *page = NULL, *next;

	if (id)
		uri = uri_add(uri, "id", id);
	if (*after)
		uri = uri_add(uri, "after", *after);
	free(*after);
	*after = NULL;
	if (!uri)
		return no_memory();
	int status = ctl_get(&plain, uri, &page);

	free(uri);
	if (status != CTL_DONE)
		return status;
	json_array_extend(rows, json_object_get(page, "clients"));
	next = json_object_get(page, "after");
	if (next && asprintf(after, "%" JSON_INTEGER_FORMAT, json_integer_value(next)) < 0) {
		*after = NULL;
		status = no_memory();
	}
	json_decref(page);
	return status;
}

static void put_state(struct table *t, const json_t *c)
{
	char since[PRINT_MAX], left[PRINT_MAX];
	const char *state = text(c, "state");

	if (json_object_get(c, "lease_left"))
		table_cellf(t, "%s, lease for %s", state, print_age(number(c, "lease_left"), left));
	else
		table_cellf(t, "%s for %s", state, print_age(number(c, "since"), since));
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
		return no_memory();
	json_array_foreach(rows, i, c)
	{
		table_cell(t, text(c, "id"));
		table_cell(t, text(c, "address"));
		table_cell(t, text(c, "netid"));
		table_cell(t, text(c, "version"));
		table_cellf(t, "%" PRIu64, number(c, "sessions"));
		table_cellf(t, "%" PRIu64, number(c, "opens"));
		table_cellf(t, "%" PRIu64, number(c, "locks"));
		table_cellf(t, "%" PRIu64, number(c, "delegations"));
		put_state(t, c);
		table_cell(t, text(c, "name"));
	}
	const int rc = table_print(t, stdout);

	table_free(t);
	return rc ? no_memory() : CTL_DONE;
}

static int print_json(const json_t *rows)
{
	json_t *all = json_pack("{s:O}", "clients", rows);
	const int rc = all ? json_dumpf(all, stdout, JSON_INDENT(2)) : -1;

	json_decref(all);
	putchar('\n');
	return rc ? no_memory() : CTL_DONE;
}

int ctl_clients(const struct ctl *ctl, int argc, char **argv)
{
	json_t *rows = json_array();
	char *after = NULL;
	int status;

	if (argc > 2) {
		fprintf(stderr, "ringnfsctl: clients takes an id at most, and not '%s'\n", argv[2]);
		json_decref(rows);
		return CTL_USAGE;
	}
	do
		status = rows ? get_page(ctl, argc == 2 ? argv[1] : NULL, rows, &after)
			      : no_memory();
	while (status == CTL_DONE && after);
	free(after);
	if (status == CTL_DONE && argc == 2 && json_array_size(rows) == 0) {
		fprintf(stderr, "ringnfsctl: there is no client %s\n", argv[1]);
		status = CTL_REFUSED;
	}
	if (status == CTL_DONE)
		status = ctl->json ? print_json(rows) : print(rows);
	json_decref(rows);
	return status;
}
