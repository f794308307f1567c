/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/client_traffic.h"

#include "daemon/admin/endpoint.h"
#include "daemon/admin/protection.h"
#include "lib/clock.h"
#include "nfs4/op_table.h"

static void client_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

static uint64_t client_count_get(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void add_counts(json_t *row, const struct nfs4_counts *n, bool detail)
{
	json_t *by = detail ? json_object() : NULL;
	uint64_t sum = 0;

	for (uint32_t op = 0; op < NFS4_OPS; op++) {
		const uint64_t count = client_count_get(&n->op[op]);
		const struct nfs4_op *known = nfs4_op_find(op, NFS4_MINOR_MAX);

		sum += count;
		if (by && count)
			client_add_number(by, known ? known->name : "ILLEGAL", count);
	}
	client_add_number(row, "calls",
			  client_count_get(&n->calls) + client_count_get(&n->op[OP_SEQUENCE]));
	client_add_number(row, "operations", sum);
	if (by)
		json_object_set_new(row, "by_operation", by);
	client_add_number(row, "errors", client_count_get(&n->errors));
	client_add_number(row, "bytes_read", client_count_get(&n->bytes_read));
	client_add_number(row, "bytes_written", client_count_get(&n->bytes_written));
}

/* A client's connections, seen one after the other. */
struct survey {
	json_t *list; /* or NULL */
	unsigned n;
	uint64_t under_way;
	uint8_t secs;	    /* enum rpc_sec_bit, of all of them */
	uint64_t oldest_ns; /* 0: no call is under way */
	struct rpc_conn_view latest;
};

static json_t *client_endpoint(const struct rpc_conn_view *v, struct tls_users *users)
{
	json_t *to = json_object();

	client_add_number(to, "id", v->id);
	json_object_set_new(to, "transport", json_string(v->netid));
	endpoint_add(to, "address", "port", &v->peer);
	if (v->device[0])
		json_object_set_new(to, "device", json_string(v->device));
	protection_add_tls(to, v, users);
	return to;
}

static void survey_one(struct survey *s, const struct client_traffic *from, uint64_t id,
		       bool latest)
{
	struct rpc_conn_view v;

	if (!rpc_conns_find(from->conns, id, &v))
		return;
	s->under_way += v.calls > v.ended ? v.calls - v.ended : 0;
	if (v.oldest_ns && (!s->oldest_ns || v.oldest_ns < s->oldest_ns))
		s->oldest_ns = v.oldest_ns;
	if (v.closing)
		return;
	if (latest || s->n == 0)
		s->latest = v;
	s->n++;
	s->secs |= v.secs;
	if (s->list)
		json_array_append_new(s->list, client_endpoint(&v, from->users));
}

static void client_add_rdma(json_t *row, const struct rpc_conn_view *v)
{
	json_object_set_new(row, "device", json_string(v->device));
	client_add_number(row, "inline_in", v->inline_in);
	client_add_number(row, "inline_out", v->inline_out);
	client_add_number(row, "credits", v->credits);
}

void client_add_traffic(json_t *row, const struct nfs4_view_client *v,
			const struct client_traffic *from, bool detail)
{
	struct survey s = { .list = detail ? json_array() : NULL };
	const uint64_t now = rn_now_ns();

	add_counts(row, v->counts, detail);
	for (uint32_t i = 0; i < v->nconns; i++)
		survey_one(&s, from, v->conn[i], v->conn[i] == v->last_conn);
	if (!v->sessions)
		survey_one(&s, from, v->last_conn, true);
	client_add_number(row, "connections", s.n);
	if (s.n > 0)
		json_object_set_new(row, "transport", json_string(s.latest.netid));
	if (s.n > 0 && s.latest.device[0])
		client_add_rdma(row, &s.latest);
	if (s.n > 0)
		protection_add_tls(row, &s.latest, from->users);
	protection_add_security(row, s.secs);
	client_add_number(row, "under_way", s.under_way);
	if (s.oldest_ns)
		client_add_number(row, "oldest_ms",
				  (now > s.oldest_ns ? now - s.oldest_ns : 0) / RN_NS_PER_MS);
	if (s.list)
		json_object_set_new(row, "endpoints", s.list);
}
