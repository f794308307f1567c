/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/status: what the server is, and how it does. ringnfsctl(8) describes the answer. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "daemon/admin/control_private.h"
#include "daemon/counters/numbers.h"
#include "daemon/tls_setup.h"
#include "lib/clock.h"
#include "transport/tls/tls.h"

/* jansson takes each reference over, and refuses NULL: what there was no memory for is left out. */
static void status_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

static json_t *add_object(json_t *to, const char *name)
{
	json_object_set_new(to, name, json_object());
	return json_object_get(to, name);
}

static void add_date(json_t *to, const char *name, time_t when)
{
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&when, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(to, name, json_string(text));
}

static void status_add_times(json_t *to, const struct control *c)
{
	add_date(to, "started", c->started);
	status_add_number(to, "uptime", (rn_now_ns() - c->started_ns) / RN_NS_PER_SECOND);
}

static void status_add_listener(json_t *list, const char *address, uint16_t port,
				const char *transport, const char *service)
{
	json_array_append_new(list,
			      json_pack("{s:s, s:i, s:s, s:s}", "address", address, "port",
					(int)port, "transport", transport, "service", service));
}

/* The addresses that the settings name, or all of the families that have a port. */
static void add_listeners_of(json_t *list, const struct cfg_addrs *addrs, uint16_t port4,
			     uint16_t port6, const char *transport, const char *service)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (!addrs->n && port4)
		status_add_listener(list, "0.0.0.0", port4, transport, service);
	if (!addrs->n && port6)
		status_add_listener(list, "::", port6, transport, service);
	for (unsigned i = 0; i < addrs->n; i++) {
		const struct sockaddr_storage *ss = &addrs->addrs[i];
		const bool v4 = ss->ss_family == AF_INET;
		const void *bytes =
			v4 ? (const void *)&((const struct sockaddr_in *)ss)->sin_addr
			   : (const void *)&((const struct sockaddr_in6 *)ss)->sin6_addr;
		const uint16_t port = v4 ? port4 : port6;

		if (port && inet_ntop(ss->ss_family, bytes, text, sizeof(text)))
			status_add_listener(list, text, port, transport, service);
	}
}

static void status_add_listeners(json_t *to, const struct control_sources *from)
{
	const struct registration_ports *p = &from->ports;
	const struct cfg_settings *set = from->settings;
	json_t *list = json_array();

	add_listeners_of(list, &set->tcp.listen, p->tcp4, p->tcp6, "tcp", "nfs");
	add_listeners_of(list, &set->tcp.listen, p->mount4 == p->tcp4 ? 0 : p->mount4,
			 p->mount6 == p->tcp6 ? 0 : p->mount6, "tcp", "mount");
	if (from->parts.rdma) {
		const unsigned serves = rr_server_serves(from->parts.rdma);
		const uint16_t port = (uint16_t)set->rdma.port;

		add_listeners_of(list, &set->rdma.listen, serves & RR_SERVES_IPV4 ? port : 0,
				 serves & RR_SERVES_IPV6 ? port : 0, "rdma", "nfs");
	}
	json_object_set_new(to, "listeners", list);
}

static void add_threads(json_t *to, const struct control_sources *from)
{
	json_t *threads = add_object(to, "threads");
	struct workers_stats w;

	workers_stats(from->parts.workers, &w);
	status_add_number(threads, "event", from->event_threads);
	status_add_number(threads, "workers", w.workers);
	status_add_number(threads, "stuck", w.stuck + w.stuck_loops);
}

static void status_add_connections(json_t *to, const struct control_sources *from)
{
	json_t *connections = add_object(to, "connections");
	struct tcp_stats t = { 0 };
	struct rr_stats r = { 0 };

	if (from->parts.tcp)
		tcp_server_stats(from->parts.tcp, &t);
	if (from->parts.rdma)
		rr_server_stats(from->parts.rdma, &r);
	status_add_number(connections, "tcp", t.connections);
	status_add_number(connections, "rdma", r.connections);
}

static void add_clients(json_t *to, const struct control_sources *from)
{
	json_t *clients = add_object(to, "clients");
	struct nfs4_held h = { 0 };

	if (from->parts.nfs4)
		nfs4_held(from->parts.nfs4, &h);
	status_add_number(clients, "connected", rpc_clients_count(from->clients));
	status_add_number(clients, "nfs4", h.clients);
	status_add_number(clients, "nfs4_courtesy", h.courtesy_clients);
}

