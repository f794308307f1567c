/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl exports add and remove: changes that last until the next reload. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/confirm.h"
#include "ctl/ctl_exports.h"
#include "ctl/ctl_options.h"
#include "ctl/uri.h"

struct edit {
	const char *verb; /* of the command, and below /v1/exports/ */
	char *client;
	const char *path; /* behind client, in its memory */
	const char *options;
	bool yes;
};

/* CLIENT:PATH, with an IPv6 address in square brackets. The caller frees e->client. */
static bool exports_edit_split(const char *text, struct edit *e)
{
	const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
	const char *colon = strstr(bracket ? bracket : text, ":/");
	const size_t prefix = bracket && colon > bracket ? (size_t)(colon - bracket - 1) : 0;
	char *to;

	if (!colon || colon == text || (text[0] == '[' && !bracket) ||
	    (!bracket && memchr(text, ':', (size_t)(colon - text))))
		return false;
	e->client = to = malloc(strlen(text) + 1);
	if (!to)
		return false;
	if (bracket) {
		memcpy(to, text + 1, (size_t)(bracket - text - 1));
		to += bracket - text - 1;
		memcpy(to, bracket + 1, prefix);
		to += prefix;
	} else {
		memcpy(to, text, (size_t)(colon - text));
		to += colon - text;
	}
	*to++ = '\0';
	strcpy(to, colon + 1);
	e->path = to;
	return true;
}

static int exports_edit_ask(const struct ctl *ctl, const struct edit *e, bool only_try,
			    json_t **answer)
{
	const struct ctl plain = { .socket = ctl->socket };
	char start[64];

	*answer = NULL;
	snprintf(start, sizeof(start), "/v1/exports/%s", e->verb);
	char *uri = uri_add(uri_add(uri_new(start), "client", e->client), "path", e->path);

	if (e->options)
		uri = uri_add(uri, "options", e->options);
	if (only_try)
		uri = uri_add(uri, "try", "1");
	if (!uri) {
		fputs("ringnfsctl: out of memory\n", stderr);
		return CTL_UNREACHABLE;
	}
	const int status = ctl_post(only_try ? &plain : ctl, uri, NULL, answer);

	free(uri);
	return status;
}

static bool revokes(const json_t *answer)
{
	static const char *const kinds[] = { "opens", "locks", "delegations", "nlm_owners" };
	const json_t *rev = json_object_get(answer, "revoked");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (json_integer_value(json_object_get(rev, kinds[i])) > 0)
			return true;
	return false;
}

/* True if it is to be done; else *status is to be returned. */
static bool exports_edit_confirm(const struct ctl *ctl, const struct edit *e, int *status)
{
	json_t *answer;
	bool yes = false;

	*status = exports_edit_ask(ctl, e, true, &answer);
	if (*status != CTL_DONE) {
		exports_print_messages(answer, stderr);
	} else if (!revokes(answer)) {
		yes = true;
	} else {
		exports_print_changes(answer, true, stderr);
		*status = confirm_possible() ? CTL_REFUSED : CTL_USAGE;
		yes = *status == CTL_REFUSED &&
		      confirm_ask("The clients lose these opens and locks. Do it?");
	}
	json_decref(answer);
	return yes;
}

static int exports_edit_run(const struct ctl *ctl, const struct edit *e)
{
	json_t *answer;
	int status;

	if (!e->yes && !exports_edit_confirm(ctl, e, &status))
		return status;
	status = exports_edit_ask(ctl, e, false, &answer);
	exports_print_messages(answer, stderr);
	if (status == CTL_DONE && answer) {
		exports_print_changes(answer, false, stdout);
		puts("until the next reload or restart");
	}
	json_decref(answer);
	return status;
}

static int exports_edit_usage(const struct edit *e, bool add)
{
	fprintf(stderr,
		"usage: ringnfsctl exports %s CLIENT:PATH%s [--yes]\n"
		"CLIENT is a machine as in exports(5), with an IPv6 address in square brackets.\n",
		e->verb, add ? " [-o OPTIONS]" : "");
	return CTL_USAGE;
}

/* Takes -o OPTIONS, as exportfs(8) has it, out of the words. Their number, or -1. */
static int take_o(int argc, char **argv, const char **options)
{
	int left = 0;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "-o") != 0) {
			argv[left++] = argv[i];
			continue;
		}
		if (*options || i + 1 == argc)
			return -1;
		*options = argv[++i];
	}
	return left;
}

static int exports_edit_command(const struct ctl *ctl, int argc, char **argv, bool add)
{
	struct edit e = { .verb = argv[0] };
	const struct ctl_option options[] = { { "yes", NULL, &e.yes } };
	int left = ctl_options(options, 1, argc, argv);

	if (left >= 0 && add)
		left = take_o(left, argv, &e.options);
	if (left != 2 || !exports_edit_split(argv[1], &e))
		return exports_edit_usage(&e, add);
	const int status = exports_edit_run(ctl, &e);

	free(e.client);
	return status;
}

int exports_add(const struct ctl *ctl, int argc, char **argv)
{
	return exports_edit_command(ctl, argc, argv, true);
}

int exports_remove(const struct ctl *ctl, int argc, char **argv)
{
	return exports_edit_command(ctl, argc, argv, false);
}
