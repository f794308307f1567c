/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/pages.h"
#include "ctl/put_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/uri.h"

const char *pages_text(const json_t *row, const char *name)
{
	return json_string_value(json_object_get(row, name));
}

uint64_t pages_number(const json_t *row, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(row, name));
}

int pages_no_memory(void)
{
	fputs("ringnfsctl: no memory\n", stderr);
	return CTL_UNREACHABLE;
}

/* The place of a page, a number or a text, for the caller to free. NULL: no memory. */
static char *pages_place(const json_t *after)
{
	char *text = NULL;

	if (json_is_string(after))
		return strdup(json_string_value(after));
	return asprintf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(after)) < 0 ? NULL
										       : text;
}

/* Adds a page to rows. *after has the place of the next one, or NULL at the end. */
static int pages_get_one(const struct ctl *ctl, const struct pages_query *q, json_t *rows,
			 char **after)
{
	const struct ctl plain = { .socket = ctl->socket };
	char *uri = uri_new(q->path);
	json_t *page = NULL, *next;

	if (q->value)
		uri = uri_add(uri, q->name, q->value);
	if (*after)
		uri = uri_add(uri, "after", *after);
	free(*after);
	*after = NULL;
	if (!uri)
		return pages_no_memory();
	int status = ctl_get(&plain, uri, &page);

	free(uri);
	if (status != CTL_DONE)
		return status;
	json_array_extend(rows, json_object_get(page, q->list));
	next = json_object_get(page, "after");
	if (next && !(*after = pages_place(next)))
		status = pages_no_memory();
	if (q->last && !*after) {
		*q->last = page;
		return status;
	}
	json_decref(page);
	return status;
}

int pages_get(const struct ctl *ctl, const struct pages_query *q, json_t **rows)
{
	char *after = NULL;
	int status;

	*rows = json_array();
	do
		status = *rows ? pages_get_one(ctl, q, *rows, &after) : pages_no_memory();
	while (status == CTL_DONE && after);
	free(after);
	if (status != CTL_DONE) {
		json_decref(*rows);
		*rows = NULL;
	}
	return status;
}

int pages_print_json(const struct pages_query *q, json_t *rows)
{
	json_t *all = json_pack("{s:O}", q->list, rows);
	const int rc = all ? put_json(all, JSON_INDENT(2)) : -1;

	json_decref(all);
	putchar('\n');
	return rc ? pages_no_memory() : CTL_DONE;
}

const char *pages_join(const json_t *object, const char *list, char *text, size_t size)
{
	const json_t *item;
	size_t i, used = 0;

	*text = 0;
	json_array_foreach(json_object_get(object, list), i, item)
	{
		const char *one = json_string_value(item);
		const int n =
			snprintf(text + used, size - used, "%s%s", i ? "," : "", one ? one : "?");

		used += n > 0 ? (size_t)n : 0;
		if (used >= size)
			break;
	}
	return text;
}
