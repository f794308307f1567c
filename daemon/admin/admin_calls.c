/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/calls: calls under way, and what they wait for. ringnfsctl(8) describes the answer. */
#include <stdlib.h>

#include "daemon/admin/control_private.h"
#include "daemon/counters/counters.h"
#include "daemon/workers/workers.h"
#include "lib/clock.h"
#include "rpc/conns.h"
#include "rpc/worker.h"

#define MOST 500u /* the oldest */

static void calls_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

static void add_age(json_t *row, const char *name, uint64_t now, uint64_t then)
{
	calls_add_number(row, name, now > then ? (now - then) / RN_NS_PER_MS : 0);
}

static void calls_add_connection(json_t *row, const struct control *c, uint64_t id)
{
	struct rpc_conn_view conn;

	calls_add_number(row, "connection", id);
	if (rpc_conns_find(rpc_clients_conns(c->from.clients), id, &conn))
		endpoint_add(row, "address", "port", &conn.peer);
}

static json_t *row_of(const struct control *c, const struct rpc_call_view *v, uint64_t now)
{
	json_t *row = json_object();

	calls_add_connection(row, c, v->conn_id);
	calls_add_number(row, "xid", v->xid);
	json_object_set_new(row, "program", json_string(v->program->name));
	calls_add_number(row, "version", v->vers);
	json_object_set_new(row, "procedure", json_string(v->proc->name));
	if (v->opnum)
		json_object_set_new(row, "operation", json_string(counters_op_name(v->opnum)));
	add_age(row, "age_ms", now, v->arrived_ns);
	if (v->waits_for) {
		json_object_set_new(row, "waits_for", json_string(rn_wait_text(v->waits_for)));
		add_age(row, "waits_ms", now, v->waits_since_ns);
		if (v->waits_until_ns)
			add_age(row, "waits_most_ms", v->waits_until_ns, v->waits_since_ns);
	}
	return row;
}

void control_calls(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct rpc_call_view *v = calloc(MOST, sizeof(*v));
	const uint64_t now = rn_now_ns();
	json_t *reply, *rows;
	size_t all = 0;
	int n;

	(void)req;
	n = v ? rpc_calls_view(workers_stacks(c->from.parts.workers), v, MOST, &all) : -1;
	if (n < 0) {
		free(v);
		admin_reply_error(r, 503, "no_memory", "there is no memory for the answer");
		return;
	}
	reply = json_object();
	rows = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(rows, row_of(c, &v[i], now));
	json_object_set_new(reply, "calls", rows);
	calls_add_number(reply, "younger", all - (size_t)n);
	admin_reply_json(r, reply);
	free(v);
}
