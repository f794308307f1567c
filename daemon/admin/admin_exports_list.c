/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/exports: the exports in force. ringnfsctl(8) describes the answer. */
#include "daemon/admin/control_private.h"
#include "daemon/admin/exports_json.h"
#include "daemon/admin/text.h"
#include "daemon/export_place.h"

static json_t *client_json(const struct exp_client *client, bool waits)
{
	json_t *object = json_object();

	json_object_set_new(object, "client", control_text(client->spec));
	json_object_set_new(object, "options", exports_options(&client->opts));
	json_object_set_new(object, "waiting", json_boolean(waits));
	exports_add_source(object, client);
	return object;
}

static json_t *export_json(const struct exp_export *e, const struct export_place *p)
{
	json_t *object = json_object(), *clients = json_array();

	json_object_set_new(object, "path", control_text(e->path));
	json_object_set_new(object, "id", json_integer(e->id));
	exports_add_state(object, p);
	if (p->fs_type[0])
		json_object_set_new(object, "fs_type", control_text(p->fs_type));
	json_object_set_new(object, "read_only_mount", json_boolean(p->read_only));
	for (unsigned i = 0; i < e->n_clients; i++)
		json_array_append_new(clients,
				      client_json(&e->clients[i], p->absent && p->absent[i]));
	json_object_set_new(object, "clients", clients);
	return object;
}

void control_exports(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	json_t *answer = json_object(), *list = json_array();
	struct exports_now now;

	(void)req;
	exports_now_get(c->from.exports, &now);
	for (unsigned i = 0; i < now.table->n_exports; i++)
		json_array_append_new(list, export_json(&now.table->exports[i], &now.place[i]));
	json_object_set_new(answer, "exports", list);
	json_object_set_new(answer, "messages", exports_messages(now.file_diags));
	json_object_set_new(answer, "temporary_changes", json_integer(now.edits));
	exports_now_put(&now);
	admin_reply_json(r, answer);
}
