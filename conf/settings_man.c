/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of keys of ringnfs.conf(5), from the schema, in mdoc. */
#include <string.h>

#include "conf/settings_schema.h"

enum { LINE_MAX_OCTETS = 76 };

static void print_word(FILE *out, const char *word, size_t len, bool first)
{
	/* roff takes these at the start of a line for its own. */
	if (first && (*word == '.' || *word == '\''))
		fputs("\\&", out);
	for (size_t i = 0; i < len; i++)
		if (word[i] == '\\')
			fputs("\\e", out);
		else
			fputc(word[i], out);
}

/* Each sentence on lines of its own, as roff wants it. */
static void print_text(FILE *out, const char *text)
{
	size_t col = 0;

	while (*text) {
		size_t len = strcspn(text, " ");
		bool ends = text[len - !!len] == '.' && text[len];

		if (col && col + 1 + len > LINE_MAX_OCTETS) {
			fputc('\n', out);
			col = 0;
		}
		if (col)
			fputc(' ', out);
		print_word(out, text, len, !col);
		col += 1 + len;
		if (ends) {
			fputc('\n', out);
			col = 0;
		}
		text += len + (text[len] == ' ');
	}
	fputc('\n', out);
}

static void cfg_print_row_mdoc(FILE *out, const struct cfg_row *row)
{
	char range[CFG_TEXT_MAX];

	cfg_value_range(row, range);
	fprintf(out, ".It Cm %s\n", row->name);
	print_text(out, row->text);
	fprintf(out, "Takes %s.\n", range);
	if (*row->def)
		fprintf(out, "The default is\n.Cm %s .\n", row->def);
}

void cfg_print_mdoc(FILE *out)
{
	for (unsigned s = 0; s < cfg_n_sections; s++) {
		fprintf(out, ".Ss [%s]: %s\n", cfg_sections[s].name, cfg_sections[s].text);
		fputs(".Bl -tag -width Ds\n", out);
		for (unsigned i = 0; i < cfg_n_rows; i++)
			if (!strcmp(cfg_rows[i].section, cfg_sections[s].name))
				cfg_print_row_mdoc(out, &cfg_rows[i]);
		fputs(".El\n", out);
	}
}
