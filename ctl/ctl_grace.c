/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl grace status and grace end */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/confirm.h"
#include "ctl/ctl.h"
#include "ctl/ctl_options.h"
#include "ctl/pages.h"
#include "ctl/print.h"
#include "ctl/rows.h"
#include "lib/util.h"

static bool ctl_grace_is_true(const json_t *from, const char *name)
{
	return json_is_true(json_object_get(from, name));
}

static void ctl_grace_put_client(struct table *t, const json_t *c)
{
	table_cell(t, pages_text(c, "name"));
	table_cell(t, pages_text(c, "address"));
	table_cell(t, pages_text(c, "version"));
	table_cell(t, ctl_grace_is_true(c, "back") ? "back, and reclaims" : "has not come back");
}

static int ctl_grace_print_clients(const json_t *clients, FILE *out)
{
	static const struct table_column columns[] = {
		{ "CLIENT", false }, { "ADDRESS", false }, { "VERS", false }, { "STATE", false }
	};
	static const struct rows_shape shape = { columns, rn_array_size(columns),
						 ctl_grace_put_client };

	return rows_print(&shape, clients, out);
}

static int ctl_grace_print(const json_t *g, FILE *out)
{
	const size_t shown = json_array_size(json_object_get(g, "clients"));
	const uint64_t waiting = pages_number(g, "waiting");
	char left[PRINT_MAX];

	if (!ctl_grace_is_true(g, "active")) {
		fputs("no grace period\n", out);
		return CTL_DONE;
	}
	fprintf(out,
		"grace period: %s left; %" PRIu64 " of %" PRIu64
		" clients have not reclaimed their locks\n",
		print_age(pages_number(g, "seconds_left"), left), waiting,
		pages_number(g, "expected"));
	const int status = ctl_grace_print_clients(json_object_get(g, "clients"), out);

	if (waiting > shown)
		fprintf(out, "and %" PRIu64 " more\n", waiting - shown);
	return status;
}

static int ctl_grace_show(const struct ctl *ctl)
{
	json_t *g = NULL;
	int status = ctl_get(ctl, "/v1/grace", &g);

	if (status == CTL_DONE && g)
		status = ctl_grace_print(g, stdout);
	json_decref(g);
	return status;
}

/* True if it is to be ended; else *status is to be returned. */
static bool ctl_grace_confirm(const struct ctl *ctl, int *status)
{
	const struct ctl plain = { .socket = ctl->socket };
	json_t *g = NULL;
	bool yes = false;

	*status = confirm_possible() ? ctl_get(&plain, "/v1/grace", &g) : CTL_USAGE;
	if (*status == CTL_DONE)
		*status = ctl_grace_print(g, stderr);
	if (*status == CTL_DONE && ctl_grace_is_true(g, "active")) {
		yes = confirm_ask("These clients lose what they have not reclaimed. End it?");
		*status = CTL_REFUSED;
	}
	json_decref(g);
	return yes;
}

static int ctl_grace_end(const struct ctl *ctl, bool yes)
{
	json_t *g = NULL;
	int status;

	if (!yes && !ctl_grace_confirm(ctl, &status))
		return status;
	status = ctl_post(ctl, "/v1/grace/end", NULL, &g);
	if (g && ctl_grace_is_true(g, "ended"))
		printf("the grace period is over; %" PRIu64
		       " clients had not reclaimed their locks\n",
		       pages_number(g, "waiting"));
	else if (g)
		puts("no grace period");
	json_decref(g);
	return status;
}

int ctl_grace(const struct ctl *ctl, int argc, char **argv)
{
	bool yes = false;
	const struct ctl_option options[] = { { "yes", NULL, &yes } };
	const int left = ctl_options(options, 1, argc, argv);

	if (left == 2 && strcmp(argv[1], "status") == 0 && !yes)
		return ctl_grace_show(ctl);
	if (left == 2 && strcmp(argv[1], "end") == 0)
		return ctl_grace_end(ctl, yes);
	if (left >= 0)
		fputs("usage: ringnfsctl grace status|end [--yes]\n", stderr);
	return CTL_USAGE;
}