static void add_grace(json_t *to, const struct control_sources *from)
{
	json_t *grace = add_object(to, "grace");
	struct nfs4_grace_status g = { 0 };

	if (from->parts.nfs4)
		nfs4_grace_status(from->parts.nfs4, &g);
	json_object_set_new(grace, "active", json_boolean(g.active));
	status_add_number(grace, "seconds_left", g.seconds_left);
	status_add_number(grace, "expected", g.expected);
	status_add_number(grace, "waiting", g.waiting);
}

/* Nothing if the server is alone. */
static void add_cluster(json_t *to, const struct control_sources *from)
{
	if (from->cluster)
		json_object_set_new(to, "cluster", cluster_json(from->cluster));
}

static void add_records(json_t *to, const struct control_sources *from)
{
	json_t *records = add_object(to, "records");
	struct nsm_stats nfs3 = { 0 };
	bool failing = from->parts.nfs4 && nfs4_records_failing(from->parts.nfs4);

	if (from->parts.nsm)
		nsm_stats(from->parts.nsm, &nfs3);
	failing |= nfs3.failing;
	json_object_set_new(records, "failing", json_boolean(failing));
}

static void add_exports(json_t *to, const struct control_sources *from)
{
	json_t *exports = add_object(to, "exports");
	struct exports_health h;

	exports_health(from->exports, &h);
	status_add_number(exports, "served", h.served);
	status_add_number(exports, "in_error", h.in_error);
	status_add_number(exports, "failed", h.failed);
	status_add_number(exports, "unmounted", h.unmounted);
	status_add_number(exports, "removed", h.removed);
	status_add_number(exports, "waiting", h.waiting);
	json_object_set_new(exports, "reload_refused", json_boolean(h.reload_refused));
}

static void add_drain(json_t *to, const struct control_sources *from)
{
	drain_add_json(add_object(to, "drain"), from->drain);
}

static void add_handshakes(json_t *to, struct tls *tls)
{
	json_t *shakes = add_object(to, "handshakes"), *failed;
	struct tls_stats n;

	tls_stats(tls, &n);
	status_add_number(shakes, "tls", n.done - n.with_certificate);
	status_add_number(shakes, "mtls", n.with_certificate);
	status_add_number(shakes, "encrypted_by_kernel", n.ktls);
	status_add_number(shakes, "under_way", n.under_way);
	status_add_number(shakes, "refused", n.refused);
	failed = add_object(shakes, "failed");
	for (int i = 0; i < TLS_REASONS; i++)
		status_add_number(failed, tls_reason_name((enum tls_reason)i), n.reasons[i]);
}

/* Nothing if TLS is not offered. */
static void add_tls(json_t *to, const struct control_sources *from)
{
	struct tls *tls = from->parts.tcp ? tcp_server_tls(from->parts.tcp) : NULL;
	struct tls_own own;
	json_t *object;

	if (!tls)
		return;
	tls_own(tls, &own);
	object = add_object(to, "tls");
	json_object_set_new(object, "subject", json_string(own.subject));
	add_date(object, "expires", (time_t)own.expires);
	json_object_set_new(object, "days_left",
			    json_integer((json_int_t)((own.expires - time(NULL)) / 86400)));
	json_object_set_new(object, "verifies_clients", json_boolean(own.verifies));
	json_object_set_new(object, "kernel", json_boolean(own.ktls));
	if (from->tls_users)
		status_add_number(object, "user_map_lines", tls_users_count(from->tls_users));
	add_handshakes(object, tls);
}

static void add_memory(json_t *to, const struct control_sources *from)
{
	json_t *memory = add_object(to, "memory");

	status_add_number(memory, "used", from->parts.budget->used);
	status_add_number(memory, "limit", from->parts.budget->max);
}

static void add_one_held(void *object, const char *name, uint64_t value)
{
	status_add_number(object, name, value);
}

static void add_held(json_t *to, const struct control_sources *from)
{
	const struct held_sink sink = { .add = add_one_held, .ctx = add_object(to, "held") };

	held_each(&from->parts, &sink);
}

void control_status(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	json_t *status = json_pack("{s:s, s:i}", "version", PACKAGE_VERSION, "pid", (int)getpid());

	(void)req;
	status_add_times(status, c);
	json_object_set_new(status, "restart", restart_json(c->from.report));
	add_threads(status, &c->from);
	status_add_listeners(status, &c->from);
	status_add_connections(status, &c->from);
	add_clients(status, &c->from);
	add_grace(status, &c->from);
	add_cluster(status, &c->from);
	add_exports(status, &c->from);
	add_records(status, &c->from);
	add_drain(status, &c->from);
	add_tls(status, &c->from);
	add_memory(status, &c->from);
	add_held(status, &c->from);
	admin_reply_json(r, status);
}
