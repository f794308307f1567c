/* SPDX-License-Identifier: BSD-2-Clause */
/* The effect of a change of the exports, printed for people. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_exports.h"
#include "ctl/ctl_table.h"

static char exports_change_sign(const json_t *change)
{
	const char *word = json_string_value(json_object_get(change, "change"));

	return !word			      ? '?'
	       : strcmp(word, "added") == 0   ? '+'
	       : strcmp(word, "removed") == 0 ? '-'
					      : '~';
}

static void exports_change_options(const char *verb, const json_t *list, FILE *out)
{
	const json_t *option;
	size_t i;

	json_array_foreach(list, i, option)
	{
		const char *text = json_string_value(option);
		char *safe = table_safe_text(text ? text : "?");

		fprintf(out, "%s%s", i ? "," : verb, safe ? safe : "?");
		free(safe);
	}
}

static void print_client(const json_t *c, FILE *out)
{
	fprintf(out, "    %c ", exports_change_sign(c));
	exports_print_text(c, "client", "", out);
	if (json_object_get(c, "options")) {
		fputc('(', out);
		exports_print_text(c, "options", ")\n", out);
		return;
	}
	exports_change_options(" gains ", json_object_get(c, "gained"), out);
	exports_change_options(" loses ", json_object_get(c, "lost"), out);
	fputc('\n', out);
}

static uint64_t exports_change_number(const json_t *from, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(from, name));
}

static void print_revoked(const json_t *rev, bool would, FILE *out)
{
	const json_t *c;
	size_t i;

	fprintf(out,
		"%s: %" PRIu64 " opens, %" PRIu64 " locks and %" PRIu64
		" delegations of NFSv4, locks of %" PRIu64 " owners of NFSv3\n",
		would ? "would revoke" : "revoked", exports_change_number(rev, "opens"),
		exports_change_number(rev, "locks"), exports_change_number(rev, "delegations"),
		exports_change_number(rev, "nlm_owners"));
	json_array_foreach(json_object_get(rev, "clients"), i, c)
	{
		fprintf(out, "    client ");
		exports_print_text(c, "client", " at ", out);
		exports_print_text(c, "address", ": ", out);
		fprintf(out, "%" PRIu64 " opens, %" PRIu64 " locks, %" PRIu64 " delegations\n",
			exports_change_number(c, "opens"), exports_change_number(c, "locks"),
			exports_change_number(c, "delegations"));
	}
}

void exports_print_changes(const json_t *answer, bool would, FILE *out)
{
	const json_t *changes = json_object_get(answer, "changes"), *e, *c;
	const json_t *replaced = json_object_get(answer, "replaced");
	size_t i, j;

	json_array_foreach(changes, i, e)
	{
		fprintf(out, "%c ", exports_change_sign(e));
		exports_print_text(e, "path", "\n", out);
		json_array_foreach(json_object_get(e, "clients"), j, c) print_client(c, out);
	}
	json_array_foreach(replaced, i, c)
	{
		char *safe = table_safe_text(json_string_value(c) ? json_string_value(c) : "?");

		fprintf(out,
			"! %s: another directory is there: file handles from before %s stale\n",
			safe ? safe : "?", would ? "would be" : "are");
		free(safe);
	}
	if (!json_array_size(changes) && !json_array_size(replaced))
		fprintf(out, "no client gains or loses anything\n");
	print_revoked(json_object_get(answer, "revoked"), would, out);
}
