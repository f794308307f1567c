/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/states.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/print.h"
#include "ctl/put_json.h"
#include "ctl/rows.h"
#include "ctl/uri.h"
#include "lib/util.h"

static int states_no_memory(void)
{
	fputs("ringnfsctl: out of memory\n", stderr);
	return CTL_UNREACHABLE;
}

const char *states_name(enum states_kind kind)
{
	static const char *const names[] = {
		[STATES_OPENS] = "opens",
		[STATES_LOCKS] = "locks",
		[STATES_DELEGATIONS] = "delegations",
		[STATES_LAYOUTS] = "layouts",
	};

	return names[kind];
}

void states_find_file(struct states_choice *choice)
{
	if (!choice->file)
		return;
	choice->lost = file_handle_of(choice->file, &choice->found);
	if (choice->lost == -ETIMEDOUT)
		fprintf(stderr,
			"ringnfsctl: %s: its file system does not answer; files that are not in "
			"use may be missing below\n",
			choice->file);
	if (choice->lost)
		return;
	if (choice->file[0] != '/')
		choice->file = NULL;
	choice->handle = choice->found.handle;
	choice->device = choice->found.device;
}

bool states_file_is_lost(const struct states_choice *choice)
{
	if (!choice->lost)
		return false;
	fprintf(stderr, "ringnfsctl: %s: %s, and nothing is held of a file that had this path\n",
		choice->file, strerror(-choice->lost));
	return true;
}

char *states_uri(const char *path, const struct states_choice *choice)
{
	const struct {
		const char *name, *value;
	} all[] = {
		{ "file", choice->file },     { "client", choice->client },
		{ "export", choice->export }, { "id", choice->id },
		{ "revoke", choice->revoke }, { "handle", choice->handle },
		{ "device", choice->device },
	};
	char start[64];

	snprintf(start, sizeof(start), "/v1/%s", path);
	char *uri = uri_new(start);

	for (size_t i = 0; i < rn_array_size(all); i++) {
		if (all[i].value)
			uri = uri_add(uri, all[i].name, all[i].value);
	}
	return uri;
}

struct pages {
	enum states_kind kind;
	const char *path;
	const struct states_choice *choice;
	int (*ask)(const struct ctl *ctl, const char *path, json_t **out);
	char *after; /* where the next page begins; NULL: at the beginning, or there is none */
	json_t *rows;
};

static int states_get_page(const struct ctl *ctl, struct pages *p)
{
	const struct ctl plain = { .socket = ctl->socket };
	char *uri = states_uri(p->path, p->choice);
	json_t *page = NULL;

	if (p->after)
		uri = uri_add(uri, "after", p->after);
	free(p->after);
	p->after = NULL;
	if (!uri)
		return states_no_memory();
	const int status = p->ask(&plain, uri, &page);

	free(uri);
	if (status == CTL_DONE) {
		const char *end = json_string_value(json_object_get(page, "after"));

		json_array_extend(p->rows, json_object_get(page, states_name(p->kind)));
		p->after = end ? strdup(end) : NULL;
	}
	json_decref(page);
	return status;
}

static int get_pages(const struct ctl *ctl, struct pages *p)
{
	int status;

	p->rows = json_array();
	do
		status = p->rows ? states_get_page(ctl, p) : states_no_memory();
	while (status == CTL_DONE && p->after);
	free(p->after);
	return status;
}

int states_get(const struct ctl *ctl, enum states_kind kind, const struct states_choice *choice,
	       json_t **rows)
{
	struct pages p = {
		.kind = kind, .path = states_name(kind), .choice = choice, .ask = ctl_get
	};
	const int status = get_pages(ctl, &p);

	if (status != CTL_DONE) {
		json_decref(p.rows);
		p.rows = NULL;
	}
	*rows = p.rows;
	return status;
}

static int states_post(const struct ctl *ctl, const char *path, json_t **out)
{
	return ctl_post(ctl, path, NULL, out);
}

int states_end(const struct ctl *ctl, enum states_kind kind, const char *path,
	       const struct states_choice *choice, json_t **rows)
{
	struct pages p = { .kind = kind, .path = path, .choice = choice, .ask = states_post };
	const int status = get_pages(ctl, &p);

	*rows = p.rows;
	return status;
}

static const char *states_text(const json_t *row, const char *name)
{
	return json_string_value(json_object_get(row, name));
}

static bool states_is_true(const json_t *row, const char *name)
{
	return json_is_true(json_object_get(row, name));
}

static void states_put_path(struct table *t, const json_t *row)
{
	const char *path = states_text(row, "path"), *export = states_text(row, "export");
	const char *mark = states_is_true(row, "removed") ? " (removed)" : "";

	if (path)
		table_cellf(t, "%s%s", path, mark);
	else
		table_cellf(t, "%s, file %s%s", export ? export : "export that is gone",
			    states_text(row, "handle"), mark);
}

static void put_age(struct table *t, const json_t *row)
{
	const json_t *age = json_object_get(row, "age");
	char words[PRINT_MAX];

	if (age)
		table_cell(t, print_age((uint64_t)json_integer_value(age), words));
	else
		table_cell(t, NULL);
}

static void states_put_client(struct table *t, const json_t *row)
{
	table_cell(t, states_text(row, "client"));
	table_cell(t, states_text(row, "client_name"));
}

