/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl exports */
#include "ctl/ctl_exports.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_table.h"
#include "lib/util.h"

static const struct ctl_command commands[] = {
	{ "add", "until the next reload: add CLIENT:PATH [-o OPTIONS] [--yes]", exports_add },
	{ "check", "find what is wrong in a file: check [FILE]", exports_check },
	{ "diff", "tell what a reload would change: diff [FILE]", ctl_exports_diff },
	{ "explain", "which line is for a client, and why: explain CLIENT PATH [--uid N] [--gid N]",
	  exports_explain },
	{ "import", "lines of exports(5) for nfs-ganesha's: import --ganesha FILE",
	  exports_import },
	{ "list", "the exports in force", exports_list },
	{ "reload", "read the files again", ctl_exports_reload },
	{ "remove", "until the next reload: remove CLIENT:PATH [--yes]", exports_remove },
};

void exports_print_text(const json_t *from, const char *name, const char *end, FILE *out)
{
	const char *text = json_string_value(json_object_get(from, name));
	char *safe = table_safe_text(text ? text : "?");

	fprintf(out, "%s%s", safe ? safe : "?", end);
	free(safe);
}

void exports_print_messages(const json_t *answer, FILE *out)
{
	const json_t *m;
	size_t i;

	json_array_foreach(json_object_get(answer, "messages"), i, m)
	{
		const json_int_t line = json_integer_value(json_object_get(m, "line"));
		const json_int_t column = json_integer_value(json_object_get(m, "column"));

		exports_print_text(m, "file", ":", out);
		if (line)
			fprintf(out, "%" JSON_INTEGER_FORMAT ":", line);
		if (line && column)
			fprintf(out, "%" JSON_INTEGER_FORMAT ":", column);
		fputc(' ', out);
		exports_print_text(m, "severity", ": ", out);
		exports_print_text(m, "text", "", out);
		if (json_integer_value(json_object_get(m, "again")))
			fprintf(out, " (and %" JSON_INTEGER_FORMAT " times more in this file)",
				json_integer_value(json_object_get(m, "again")));
		fputc('\n', out);
	}
}

void exports_print_help(FILE *out)
{
	fprintf(out, "usage: ringnfsctl exports COMMAND\n");
	for (size_t i = 0; i < rn_array_size(commands); i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
}

int ctl_exports(const struct ctl *ctl, int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < rn_array_size(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(ctl, argc - 1, argv + 1);
	if (argc > 1)
		fprintf(stderr, "ringnfsctl: exports: '%s' is no command\n", argv[1]);
	exports_print_help(stderr);
	return CTL_USAGE;
}
