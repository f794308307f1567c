/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl opens, locks, delegations and layouts */
#include <stdio.h>

#include "ctl/ctl_options.h"
#include "ctl/states.h"
#include "lib/util.h"

static int ctl_show_states(const struct ctl *ctl, int argc, char **argv, enum states_kind kind)
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
	states_find_file(&choice);
	int status = states_get(ctl, kind, &choice, &rows);

	if (status == CTL_DONE && json_array_size(rows) == 0 && states_file_is_lost(&choice))
		status = CTL_REFUSED;
	if (status == CTL_DONE)
		status = ctl->json ? states_print_json(kind, rows)
				   : states_print(kind, rows, stdout);
	json_decref(rows);
	return status;
}

int ctl_opens(const struct ctl *ctl, int argc, char **argv)
{
	return ctl_show_states(ctl, argc, argv, STATES_OPENS);
}

int ctl_locks(const struct ctl *ctl, int argc, char **argv)
{
	return ctl_show_states(ctl, argc, argv, STATES_LOCKS);
}

int ctl_delegations(const struct ctl *ctl, int argc, char **argv)
{
	return ctl_show_states(ctl, argc, argv, STATES_DELEGATIONS);
}

int ctl_layouts(const struct ctl *ctl, int argc, char **argv)
{
	return ctl_show_states(ctl, argc, argv, STATES_LAYOUTS);
}
