/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/exports_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "conf/exports.h"
#include "daemon/admin/text.h"

static const char *exports_severity_name(enum cfg_severity severity)
{
	return severity == CFG_ERROR ? "error" : severity == CFG_WARNING ? "warning" : "note";
}

json_t *exports_messages(const struct cfg_diags *diags)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < diags->n; i++) {
		const struct cfg_diag *d = &diags->items[i];

		json_array_append_new(list, json_pack("{s:s, s:o, s:i, s:i, s:o}", "severity",
						      exports_severity_name(d->severity), "file",
						      control_text(d->file), "line", (int)d->line,
						      "column", (int)d->col, "text",
						      control_text(d->text)));
		if (d->again)
			json_object_set_new(json_array_get(list, json_array_size(list) - 1),
					    "again", json_integer(d->again));
	}
	return list;
}

json_t *exports_options(const struct exp_opts *opts)
{
	char *text = exp_opts_text(opts);
	json_t *string = control_text(text);

	free(text);
	return string;
}

static const struct {
	const char *name, *reason;
} states[] = {
	[EXPORT_SERVED] = { "served", NULL },
	[EXPORT_FAILED] = { "failed", "it cannot be opened" },
	[EXPORT_UNMOUNTED] = { "unmounted", "its file system was unmounted; it is served when one "
					    "is mounted there, "
					    "or after a reload" },
	[EXPORT_REMOVED] = { "removed", "its directory was removed; it is served when one is there "
					"again" },
	[EXPORT_WAITS] = { "waiting", "not mounted yet (option mp)" },
};

void exports_add_state(json_t *to, const struct export_place *p)
{
	json_object_set_new(to, "state", json_string(p->moved ? "moved" : states[p->state].name));
	if (p->moved)
		json_object_set_new(
			to, "reason",
			json_string("its directory was moved, and is served where it is now; a "
				    "reload serves what is at its path"));
	if (p->state != EXPORT_SERVED)
		json_object_set_new(to, "reason",
				    control_text(p->why ? p->why : states[p->state].reason));
}

void exports_add_source(json_t *to, const struct exp_client *client)
{
	json_object_set_new(to, "temporary", json_boolean(!client->file));
	if (!client->file)
		return;
	json_object_set_new(to, "file", control_text(client->file));
	json_object_set_new(to, "line", json_integer(client->line));
}

static json_t *holder_json(const struct exports_holder *h)
{
	char text[EXP_ADDR_STRLEN] = "?", id[32];
	struct exp_addr addr;

	if (exp_addr_from_sockaddr((const struct sockaddr *)&h->addr, &addr))
		exp_addr_to_text(&addr, text);
	snprintf(id, sizeof(id), "0x%016llx", (unsigned long long)h->clientid);
	return json_pack("{s:s, s:s, s:I, s:I, s:I}", "client", id, "address", text, "opens",
			 (json_int_t)h->opens, "locks", (json_int_t)h->locks, "delegations",
			 (json_int_t)h->delegations);
}

json_t *exports_revoked_json(const struct exports_revoked *rev)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < rev->nholders; i++)
		json_array_append_new(list, holder_json(&rev->holder[i]));
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "opens", (json_int_t)rev->opens, "locks",
			 (json_int_t)rev->locks, "delegations", (json_int_t)rev->delegations,
			 "nlm_owners", (json_int_t)rev->lock_owners, "clients", list);
}
