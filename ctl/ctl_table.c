/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/ctl_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/utf8.h"

#define GAP 2 /* spaces between columns */

struct table {
	const struct table_column *columns;
	size_t ncolumns;
	char **cells;
	size_t ncells, room;
	bool no_memory;
};

char *table_safe_text(const char *text)
{
	char *safe = malloc(strlen(text) * 4 + 1), *to = safe;

	if (!safe)
		return NULL;
	while (*text) {
		const size_t n = rn_utf8_printable(text);

		if (n) {
			memcpy(to, text, n);
			to += n;
			text += n;
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)*text++);
		}
	}
	*to = '\0';
	return safe;
}

struct table *table_new(const struct table_column *columns, size_t n)
{
	struct table *t = n && n <= TABLE_COLUMNS_MAX ? calloc(1, sizeof(*t)) : NULL;

	if (t) {
		t->columns = columns;
		t->ncolumns = n;
	}
	return t;
}

static bool table_make_room(struct table *t)
{
	const size_t room = t->room ? t->room * 2 : 256;
	char **more =
		t->ncells < t->room ? t->cells : realloc(t->cells, room * sizeof(t->cells[0]));

	if (!more)
		return false;
	if (t->ncells == t->room)
		t->room = room;
	t->cells = more;
	return true;
}

void table_cell(struct table *t, const char *text)
{
	char *safe = table_safe_text(text ? text : "-");

	if (!safe || !table_make_room(t)) {
		t->no_memory = true;
		free(safe);
		return;
	}
	t->cells[t->ncells++] = safe;
}

void table_cellf(struct table *t, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	const int len = vasprintf(&text, fmt, ap);

	va_end(ap);
	if (len < 0) {
		t->no_memory = true;
		return;
	}
	table_cell(t, text);
	free(text);
}

size_t table_rows(const struct table *t)
{
	return t->ncells / t->ncolumns;
}

/* Places on the terminal, one for each character. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void table_print_row(const struct table *t, const char *const *cells, const size_t *widths,
			    FILE *out)
{
	for (size_t i = 0; i < t->ncolumns; i++) {
		const int space = (int)(widths[i] - width(cells[i]));
		const bool last = i + 1 == t->ncolumns;

		if (t->columns[i].right)
			fprintf(out, "%*s%s", space, "", cells[i]);
		else
			fprintf(out, "%s%*s", cells[i], last ? 0 : space, "");
		if (!last)
			fprintf(out, "%*s", GAP, "");
	}
	fputc('\n', out);
}

int table_print(const struct table *t, FILE *out)
{
	const char *titles[TABLE_COLUMNS_MAX];
	size_t widths[TABLE_COLUMNS_MAX] = { 0 };
	const size_t cells = table_rows(t) * t->ncolumns;

	if (t->no_memory)
		return -ENOMEM;
	if (!cells)
		return 0;
	for (size_t i = 0; i < t->ncolumns; i++) {
		titles[i] = t->columns[i].title;
		widths[i] = width(titles[i]);
	}
	for (size_t i = 0; i < cells; i++) {
		const size_t w = width(t->cells[i]);

		if (w > widths[i % t->ncolumns])
			widths[i % t->ncolumns] = w;
	}
	table_print_row(t, titles, widths, out);
	for (size_t i = 0; i < cells; i += t->ncolumns)
		table_print_row(t, (const char *const *)&t->cells[i], widths, out);
	return 0;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->ncells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}
