/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/control.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/admin/control_private.h"
#include "daemon/admin/page.h"
#include "lib/clock.h"
#include "lib/util.h"

#define FRESH_NS (RN_NS_PER_SECOND / 5)

static struct admin_text *metrics_page_make(const struct metrics_page *p,
					    enum metrics_format format)
{
	size_t len;
	char *text = metrics_collect(&p->from, format, &len);

	return text ? admin_text_new(text, len) : NULL;
}

static void metrics_page_init(struct metrics_page *p)
{
	*p = (struct metrics_page){ .kept[0].text = NULL };
	pthread_mutex_init(&p->lock, NULL);
}

/* An admin_handler's run; ctx is a struct metrics_page. */
static void metrics_page_show(void *ctx, const struct admin_request *req, struct admin_reply *r)
{
	struct metrics_page *p = ctx;
	const enum metrics_format format = metrics_accepted(req->accept);
	const uint64_t now = rn_now_ns();

	pthread_mutex_lock(&p->lock);
	if (!p->kept[format].text || now - p->kept[format].made_ns > FRESH_NS) {
		admin_text_put(p->kept[format].text);
		p->kept[format].text = metrics_page_make(p, format);
		p->kept[format].made_ns = now;
	}
	if (p->kept[format].text)
		admin_reply_text(r, metrics_content_type(format), p->kept[format].text);
	pthread_mutex_unlock(&p->lock);
}

/* After the end of its server. */
static void metrics_page_fini(struct metrics_page *p)
{
	for (unsigned i = 0; i < METRICS_FORMATS; i++)
		admin_text_put(p->kept[i].text);
	pthread_mutex_destroy(&p->lock);
}

#define READERS "ringnfs" /* group whose members may ask */

static const struct {
	const char *method, *path;
	void (*run)(void *control, const struct admin_request *req, struct admin_reply *r);
	bool reads; /* readers may call it */
} rows[] = {
	{ "GET", "/v1/calls", control_calls, true },
	{ "GET", "/v1/clients", control_clients, true },
	{ "POST", "/v1/clients/evict", control_client_evict, false },
	{ "GET", "/v1/cluster", control_cluster, true },
	{ "POST", "/v1/cluster/move", control_cluster_move, false },
	{ "POST", "/v1/cluster/remove", control_cluster_remove, false },
	{ "GET", "/v1/config", control_config, true },
	{ "GET", "/v1/connections", control_connections, true },
	{ "GET", "/v1/delegations", control_delegations, true },
	{ "GET", "/v1/layouts", control_layouts, true },
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
	{ "POST", "/v1/restart", control_restart, false },
	{ "GET", "/v1/sessions", control_sessions, true },
	{ "GET", "/v1/stats", control_stats, true },
	{ "GET", "/v1/status", control_status, true },
	{ "GET", "/v1/trace", control_trace, false },
	{ "POST", "/v1/trace", control_trace_start, false },
	{ "POST", "/v1/trace/stop", control_trace_stop, false },
};

static int open_servers(struct control *c, const struct cfg_settings *settings)
{
	const struct admin_config socket = { .path = settings->server.control_socket,
					     .log = c->log };
	const struct admin_config tcp = { .listen = settings->metrics.listen.addrs,
					  .nlisten = settings->metrics.listen.n,
					  .log = c->log };
	int rc = 0;

	if (socket.path && *socket.path)
		rc = admin_new(&socket, &c->server);
	if (!rc && tcp.nlisten)
		rc = admin_new(&tcp, &c->tcp);
	return rc;
}

int control_new(const struct cfg_settings *settings, const struct rn_logger *log,
		struct control **out)
{
	struct control *c = calloc(1, sizeof(*c));

	*out = NULL;
	if (!c)
		return -ENOMEM;
	c->started_ns = rn_now_ns();
	c->started = time(NULL);
	c->log = log;
	metrics_page_init(&c->page);
	metrics_page_init(&c->tcp_page);
	int rc = open_servers(c, settings);

	if (rc || (!c->server && !c->tcp))
		control_stop(c);
	else
		*out = c;
	return rc;
}

static void prepare_pages(struct control *c)
{
	const struct control_sources *from = &c->from;

	c->page.from = (struct metrics_sources){
		.parts = from->parts,
		.counters = from->counters,
		.settings = from->settings,
		.exports = from->exports,
		.clients = from->clients,
		.cluster = from->cluster,
		.loops = from->loops,
		.nloops = from->event_threads,
		.started = c->started,
		.paths = true,
	};
	c->tcp_page.from = c->page.from;
	c->tcp_page.from.paths = false;
}

static int start_socket(struct control *c)
{
	const size_t n = rn_array_size(rows);

	c->handlers = calloc(n + 1, sizeof(c->handlers[0]));
	if (!c->handlers)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		c->handlers[i] = (struct admin_handler){
			.method = rows[i].method,
			.path = rows[i].path,
			.run = rows[i].run,
			.ctx = c,
			.reads = rows[i].reads,
			.private = !rows[i].reads,
		};
	c->handlers[n] = (struct admin_handler){
		.method = "GET", .path = "/metrics", .run = metrics_page_show, .ctx = &c->page
	};
	c->readers = readers_ask(c->from.askers, READERS, c->server, c->log);
	c->searchers = path_searchers_new();
	if (!c->readers || !c->searchers)
		return -ENOMEM;
	return admin_start(c->server, c->handlers, n + 1);
}

static int control_start_tcp(struct control *c)
{
	c->tcp_handlers[0] = (struct admin_handler){
		.method = "GET", .path = "/metrics", .run = metrics_page_show, .ctx = &c->tcp_page
	};
	c->tcp_handlers[1] =
		(struct admin_handler){ .method = "GET", .path = "/", .run = page_show };
	return admin_start(c->tcp, c->tcp_handlers, rn_array_size(c->tcp_handlers));
}

int control_start(struct control *c, const struct control_sources *sources)
{
	int rc = 0;

	if (!c)
		return 0;
	c->from = *sources;
	prepare_pages(c);
	if (c->server)
		rc = start_socket(c);
	if (!rc && c->tcp)
		rc = control_start_tcp(c);
	return rc;
}

void control_stop(struct control *c)
{
	if (!c)
		return;
	readers_forget(c->readers);
	admin_free(c->tcp);
	admin_free(c->server);
	path_searchers_free(c->searchers);
	metrics_page_fini(&c->page);
	metrics_page_fini(&c->tcp_page);
	free(c->handlers);
	free(c);
}
