/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl client evict */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/confirm.h"
#include "ctl/ctl_options.h"
#include "ctl/pages.h"
#include "ctl/states.h"
#include "ctl/uri.h"

/* Prints all that the client holds of one kind. An exit status. */
static int ctl_client_print_held(const struct ctl *ctl, enum states_kind kind, const char *id)
{
	const struct states_choice choice = { .client = id };
	json_t *rows = NULL;
	int status = states_get(ctl, kind, &choice, &rows);

	if (status == CTL_DONE) {
		fprintf(stderr, "%s: %zu\n", states_name(kind), json_array_size(rows));
		status = states_print(kind, rows, stderr);
	}
	json_decref(rows);
	return status;
}

/* CTL_DONE if there is such a client; else that is said. */
static int ctl_client_find(const struct ctl *ctl, const char *id)
{
	const struct pages_query q = {
		.path = "/v1/clients",
		.list = "clients",
		.name = "id",
		.value = id,
	};
	json_t *rows = NULL;
	int status = pages_get(ctl, &q, &rows);

	if (status == CTL_DONE && json_array_size(rows) == 0) {
		fprintf(stderr, "ringnfsctl: there is no client %s\n", id);
		status = CTL_REFUSED;
	}
	json_decref(rows);
	return status;
}

/* True if the client is to be evicted; else *status is to be returned. */
static bool ctl_client_confirm(const struct ctl *ctl, const char *id, int *status)
{
	*status = confirm_possible() ? ctl_client_find(ctl, id) : CTL_USAGE;
	for (int kind = STATES_OPENS; kind <= STATES_DELEGATIONS && *status == CTL_DONE; kind++)
		*status = ctl_client_print_held(ctl, (enum states_kind)kind, id);
	if (*status != CTL_DONE)
		return false;
	if (confirm_ask("The client loses all of this, and its sessions, and cannot get it back. "
			"Evict it?"))
		return true;
	*status = CTL_REFUSED;
	return false;
}

static int ctl_client_evict(const struct ctl *ctl, const char *id)
{
	char *uri = uri_add(uri_new("/v1/clients/evict"), "id", id);
	json_t *answer = NULL;

	if (!uri) {
		fputs("ringnfsctl: out of memory\n", stderr);
		return CTL_UNREACHABLE;
	}
	const int status = ctl_post(ctl, uri, NULL, &answer);

	free(uri);
	if (status == CTL_DONE && !ctl->json)
		printf("evicted: client %s\n", id);
	json_decref(answer);
	return status;
}

int ctl_client(const struct ctl *ctl, int argc, char **argv)
{
	bool yes = false;
	const struct ctl_option options[] = { { "yes", NULL, &yes } };
	const int left = ctl_options(options, 1, argc, argv);
	int status;

	if (left < 0)
		return CTL_USAGE;
	if (left != 3 || strcmp(argv[1], "evict") != 0) {
		fputs("usage: ringnfsctl client evict ID [--yes]\n", stderr);
		return CTL_USAGE;
	}
	if (!yes && !ctl_client_confirm(ctl, argv[2], &status))
		return status;
	return ctl_client_evict(ctl, argv[2]);
}
