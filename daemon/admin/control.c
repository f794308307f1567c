/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/control.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/admin/control_private.h"
#include "lib/clock.h"
#include "lib/util.h"

#define READERS "ringnfs" /* group whose members may ask */

static const struct {
	const char *method, *path;
	void (*run)(void *control, const struct admin_request *req, struct admin_reply *r);
	bool reads; /* readers may call it */
} rows[] = {
	{ "GET", "/v1/clients", control_clients, true },
	{ "POST", "/v1/clients/evict", control_client_evict, false },
	{ "GET", "/v1/config", control_config, true },
	{ "GET", "/v1/connections", control_connections, true },
	{ "GET", "/v1/delegations", control_delegations, true },
	{ "POST", "/v1/delegations/recall", control_delegation_recall, false },
	{ "GET", "/v1/drain", control_drain, true },
	{ "POST", "/v1/drain", control_drain_begin, false },
	{ "POST", "/v1/drain/cancel", control_drain_cancel, false },
	{ "GET", "/v1/exports", control_exports, true },
	{ "POST", "/v1/exports/add", control_exports_add, false },
	{ "POST", "/v1/exports/diff", control_exports_diff, true },
	{ "GET", "/v1/exports/explain", control_exports_explain, true },
	{ "POST", "/v1/exports/reload", control_exports_reload, false },
	{ "POST", "/v1/exports/remove", control_exports_remove, false },
	{ "GET", "/v1/grace", control_grace, true },
	{ "POST", "/v1/grace/end", control_grace_end, false },
	{ "GET", "/v1/locks", control_locks, true },
	{ "POST", "/v1/locks/release", control_lock_release, false },
	{ "GET", "/v1/log", control_log, true },
	{ "POST", "/v1/log", control_log_set, false },
	{ "GET", "/v1/nfs3_clients", control_nfs3_clients, true },
	{ "GET", "/v1/opens", control_opens, true },
	{ "POST", "/v1/opens/close", control_open_close, false },
	{ "GET", "/v1/sessions", control_sessions, true },
	{ "GET", "/v1/status", control_status, true },
	{ "GET", "/v1/trace", control_trace, false },
	{ "POST", "/v1/trace", control_trace_start, false },
	{ "POST", "/v1/trace/stop", control_trace_stop, false },
};

int control_new(const struct cfg_settings *settings, const struct rn_logger *log,
		struct control **out)
{
	const struct admin_config cfg = {
		.path = settings->server.control_socket,
		.log = log,
	};

	*out = NULL;
	if (!cfg.path || !*cfg.path)
		return 0;
	struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->started_ns = rn_now_ns();
	c->started = time(NULL);
	c->log = log;
	int rc = admin_new(&cfg, &c->server);

	if (rc)
		free(c);
	else
		*out = c;
	return rc;
}

int control_start(struct control *c, const struct control_sources *sources)
{
	if (!c)
		return 0;
	c->from = *sources;
	c->handlers = calloc(rn_array_size(rows), sizeof(c->handlers[0]));
	if (!c->handlers)
		return -ENOMEM;
	for (size_t i = 0; i < rn_array_size(rows); i++)
		c->handlers[i] = (struct admin_handler){
			.method = rows[i].method,
			.path = rows[i].path,
			.run = rows[i].run,
			.ctx = c,
			.reads = rows[i].reads,
			.private = !rows[i].reads,
		};
	c->readers = readers_ask(sources->askers, READERS, c->server, c->log);
	c->searchers = path_searchers_new();
	if (!c->readers || !c->searchers)
		return -ENOMEM;
	return admin_start(c->server, c->handlers, rn_array_size(rows));
}

void control_stop(struct control *c)
{
	if (!c)
		return;
	readers_forget(c->readers);
	admin_free(c->server);
	path_searchers_free(c->searchers);
	free(c->handlers);
	free(c);
}
