/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of keys of ringnfs.conf(5), from the schema, in mdoc. */
#include <string.h>

#include "conf/settings_schema.h"

/* One sentence to a line, with what roff would take for its own kept from it. */
static void print_text(FILE *out, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		start = false;
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == ' ' && (text[-1] == '.' || text[-1] == ':')) {
			fputc('\n', out);
			start = true;
		} else {
			fputc(*text, out);
		}
	}
	fputc('\n', out);
}

static void print_row(FILE *out, const struct cfg_row *row)
{
	char range[CFG_TEXT_MAX];

	cfg_value_range(row, range);
	fprintf(out, ".It Cm %s\n", row->name);
	print_text(out, row->text);
	fprintf(out, "Takes %s.\n", range);
	if (*row->def)
		fprintf(out, "The default is\n.Cm %s .\n", row->def);
	if (row->reload)
		fputs("A reload is enough for a change.\n", out);
}

void cfg_print_mdoc(FILE *out)
{
	for (unsigned s = 0; s < cfg_n_sections; s++) {
		fprintf(out, ".Ss [%s]\n", cfg_sections[s].name);
		print_text(out, cfg_sections[s].text);
		fputs(".Bl -tag -width Ds\n", out);
		for (unsigned i = 0; i < cfg_n_rows; i++)
			if (!strcmp(cfg_rows[i].section, cfg_sections[s].name))
				print_row(out, &cfg_rows[i]);
		fputs(".El\n", out);
	}
}
