/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/clients: a page of the NFSv4 clients. ringnfsctl(8) describes the answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/admin_query.h"
#include "daemon/admin/client_text.h"
#include "daemon/admin/client_traffic.h"
#include "daemon/admin/control_private.h"
#include "nfs4/nfs4_view.h"
#include "rpc/message.h"
#include "rpc/principal.h"

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

	if (c->from.held.nfs4)
		nfs4_view_client(c->from.held.nfs4, id, clients_note_found, &found);
	if (!found)
		admin_reply_error(r, 404, "not_found", "there is no NFSv4 client 0x%016" PRIx64,
				  id);
	return found;
}

void control_clients(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct nfs4_server *nfs4 = c->from.held.nfs4;
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
