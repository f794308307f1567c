/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl opens, locks and delegations */
#include <stdio.h>

#include "ctl/options.h"
#include "ctl/states.h"
#include "lib/util.h"

/* One object with the rows of all pages. */
static int print_json(enum states_kind kind, json_t *rows)
{
	json_t *all = json_pack("{s:O}", states_name(kind), rows);

	if (all) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(all);
	return all ? CTL_DONE : CTL_UNREACHABLE;
}

static int show(const struct ctl *ctl, int argc, char **argv, enum states_kind kind)
{
	struct states_choice choice = { 0 };
	const struct ctl_option options[] = {
		{ "file", &choice.file, NULL },
		{ "client", &choice.client, NULL },
		{ "export", &choice.export, NULL },
	};
	const int left = ctl_options(options, rn_array_size(options), argc, argv);
	json_t *rows;

	if (left > 1)
		fprintf(stderr, "ringnfsctl: %s takes options only, and not '%s'\n", argv[0],
			argv[1]);
	if (left != 1)
		return CTL_USAGE;
	int status = states_get(ctl, kind, &choice, &rows);

	if (status == CTL_DONE)
		status = ctl->json ? print_json(kind, rows) : states_print(kind, rows);
	json_decref(rows);
	return status;
}

int ctl_opens(const struct ctl *ctl, int argc, char **argv)
{
	return show(ctl, argc, argv, STATES_OPENS);
}

int ctl_locks(const struct ctl *ctl, int argc, char **argv)
{
	return show(ctl, argc, argv, STATES_LOCKS);
}

int ctl_delegations(const struct ctl *ctl, int argc, char **argv)
{
	return show(ctl, argc, argv, STATES_DELEGATIONS);
}
