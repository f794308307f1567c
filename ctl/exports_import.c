/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl exports import: lines of exports(5) for another server's configuration. No server is asked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_exports.h"
#include "ctl/ctl_options.h"
#include "tools/ganesha/ganesha_exports.h"

#define FILE_MOST (4u << 20)

/* All of the file. NULL: a message was printed. */
static char *exports_import_read(const char *name, size_t *len)
{
	FILE *f = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
	char *text = f ? malloc(FILE_MOST + 1) : NULL;

	*len = text ? fread(text, 1, FILE_MOST + 1, f) : 0;
	if (!text || ferror(f) || *len > FILE_MOST) {
		fprintf(stderr, "ringnfsctl: %s: %s\n", name,
			text && *len > FILE_MOST ? "it is longer than 4 MiB" : strerror(errno));
		free(text);
		text = NULL;
	}
	if (f && f != stdin)
		fclose(f);
	return text;
}

static int exports_import_file(const char *name)
{
	struct ganesha_said said = { .file = name, .out = stdout, .err = stderr };
	size_t len;
	char *text = exports_import_read(name, &len);

	if (!text)
		return CTL_USAGE;
	const int rc = ganesha_to_exports(text, len, &said);

	free(text);
	if (rc == -ENOMEM) {
		fputs("ringnfsctl: out of memory\n", stderr);
		return CTL_UNREACHABLE;
	}
	if (said.errors)
		fprintf(stderr, "ringnfsctl: %s: not all of it could be converted: %u errors\n",
			name, said.errors);
	return said.errors ? CTL_REFUSED : CTL_DONE;
}

int exports_import(const struct ctl *ctl, int argc, char **argv)
{
	const char *ganesha = NULL;
	const struct ctl_option options[] = { { "ganesha", &ganesha, NULL } };
	const int left = ctl_options(options, 1, argc, argv);

	(void)ctl;
	if (left == 1 && ganesha)
		return exports_import_file(ganesha);
	if (left >= 0)
		fputs("usage: ringnfsctl exports import --ganesha FILE\n", stderr);
	return CTL_USAGE;
}
