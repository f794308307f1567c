/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl open close, lock release and delegation recall */
#include <stdio.h>
#include <string.h>

#include "ctl/confirm.h"
#include "ctl/ctl_options.h"
#include "ctl/states.h"
#include "lib/util.h"

struct verb {
	enum states_kind kind;
	const char *name; /* of the command */
	const char *path; /* below /v1/ */
	const char *done; /* result of a row, if it was done */
	const char *lost; /* question, and what it means for the client */
};

static const struct verb close_opens = {
	STATES_OPENS,
	"close",
	"opens/close",
	"closed",
	"The clients lose these opens and the locks of these files. Close them?",
};
static const struct verb release_locks = {
	STATES_LOCKS,
	"release",
	"locks/release",
	"released",
	"The clients lose these locks; those of NFSv3 are not told. Release them?",
};
static const struct verb recall_delegations = {
	STATES_DELEGATIONS,
	"recall",
	"delegations/recall",
	"recalled",
	"The clients are asked to return these delegations. Recall them?",
};
static const struct verb revoke_delegations = {
	STATES_DELEGATIONS,
	"recall",
	"delegations/recall",
	"revoked",
	"The clients lose these delegations, and changes that they have not written yet. Revoke "
	"them?",
};

static void say_none(const struct verb *v, const struct states_choice *choice)
{
	if (!states_file_is_lost(choice))
		fprintf(stderr, "ringnfsctl: no %s are chosen by that\n", states_name(v->kind));
}

/* True if the rows are to be ended. *status is set if not. */
static bool end_states_confirm(const struct ctl *ctl, const struct verb *v,
			       const struct states_choice *choice, int *status)
{
	json_t *rows = NULL;
	bool yes = false;

	*status = confirm_possible() ? states_get(ctl, v->kind, choice, &rows) : CTL_USAGE;
	if (*status == CTL_DONE && json_array_size(rows) > 0) {
		*status = states_print(v->kind, rows, stderr);
		yes = *status == CTL_DONE && confirm_ask(v->lost);
	} else if (*status == CTL_DONE) {
		say_none(v, choice);
	}
	json_decref(rows);
	if (*status == CTL_DONE && !yes)
		*status = CTL_REFUSED;
	return yes;
}

/* An exit status: CTL_REFUSED if there was nothing, or something is still there. */
static int end_states_report(const struct ctl *ctl, const struct verb *v, json_t *rows)
{
	json_t *busy = json_array(), *row;
	size_t i, done = 0;

	json_array_foreach(rows, i, row)
	{
		const char *result = json_string_value(json_object_get(row, "result"));

		done += result && strcmp(result, v->done) == 0;
		if (result && strcmp(result, "busy") == 0)
			json_array_append(busy, row);
	}
	const size_t left = json_array_size(busy);
	int status = done > 0 && !left ? CTL_DONE : CTL_REFUSED;

	if (ctl->json)
		states_print_json(v->kind, rows);
	else
		printf("%s: %zu %s\n", v->done, done, states_name(v->kind));
	if (!done && !left && json_array_size(rows) > 0)
		fputs("ringnfsctl: they had ended, or were revoked, before\n", stderr);
	if (left) {
		fprintf(stderr, "ringnfsctl: these are in use by operations that do not end:\n");
		states_print(v->kind, busy, stderr);
	}
	json_decref(busy);
	return status;
}

static int end_states_end(const struct ctl *ctl, const struct verb *v,
			  const struct states_choice *choice, bool yes)
{
	json_t *rows = NULL;
	int status;

	if (!yes && !end_states_confirm(ctl, v, choice, &status))
		return status;
	status = states_end(ctl, v->kind, v->path, choice, &rows);
	if (status == CTL_DONE && json_array_size(rows) == 0)
		say_none(v, choice);
	if (status == CTL_DONE)
		status = end_states_report(ctl, v, rows);
	else if (json_array_size(rows) > 0)
		end_states_report(ctl, v, rows);
	json_decref(rows);
	return status;
}

static int end_states_usage(const struct verb *v, const char *command)
{
	fprintf(stderr,
		"usage: ringnfsctl %s %s ID|--file PATH|--client ID|--export PATH [--yes]\n",
		command, v->name);
	return CTL_USAGE;
}

static int end_states_run(const struct ctl *ctl, int argc, char **argv, const struct verb *v)
{
	struct states_choice choice = { 0 };
	bool yes = false, revoke = false;
	const struct ctl_option options[] = {
		{ "file", &choice.file, NULL },	    { "client", &choice.client, NULL },
		{ "export", &choice.export, NULL }, { "yes", NULL, &yes },
		{ "revoke", NULL, &revoke }, /* the last: of delegations only */
	};
	const size_t n = rn_array_size(options) - (v != &recall_delegations);
	const int left = ctl_options(options, n, argc, argv);

	if (left < 0)
		return CTL_USAGE;
	choice.id = left == 3 ? argv[2] : NULL;
	choice.revoke = revoke ? "1" : NULL;
	if (left < 2 || left > 3 || strcmp(argv[1], v->name) != 0 ||
	    !(choice.id || choice.file || choice.client || choice.export))
		return end_states_usage(v, argv[0]);
	states_find_file(&choice);
	return end_states_end(ctl, revoke ? &revoke_delegations : v, &choice, yes);
}

int ctl_open(const struct ctl *ctl, int argc, char **argv)
{
	return end_states_run(ctl, argc, argv, &close_opens);
}

int ctl_lock(const struct ctl *ctl, int argc, char **argv)
{
	return end_states_run(ctl, argc, argv, &release_locks);
}

int ctl_delegation(const struct ctl *ctl, int argc, char **argv)
{
	return end_states_run(ctl, argc, argv, &recall_delegations);
}
