/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl sessions */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/pages.h"
#include "ctl/print.h"
#include "ctl/rows.h"
#include "lib/util.h"

/* The list's texts with commas between them, for the caller to free. NULL: no memory. */
static char *sessions_join(const json_t *list, char *(*text)(const json_t *entry))
{
	char *all = NULL;
	const json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry)
	{
		char *one = text(entry), *longer = NULL;

		if (!one || asprintf(&longer, "%s%s%s", all ? all : "", all ? ", " : "", one) < 0)
			longer = NULL;
		free(all);
		free(one);
		all = longer;
		if (!all)
			return NULL;
	}
	return all ? all : strdup("-");
}

static char *flag(const json_t *entry)
{
	return strdup(json_string_value(entry));
}

static char *connection(const json_t *c)
{
	const char *address = pages_text(c, "address");
	const bool v6 = address && strchr(address, ':');
	char *text = NULL;

	if (asprintf(&text, "%s%s%s:%" PRIu64 " %s %s", v6 ? "[" : "", address ? address : "?",
		     v6 ? "]" : "", pages_number(c, "port"), pages_text(c, "transport"),
		     pages_text(c, "direction")) < 0)
		return NULL;
	return text;
}

static void put_joined(struct table *t, const json_t *list, char *(*text)(const json_t *entry))
{
	char *all = sessions_join(list, text);

	table_cell(t, all ? all : "?");
	free(all);
}

/* Slots in use, up to the highest used so far, of those granted. */
static void put_slots(struct table *t, const json_t *ch)
{
	if (json_object_get(ch, "used"))
		table_cellf(t, "%" PRIu64 ", %" PRIu64 " of %" PRIu64, pages_number(ch, "busy"),
			    pages_number(ch, "used"), pages_number(ch, "slots"));
	else
		table_cellf(t, "%" PRIu64 " of %" PRIu64, pages_number(ch, "busy"),
			    pages_number(ch, "slots"));
}

static void sessions_put_row(struct table *t, const json_t *s)
{
	const json_t *fore = json_object_get(s, "fore"), *back = json_object_get(s, "back");
	const char *id = pages_text(s, "id");
	char text[PRINT_MAX];

	if (id)
		table_cell(t, id);
	else
		table_cellf(t, "number %" PRIu64, pages_number(s, "serial"));
	table_cell(t, pages_text(s, "client"));
	table_cell(t, pages_text(s, "version"));
	table_cell(t, print_age(pages_number(s, "age"), text));
	put_slots(t, fore);
	table_cell(t, print_size(pages_number(fore, "max_request"), text));
	table_cell(t, print_size(pages_number(fore, "max_reply"), text));
	table_cell(t, print_size(pages_number(fore, "max_cached"), text));
	table_cell(t, pages_text(back, "state"));
	put_slots(t, back);
	put_joined(t, json_object_get(s, "flags"), flag);
	put_joined(t, json_object_get(s, "connections"), connection);
	table_cell(t, pages_text(s, "client_name"));
}

static int sessions_print(const json_t *rows)
{
	static const struct table_column columns[] = {
		{ "ID", false },    { "CLIENT", false }, { "VERS", false },
		{ "AGE", true },    { "SLOTS", false },	 { "REQUEST", true },
		{ "REPLY", true },  { "CACHED", true },	 { "BACK", false },
		{ "SLOTS", false }, { "FLAGS", false },	 { "CONNECTIONS", false },
		{ "NAME", false },
	};
	static const struct rows_shape shape = { columns, rn_array_size(columns),
						 sessions_put_row };

	return rows_print(&shape, rows, stdout);
}

int ctl_sessions(const struct ctl *ctl, int argc, char **argv)
{
	const struct pages_query q = {
		.path = "/v1/sessions",
		.list = "sessions",
		.name = "client",
		.value = argc > 1 ? argv[1] : NULL,
	};
	json_t *rows;

	if (argc > 2) {
		fprintf(stderr, "ringnfsctl: sessions takes a client's id at most, and not '%s'\n",
			argv[2]);
		return CTL_USAGE;
	}
	int status = pages_get(ctl, &q, &rows);

	if (status == CTL_DONE)
		status = ctl->json ? pages_print_json(&q, rows) : sessions_print(rows);
	json_decref(rows);
	return status;
}
