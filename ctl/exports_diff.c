/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ringnfsctl exports check and diff. The tool reads the file, with the rights of its caller, and sends the
 * text: the server reads no other files than its own for anybody.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_exports.h"
#include "ctl/uri.h"

#define FILE_MOST (512u << 10) /* bytes of a body that the server takes */

static int ask_about(const struct ctl *ctl, const char *name, const char *text, size_t len,
		     json_t **out)
{
	char *uri = uri_new("/v1/exports/diff");

	if (name)
		uri = uri_add(uri, "name", name);
	if (!uri) {
		fprintf(stderr, "ringnfsctl: out of memory\n");
		return CTL_UNREACHABLE;
	}
	int status = ctl_post_text(ctl, uri, text, len, out);

	free(uri);
	return status;
}

static int ask_about_file(const struct ctl *ctl, const char *name, json_t **out)
{
	FILE *f = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
	char *text = f ? malloc(FILE_MOST + 1) : NULL;
	int status = CTL_USAGE;

	if (!f || !text) {
		fprintf(stderr, "ringnfsctl: %s: %s\n", name, strerror(errno));
	} else {
		const size_t len = fread(text, 1, FILE_MOST + 1, f);

		if (ferror(f))
			fprintf(stderr, "ringnfsctl: %s: %s\n", name, strerror(errno));
		else if (len > FILE_MOST)
			fprintf(stderr, "ringnfsctl: %s is longer than 512 KiB\n", name);
		else
			status = ask_about(ctl, name, text, len, out);
	}
	free(text);
	if (f && f != stdin)
		fclose(f);
	return status;
}

/* The answer to a question without or with a file. An exit status. */
static int exports_ask_try(const struct ctl *ctl, int argc, char **argv, json_t **out)
{
	*out = NULL;
	if (argc > 2) {
		fprintf(stderr, "ringnfsctl: exports %s takes one file\n", argv[0]);
		return CTL_USAGE;
	}
	int status =
		argc > 1 ? ask_about_file(ctl, argv[1], out) : ask_about(ctl, NULL, NULL, 0, out);

	exports_print_messages(*out, stderr);
	return status;
}

int exports_check(const struct ctl *ctl, int argc, char **argv)
{
	json_t *answer;
	int status = exports_ask_try(ctl, argc, argv, &answer);

	if (status == CTL_DONE && answer)
		printf("%" JSON_INTEGER_FORMAT " exports are right\n",
		       json_integer_value(json_object_get(answer, "exports")));
	json_decref(answer);
	return status;
}

int ctl_exports_diff(const struct ctl *ctl, int argc, char **argv)
{
	json_t *answer;
	int status = exports_ask_try(ctl, argc, argv, &answer);

	if (status == CTL_DONE && answer)
		exports_print_changes(answer, true, stdout);
	json_decref(answer);
	return status;
}
