/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/connections: a page of the connections. ringnfsctl(8) describes the answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/admin_query.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/text.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/nfs4_view.h"
#include "rpc/conns.h"

static void add_subject(json_t *row, const struct rpc_conn_view *v, struct tls_users *users)
{
	char user[TLS_USERS_TEXT_MAX];

	if (!v->subject[0])
		return;
	json_object_set_new(row, "subject", json_string(v->subject));
	if (users && tls_users_describe(users, v->user_found, user))
		json_object_set_new(
			row, "user",
			client_printable((const uint8_t *)user, (uint32_t)strlen(user)));
}

void protection_add_tls(json_t *row, const struct rpc_conn_view *v, struct tls_users *users)
{
	if (v->protection == RPC_PLAIN)
		return;
	json_object_set_new(row, "tls",
			    json_string(v->protection == RPC_MUTUAL_TLS ? "mtls" : "tls"));
	json_object_set_new(row, "encrypted_by", json_string(v->ktls ? "kernel" : "server"));
	if (!v->tls_version)
		return;
	json_object_set_new(row, "tls_version", json_string(v->tls_version));
	json_object_set_new(row, "cipher", json_string(v->tls_cipher));
	json_object_set_new(row, "alpn", v->tls_alpn ? json_string("sunrpc") : json_null());
	add_subject(row, v, users);
}

void protection_add_security(json_t *row, uint8_t secs)
{
	static const char *const names[] = { "none", "sys", "krb5", "krb5i", "krb5p" };
	json_t *list = json_array();

	for (unsigned i = 0; i < rn_array_size(names); i++)
		if (secs & 1u << i)
			json_array_append_new(list, json_string(names[i]));
	json_object_set_new(row, "security", list);
}

#define PAGE 500u

struct page {
	json_t *rows;
	struct nfs4_server *nfs4; /* or NULL */
	struct tls_users *users;  /* or NULL */
	uint64_t now;
	char address[INET6_ADDRSTRLEN]; /* the only one to be shown; empty: all */
};

static void connections_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

static void add_bool(json_t *to, const char *name, bool value)
{
	json_object_set_new(to, name, json_boolean(value));
}

/* The difference; 0 if it is below that, as figures go on while they are read. */
static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void connections_add_times(json_t *row, const struct rpc_conn_view *v, uint64_t now)
{
	const uint64_t last = v->called_ns ? v->called_ns : v->made_ns;

	connections_add_number(row, "age", minus(now, v->made_ns) / RN_NS_PER_SECOND);
	connections_add_number(row, "idle", v->oldest_ns ? 0 : minus(now, last) / RN_NS_PER_SECOND);
}

static void connections_add_calls(json_t *row, const struct rpc_conn_view *v, uint64_t now)
{
	connections_add_number(row, "calls", v->calls);
	connections_add_number(row, "answered", minus(v->ended, v->dropped));
	connections_add_number(row, "under_way", minus(v->calls, v->ended));
	if (v->oldest_ns)
		connections_add_number(row, "oldest_ms", minus(now, v->oldest_ns) / RN_NS_PER_MS);
	connections_add_number(row, "bytes_in", v->bytes_in);
	connections_add_number(row, "bytes_out", v->bytes_out);
}

static void connections_add_rdma(json_t *row, const struct rpc_conn_view *v)
{
	if (!v->device[0])
		return;
	json_object_set_new(row, "device", json_string(v->device));
	connections_add_number(row, "inline_in", v->inline_in);
	connections_add_number(row, "inline_out", v->inline_out);
	connections_add_number(row, "credits", v->credits);
	connections_add_number(row, "credits_used", minus(v->calls, v->ended));
}

static void add_errors(json_t *row, const struct rpc_conn_view *v)
{
	json_t *errors = json_object();

	connections_add_number(errors, "rpc", v->errors);
	connections_add_number(errors, "dropped", v->dropped);
	if (v->device[0]) {
		connections_add_number(errors, "err_chunk", v->err_chunk);
		connections_add_number(errors, "err_vers", v->err_vers);
	}
	json_object_set_new(row, "errors", errors);
}

static void connections_add_client(json_t *row, const struct rpc_conn_view *v,
				   struct nfs4_server *nfs4)
{
	char id[20];

	if (!v->session_client || !nfs4 || !nfs4_view_is_bound(nfs4, v->session_client, v->id))
		return;
	snprintf(id, sizeof(id), "0x%016" PRIx64, v->session_client);
	json_object_set_new(row, "client", json_string(id));
}

static void connections_add_row(void *arg, const struct rpc_conn_view *v)
{
	const struct page *p = arg;
	char address[INET6_ADDRSTRLEN];

	endpoint_put_address(&v->peer, address);
	if (p->address[0] && strcmp(p->address, address) != 0)
		return;
	json_t *row = json_object();

	connections_add_number(row, "id", v->id);
	json_object_set_new(row, "transport", json_string(v->netid));
	endpoint_add(row, "address", "port", &v->peer);
	endpoint_add(row, "local_address", "local_port", &v->local);
	add_bool(row, "dialed", v->dialed);
	add_bool(row, "closing", v->closing);
	add_bool(row, "callbacks", v->back);
	protection_add_tls(row, v, p->users);
	protection_add_security(row, v->secs);
	connections_add_rdma(row, v);
	connections_add_times(row, v, p->now);
	connections_add_calls(row, v, p->now);
	add_errors(row, v);
	connections_add_client(row, v, p->nfs4);
	json_array_append_new(p->rows, row);
}

/* The only address to be shown, as the rows have it. 0, or an error as of admin_query_text(). */
static int read_address(const struct admin_request *req, char address[INET6_ADDRSTRLEN])
{
	struct sockaddr_storage only;
	const int rc = admin_query_text(req, "address", address, INET6_ADDRSTRLEN);

	if (rc)
		return rc;
	if (!endpoint_read_address(address, &only))
		return -EINVAL;
	endpoint_put_address(&only, address);
	return 0;
}

void control_connections(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct page p = { .nfs4 = c->from.parts.nfs4,
			  .users = c->from.tls_users,
			  .now = rn_now_ns() };
	uint64_t after = 0;
	int rc = read_address(req, p.address);

	if (rc == 0 || rc == -ENOENT)
		rc = admin_query_number(req, "after", INT64_MAX, &after);
	if (rc && rc != -ENOENT) {
		admin_reply_error(r, 400, "bad_request",
				  "address: an IP address is expected; after: that member of the "
				  "page before");
		return;
	}
	json_t *reply = json_object();

	p.rows = json_array();
	const bool all = rpc_conns_view(rpc_clients_conns(c->from.clients), &after, PAGE,
					connections_add_row, &p);

	json_object_set_new(reply, "connections", p.rows);
	if (!all)
		connections_add_number(reply, "after", after);
	admin_reply_json(r, reply);
}
