/* SPDX-License-Identifier: BSD-2-Clause */
/* The effect of a change of the exports, printed for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/exports.h"

static char sign(const json_t *change)
{
	const char *word = json_string_value(json_object_get(change, "change"));

	return !word			      ? '?'
	       : strcmp(word, "added") == 0   ? '+'
	       : strcmp(word, "removed") == 0 ? '-'
					      : '~';
}

static void print_options(const char *verb, const json_t *list)
{
	const json_t *option;
	size_t i;

	json_array_foreach(list, i, option)
		printf("%s%s", i ? "," : verb,
		       json_string_value(option) ? json_string_value(option) : "?");
}

static void print_client(const json_t *c)
{
	printf("    %c ", sign(c));
	exports_print_text(c, "client", "", stdout);
	if (json_object_get(c, "options")) {
		putchar('(');
		exports_print_text(c, "options", ")\n", stdout);
		return;
	}
	print_options(" gains ", json_object_get(c, "gained"));
	print_options(" loses ", json_object_get(c, "lost"));
	putchar('\n');
}

static uint64_t number(const json_t *from, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(from, name));
}

static void print_revoked(const json_t *rev, bool would)
{
	const json_t *c;
	size_t i;

	printf("%s: %" PRIu64 " opens, %" PRIu64 " locks and %" PRIu64
	       " delegations of NFSv4, locks of %" PRIu64 " owners of NFSv3\n",
	       would ? "would revoke" : "revoked", number(rev, "opens"), number(rev, "locks"),
	       number(rev, "delegations"), number(rev, "nlm_owners"));
	json_array_foreach(json_object_get(rev, "clients"), i, c)
	{
		printf("    client ");
		exports_print_text(c, "client", " at ", stdout);
		exports_print_text(c, "address", ": ", stdout);
		printf("%" PRIu64 " opens, %" PRIu64 " locks, %" PRIu64 " delegations\n",
		       number(c, "opens"), number(c, "locks"), number(c, "delegations"));
	}
}

void exports_print_changes(const json_t *answer, bool would)
{
	const json_t *changes = json_object_get(answer, "changes"), *e, *c;
	size_t i, j;

	json_array_foreach(changes, i, e)
	{
		printf("%c ", sign(e));
		exports_print_text(e, "path", "\n", stdout);
		json_array_foreach(json_object_get(e, "clients"), j, c) print_client(c);
	}
	if (!json_array_size(changes))
		printf("no client gains or loses anything\n");
	print_revoked(json_object_get(answer, "revoked"), would);
}
