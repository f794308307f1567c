/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/nfs3_clients: a page of the addresses that have called by NFSv3. ringnfsctl(8) describes the answer. */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "admin/admin_query.h"
#include "daemon/admin/client_text.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/endpoint.h"
#include "lib/clock.h"
#include "nfs3/nfs3_server.h"
#include "rpc/usage.h"

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
