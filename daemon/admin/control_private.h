/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the handlers of the control socket: each is called with the struct control as its context. */
#ifndef RN_DAEMON_ADMIN_CONTROL_PRIVATE_H
#define RN_DAEMON_ADMIN_CONTROL_PRIVATE_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/admin/admin_path_search.h"
#include "daemon/admin/control.h"
#include "daemon/admin/readers.h"

struct control {
	struct admin_server *server; /* the control socket, or NULL */
	struct admin_handler *handlers;
	struct admin_server *tcp; /* metrics over TCP, or NULL */
	struct admin_handler tcp_handlers[2];
	struct metrics_page page, tcp_page;
	struct readers *readers;
	struct path_searchers *searchers;
	const struct rn_logger *log;
	struct control_sources from;
	uint64_t started_ns; /* rn_now_ns() */
	time_t started;	     /* time of day */
};

/* True for a request of root or of the daemon's own user; false for a reader's. */
static inline bool control_trusts(const struct admin_request *req)
{
	return req->peer.uid == 0 || req->peer.uid == geteuid();
}

/* admin_calls.c: GET /v1/calls */
void control_calls(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_clients.c: GET /v1/clients */
void control_clients(void *control, const struct admin_request *req, struct admin_reply *r);
/* True if that NFSv4 client is registered; else r has the answer. */
bool control_has_client(const struct control *c, uint64_t id, struct admin_reply *r);

/* admin_connections.c: GET /v1/connections */
void control_connections(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_config.c: GET /v1/config */
void control_config(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_drain.c: GET /v1/drain, POST /v1/drain, /v1/drain/cancel */
void control_drain(void *control, const struct admin_request *req, struct admin_reply *r);
void control_drain_begin(void *control, const struct admin_request *req, struct admin_reply *r);
void control_drain_cancel(void *control, const struct admin_request *req, struct admin_reply *r);

/* ending.c: POST /v1/clients/evict, /v1/delegations/recall, /v1/locks/release, /v1/opens/close */
void control_client_evict(void *control, const struct admin_request *req, struct admin_reply *r);
void control_delegation_recall(void *control, const struct admin_request *req,
			       struct admin_reply *r);
void control_lock_release(void *control, const struct admin_request *req, struct admin_reply *r);
void control_open_close(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_cluster.c: GET /v1/cluster, POST /v1/cluster/move and /v1/cluster/remove */
void control_cluster(void *control, const struct admin_request *req, struct admin_reply *r);
void control_cluster_move(void *control, const struct admin_request *req, struct admin_reply *r);
void control_cluster_remove(void *control, const struct admin_request *req, struct admin_reply *r);
json_t *cluster_json(struct cluster_part *part);

/* admin_restart.c: POST /v1/restart */
void control_restart(void *control, const struct admin_request *req, struct admin_reply *r);
json_t *restart_json(const struct start_report *report);

/* admin_grace.c: GET /v1/grace, POST /v1/grace/end */
void control_grace(void *control, const struct admin_request *req, struct admin_reply *r);
void control_grace_end(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_clients.c: GET /v1/nfs3_clients */
void control_nfs3_clients(void *control, const struct admin_request *req, struct admin_reply *r);

/* log_level.c: GET and POST /v1/log */
void control_log(void *control, const struct admin_request *req, struct admin_reply *r);
void control_log_set(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_states.c: GET /v1/opens, /v1/locks, /v1/delegations, /v1/layouts */
void control_opens(void *control, const struct admin_request *req, struct admin_reply *r);
void control_locks(void *control, const struct admin_request *req, struct admin_reply *r);
void control_layouts(void *control, const struct admin_request *req, struct admin_reply *r);
void control_delegations(void *control, const struct admin_request *req, struct admin_reply *r);

/* exports_task.c: GET /v1/exports */
void control_exports(void *control, const struct admin_request *req, struct admin_reply *r);

/* exports_task.c: POST /v1/exports/add, /v1/exports/remove */
void control_exports_add(void *control, const struct admin_request *req, struct admin_reply *r);
void control_exports_remove(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_exports_explain.c: GET /v1/exports/explain */
void control_exports_explain(void *control, const struct admin_request *req, struct admin_reply *r);

/* exports_task.c: POST /v1/exports/reload; admin_exports_diff.c: /v1/exports/diff */
void control_exports_reload(void *control, const struct admin_request *req, struct admin_reply *r);
void control_exports_diff(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_sessions.c: GET /v1/sessions */
void control_sessions(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_stats.c: GET /v1/stats */
void control_stats(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_status.c: GET /v1/status */
void control_status(void *control, const struct admin_request *req, struct admin_reply *r);

/* admin_trace.c: POST and GET /v1/trace, POST /v1/trace/stop */
void control_trace(void *control, const struct admin_request *req, struct admin_reply *r);
void control_trace_start(void *control, const struct admin_request *req, struct admin_reply *r);
void control_trace_stop(void *control, const struct admin_request *req, struct admin_reply *r);

/* Ends of connections as JSON. */

/* Writes the address; an IPv4 address mapped into IPv6 is the IPv4 address. Empty: it is neither. */
void endpoint_put_address(const struct sockaddr_storage *from, char text[INET6_ADDRSTRLEN]);
/* Reads an IP address. False: the text is none. */
bool endpoint_read_address(const char *text, struct sockaddr_storage *out);
/* Adds the address and the port by these names. */
void endpoint_add(json_t *to, const char *address, const char *port,
		  const struct sockaddr_storage *from);

struct drain;

/* Adds active, all, exports, and seconds since the beginning. True if it is active. */
bool drain_add_json(json_t *to, struct drain *drain);

#endif
