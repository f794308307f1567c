/* SPDX-License-Identifier: BSD-2-Clause */
/* POST /v1/restart, and what GET /v1/status tells of restarts. ringnfsctl(8) describes the answers. */
#include <signal.h>
#include <unistd.h>

#include "daemon/admin/control_private.h"

json_t *restart_json(const struct start_report *r)
{
	static const char *const how[] = {
		[START_FRESH] = "fresh",
		[START_WHOLE] = "whole",
		[START_LISTENERS] = "ordinary",
		[START_MOVED] = "moved",
	};
	json_t *restart =
		json_pack("{s:s, s:I, s:I}", "how", how[r->how], "count", (json_int_t)r->count,
			  "refused", (json_int_t)atomic_load(&r->refused));

	if (r->how == START_WHOLE || r->how == START_MOVED)
		json_object_set_new(restart, "waited_ms",
				    json_integer((json_int_t)atomic_load(&r->ms)));
	if (r->how == START_LISTENERS)
		json_object_set_new(restart, "reason", json_string(r->why));
	if (r->how != START_FRESH)
		json_object_set_new(restart, "version_before", json_string(r->version));
	return restart;
}

/* The main thread does it after this was answered. */
void control_restart(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;

	rn_notice(c->log, "user %u: the server is to be restarted", (unsigned)req->peer.uid);
	admin_reply_json(r, restart_json(c->from.report));
	kill(getpid(), SIGUSR2);
}
