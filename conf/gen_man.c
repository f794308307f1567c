/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copy the page on standard input to standard output, with the line "@KEYS@" replaced by the list
 * of keys from the schema. Run by the build to make ringnfs.conf(5).
 */
#include <stdio.h>
#include <string.h>

#include "conf/settings_schema.h"

int main(void)
{
	char line[1024];
	bool found = false;

	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "@KEYS@\n")) {
			fputs(line, stdout);
			continue;
		}
		found = true;
		cfg_print_mdoc(stdout);
	}
	if (!found)
		fputs("gen_man: no line @KEYS@ in the page\n", stderr);
	return found && !ferror(stdin) && !fflush(stdout) && !ferror(stdout) ? 0 : 1;
}
