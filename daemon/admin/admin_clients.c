/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "admin/admin_query.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/text.h"
#include "daemon/tls_setup.h"
#include "lib/clock.h"
#include "nfs3/nfs3_server.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/op_table.h"
#include "rpc/conns.h"
#include "rpc/message.h"
#include "rpc/principal.h"
#include "rpc/client.h"

struct client_traffic {
	struct rpc_conns *conns;
	struct tls_users *users; /* or NULL */
};

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

/* detail: with the numbers of each operation, and a list of the connections. */
static void client_add_traffic(json_t *row, const struct nfs4_view_client *v,
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

/* GET /v1/nfs3_clients: a page of the addresses that have called by NFSv3. ringnfsctl(8) describes the answer. */

#define PAGE 500u

static void nfs3_clients_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

static void nfs3_clients_add_usage(json_t *row, struct rpc_usage *u)
{
	uint64_t calls = 0;

	for (unsigned i = 0; i < RPC_USAGE_PROCS; i++)
		calls += u->proc[i];
	nfs3_clients_add_number(row, "calls", calls);
	nfs3_clients_add_number(row, "errors", u->errors);
	nfs3_clients_add_number(row, "bytes_read", u->bytes_read);
	nfs3_clients_add_number(row, "bytes_written", u->bytes_written);
}

static void add_procedures(json_t *row, struct rpc_usage *u)
{
	json_t *by = json_object();

	for (unsigned i = 0; i < RPC_USAGE_PROCS; i++) {
		if (u->proc[i])
			nfs3_clients_add_number(by, nfs3_proc_name(i), u->proc[i]);
	}
	json_object_set_new(row, "by_operation", by);
}

static void nfs3_clients_add_client(json_t *rows, struct rpc_usage_view *v, bool detail)
{
	const uint64_t now = rn_now_ns();
	json_t *row = json_object();

	json_object_set_new(row, "address", client_address(v->host.bytes));
	json_object_set_new(row, "network", json_boolean(v->network));
	nfs3_clients_add_number(row, "connections", v->connections);
	nfs3_clients_add_number(row, "idle",
				now > v->usage.last_ns ? (now - v->usage.last_ns) / RN_NS_PER_SECOND
						       : 0);
	nfs3_clients_add_usage(row, &v->usage);
	if (detail)
		add_procedures(row, &v->usage);
	json_array_append_new(rows, row);
}

/* Reads the only address that is asked for. 0, or an error as of admin_query_text(). */
static int get_only(const struct admin_request *req, struct sockaddr_storage *out)
{
	char text[INET6_ADDRSTRLEN];
	const int rc = admin_query_text(req, "address", text, sizeof(text));

	if (rc)
		return rc;
	return endpoint_read_address(text, out) ? 0 : -EINVAL;
}

/* Reads the last address of the page before; the same. */
static int get_after(const struct admin_request *req, struct rn_host *out)
{
	char text[2 * sizeof(*out) + 1];
	size_t len;
	const int rc = admin_query_text(req, "after", text, sizeof(text));

	if (rc)
		return rc;
	if (sodium_hex2bin((unsigned char *)out, sizeof(*out), text, strlen(text), NULL, &len,
			   NULL) != 0 ||
	    len != sizeof(*out))
		return -EINVAL;
	return 0;
}

/* Adds a page of rows, and to reply where the next one begins. after NULL: the first. */
static void add_page(struct rpc_clients *clients, const struct rn_host *after, json_t *rows,
		     json_t *reply)
{
	struct rn_host at;
	struct rpc_usage_view v;
	char text[2 * sizeof(at) + 1];

	for (unsigned i = 0; i < PAGE; i++) {
		if (!rpc_usage_next(clients, after, &v))
			return;
		nfs3_clients_add_client(rows, &v, false);
		at = v.host;
		after = &at;
	}
	sodium_bin2hex(text, sizeof(text), (const unsigned char *)&at, sizeof(at));
	json_object_set_new(reply, "after", json_string(text));
}

static void add_others(json_t *reply, struct rpc_clients *clients)
{
	json_t *others = json_object();
	struct rpc_usage u;

	nfs3_clients_add_number(others, "clients", rpc_usage_others(clients, &u));
	nfs3_clients_add_usage(others, &u);
	json_object_set_new(reply, "others", others);
}

void control_nfs3_clients(void *control, const struct admin_request *req, struct admin_reply *r)
{
	struct rpc_clients *clients = ((const struct control *)control)->from.clients;
	struct sockaddr_storage only;
	struct rn_host after;
	struct rpc_usage_view v;
	int rc = get_only(req, &only);
	const bool one = rc == 0;

	if (rc == -ENOENT)
		rc = get_after(req, &after);
	if (rc && rc != -ENOENT) {
		admin_reply_error(r, 400, "bad_request",
				  "address: an IP address is expected; after: that member of the "
				  "page before");
		return;
	}
	json_t *reply = json_object(), *rows = json_array();

	if (!one)
		add_page(clients, rc == 0 ? &after : NULL, rows, reply);
	else if (rpc_usage_find(clients, &only, &v))
		nfs3_clients_add_client(rows, &v, true);
	json_object_set_new(reply, "nfs3_clients", rows);
	add_others(reply, clients);
	admin_reply_json(r, reply);
}

/* GET /v1/clients: a page of the NFSv4 clients. ringnfsctl(8) describes the answer. */

#define PAGE 500u

struct page {
	json_t *rows;
	struct client_traffic traffic;
	bool one; /* only the client id is shown, with its detail */
	uint64_t id;
};

static const char *const states[] = {
	[NFS4_VIEW_UNCONFIRMED] = "unconfirmed",
	[NFS4_VIEW_ACTIVE] = "active",
	[NFS4_VIEW_COURTESY] = "courtesy",
	[NFS4_VIEW_EXPIRED] = "expired",
};

static void clients_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

static void clients_add_client(void *arg, const struct nfs4_view_client *v)
{
	const struct page *p = arg;
	json_t *c = json_object();
	char id[20];

	snprintf(id, sizeof(id), "0x%016" PRIx64, v->clientid);
	json_object_set_new(c, "id", json_string(id));
	json_object_set_new(c, "name", client_printable(v->name, v->name_len));
	json_object_set_new(c, "version", json_string(v->sessions ? "4.1" : "4.0"));
	json_object_set_new(c, "address", client_address(v->address));
	json_object_set_new(
		c, "netid",
		client_printable((const uint8_t *)v->netid, (uint32_t)strlen(v->netid)));
	if (v->flavor == RPC_AUTH_SYS)
		clients_add_number(c, "uid", v->uid);
	if (v->principal)
		json_object_set_new(c, "principal",
				    client_printable((const uint8_t *)v->principal->name,
						     (uint32_t)v->principal->len));
	if (v->machine)
		json_object_set_new(c, "state_protection", json_string("machine"));
	json_object_set_new(c, "state", json_string(states[v->status]));
	clients_add_number(c, "since", v->since_s);
	if (v->status == NFS4_VIEW_ACTIVE)
		clients_add_number(c, "lease_left", v->lease_s);
	clients_add_number(c, "sessions", v->nsessions);
	clients_add_number(c, "opens", v->opens);
	clients_add_number(c, "locks", v->locks);
	clients_add_number(c, "delegations", v->delegations);
	client_add_traffic(c, v, &p->traffic, p->one);
	json_array_append_new(p->rows, c);
}

static void clients_note_found(void *arg, const struct nfs4_view_client *v)
{
	bool *found = arg;

	(void)v;
	*found = true;
}

bool control_has_client(const struct control *c, uint64_t id, struct admin_reply *r)
{
	bool found = false;

	if (c->from.parts.nfs4)
		nfs4_view_client(c->from.parts.nfs4, id, clients_note_found, &found);
	if (!found)
		admin_reply_error(r, 404, "not_found", "there is no NFSv4 client 0x%016" PRIx64,
				  id);
	return found;
}

void control_clients(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct nfs4_server *nfs4 = c->from.parts.nfs4;
	struct page p = { .rows = json_array(),
			  .traffic = { .conns = rpc_clients_conns(c->from.clients),
				       .users = c->from.tls_users } };
	uint64_t after = 0;
	int rc = admin_query_number(req, "id", UINT64_MAX, &p.id);

	p.one = rc == 0;
	if (rc == 0 || rc == -ENOENT)
		rc = admin_query_number(req, "after", UINT32_MAX, &after);
	if (rc && rc != -ENOENT) {
		json_decref(p.rows);
		admin_reply_error(
			r, 400, "bad_request",
			"id: a client's id is expected; after: that member of the page before");
		return;
	}
	uint32_t at = (uint32_t)after;
	bool all = true;

	if (nfs4 && p.one)
		nfs4_view_client(nfs4, p.id, clients_add_client, &p);
	else if (nfs4)
		all = nfs4_view_clients(nfs4, &at, PAGE, clients_add_client, &p);
	json_t *reply = json_object();

	json_object_set_new(reply, "clients", p.rows);
	if (!all)
		clients_add_number(reply, "after", at);
	admin_reply_json(r, reply);
}