static void states_put_id(struct table *t, const json_t *row)
{
	put_age(t, row);
	table_cell(t, states_text(row, "id"));
}

static void put_open(struct table *t, const json_t *row)
{
	states_put_path(t, row);
	table_cell(t, states_is_true(row, "revoked") ? "revoked" : states_text(row, "access"));
	table_cell(t, states_text(row, "deny"));
	states_put_client(t, row);
	table_cell(t, states_text(row, "owner"));
	states_put_id(t, row);
}

static void put_recalled(struct table *t, const json_t *row)
{
	const json_t *since = json_object_get(row, "recalled_for");
	char words[PRINT_MAX];

	if (since)
		table_cell(t, print_age((uint64_t)json_integer_value(since), words));
	else
		table_cell(t, NULL);
}

static void put_layout(struct table *t, const json_t *row)
{
	states_put_path(t, row);
	table_cell(t, states_text(row, "kind"));
	table_cell(t, states_text(row, "data_server"));
	put_recalled(t, row);
	states_put_client(t, row);
	states_put_id(t, row);
}

static void states_put_delegation(struct table *t, const json_t *row)
{
	states_put_path(t, row);
	table_cell(t, states_is_true(row, "revoked") ? "revoked" : states_text(row, "kind"));
	put_recalled(t, row);
	states_put_client(t, row);
	states_put_id(t, row);
}

/* An offset, which is a number or the text of a large one. */
static uint64_t offset_of(const json_t *value)
{
	return json_is_string(value) ? strtoull(json_string_value(value), NULL, 10)
				     : (uint64_t)json_integer_value(value);
}

static void put_range(struct table *t, const json_t *range)
{
	const json_t *length = json_object_get(range, "length");
	const uint64_t first = offset_of(json_object_get(range, "offset"));

	table_cell(t, states_text(range, "type"));
	if (!length || json_is_null(length))
		table_cellf(t, "%" PRIu64 "-", first);
	else
		table_cellf(t, "%" PRIu64 "-%" PRIu64, first, first + offset_of(length) - 1);
}

static void put_lock(struct table *t, const json_t *row, const json_t *range)
{
	states_put_path(t, row);
	if (range) {
		put_range(t, range);
	} else if (json_object_get(row, "access")) {
		table_cellf(t, "share %s", states_text(row, "access"));
		table_cellf(t, "deny %s", states_text(row, "deny"));
	} else {
		table_cell(t, states_is_true(row, "revoked") ? "revoked" : "?");
		table_cell(t, NULL);
	}
	table_cell(t, states_text(row, "version"));
	states_put_client(t, row);
	table_cell(t, states_text(row, "owner"));
	states_put_id(t, row);
}

/* A row for each range that the server tells, and one for those that it does not. */
static void put_locks(struct table *t, const json_t *row)
{
	const json_t *ranges = json_object_get(row, "ranges"), *range;
	const json_int_t total = json_integer_value(json_object_get(row, "ranges_total"));
	size_t i;

	json_array_foreach(ranges, i, range) put_lock(t, row, range);
	if (!i)
		put_lock(t, row, NULL);
	if (total > (json_int_t)i) {
		states_put_path(t, row);
		table_cellf(t, "and %" JSON_INTEGER_FORMAT " more", total - (json_int_t)i);
		for (unsigned cell = 2; cell < 8; cell++)
			table_cell(t, NULL);
		table_cell(t, states_text(row, "id"));
	}
}

static const struct table_column open_columns[] = {
	{ "FILE", false }, { "ACCESS", false }, { "DENY", false }, { "CLIENT", false },
	{ "NAME", false }, { "OWNER", false },	{ "AGE", true },   { "ID", false },
};
static const struct table_column lock_columns[] = {
	{ "FILE", false },  { "LOCK", false },	 { "BYTES", false },
	{ "VERS", false },  { "CLIENT", false }, { "NAME", false },
	{ "OWNER", false }, { "AGE", true },	 { "ID", false },
};
static const struct table_column deleg_columns[] = {
	{ "FILE", false }, { "KIND", false }, { "RECALLED", true }, { "CLIENT", false },
	{ "NAME", false }, { "AGE", true },   { "ID", false },
};
static const struct table_column layout_columns[] = {
	{ "FILE", false },   { "KIND", false }, { "DATA SERVER", false }, { "RECALLED", true },
	{ "CLIENT", false }, { "NAME", false }, { "AGE", true },	  { "ID", false },
};

static const struct rows_shape tables[] = {
	[STATES_OPENS] = { open_columns, rn_array_size(open_columns), put_open },
	[STATES_LOCKS] = { lock_columns, rn_array_size(lock_columns), put_locks },
	[STATES_DELEGATIONS] = { deleg_columns, rn_array_size(deleg_columns),
				 states_put_delegation },
	[STATES_LAYOUTS] = { layout_columns, rn_array_size(layout_columns), put_layout },
};

int states_print(enum states_kind kind, const json_t *rows, FILE *out)
{
	return rows_print(&tables[kind], rows, out);
}

int states_print_json(enum states_kind kind, json_t *rows)
{
	json_t *all = json_pack("{s:O}", states_name(kind), rows);

	if (!all)
		return states_no_memory();
	put_json(all, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
	return CTL_DONE;
}
