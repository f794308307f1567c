/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GET /v1/sessions: a page of the sessions of NFSv4.1 and 4.2. ringnfsctl(8) describes the answer.
 *
 * Who knows a session's id may use the session from any host that the exports admit. So only those
 * see it who could end the session here as well.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "admin/admin_query.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/text.h"
#include "lib/util.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_view.h"
#include "rpc/conns.h"

#define PAGE 250u /* clients */
#define ID_SIZE sizeof(((struct nfs4_view_session *)0)->id)

struct page {
	json_t *rows;
	struct rpc_conns *conns;
	bool trusted; /* true if the peer may see ids */
};

static const char *const paths[] = {
	[NFS4_VIEW_NO_PATH] = "none", [NFS4_VIEW_UNTRIED] = "untried", [NFS4_VIEW_UP] = "up",
	[NFS4_VIEW_DOWN] = "down",    [NFS4_VIEW_FAULT] = "fault",
};

static const struct {
	uint32_t bit;
	const char *name;
} flags[] = {
	{ SEQ4_STATUS_CB_PATH_DOWN, "cb_path_down" },
	{ SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED, "expired_all_state_revoked" },
	{ SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED, "expired_some_state_revoked" },
	{ SEQ4_STATUS_ADMIN_STATE_REVOKED, "admin_state_revoked" },
	{ SEQ4_STATUS_RECALLABLE_STATE_REVOKED, "recallable_state_revoked" },
	{ SEQ4_STATUS_RESTART_RECLAIM_NEEDED, "restart_reclaim_needed" },
	{ SEQ4_STATUS_CB_PATH_DOWN_SESSION, "cb_path_down_session" },
	{ SEQ4_STATUS_BACKCHANNEL_FAULT, "backchannel_fault" },
};

static void sessions_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

/* The serial number in the id is no secret: it counts the sessions. */
static void add_names(json_t *row, const struct nfs4_view_session *s, bool trusted)
{
	char text[2 * ID_SIZE + 1];

	sessions_add_number(row, "serial", rn_get32(s->id + 8));
	if (!trusted)
		return;
	for (size_t i = 0; i < ID_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", s->id[i]);
	json_object_set_new(row, "id", json_string(text));
}

static void sessions_add_client(json_t *row, const struct nfs4_view_session *s)
{
	char id[20];

	snprintf(id, sizeof(id), "0x%016" PRIx64, s->clientid);
	json_object_set_new(row, "client", json_string(id));
	json_object_set_new(row, "client_name", client_printable(s->name, s->name_len));
	json_object_set_new(row, "version", json_string(s->minor == 2 ? "4.2" : "4.1"));
	sessions_add_number(row, "age", s->age_s);
	sessions_add_number(row, "memory", s->memory);
}

static json_t *channel(const struct nfs4_view_channel *ch)
{
	json_t *to = json_object();

	sessions_add_number(to, "slots", ch->slots);
	sessions_add_number(to, "busy", ch->busy);
	sessions_add_number(to, "max_request", ch->max_request);
	sessions_add_number(to, "max_reply", ch->max_reply);
	sessions_add_number(to, "max_operations", ch->max_ops);
	return to;
}

static void add_channels(json_t *row, const struct nfs4_view_session *s)
{
	json_t *fore = channel(&s->fore), *back = channel(&s->back), *list = json_array();

	sessions_add_number(fore, "used", s->used);
	sessions_add_number(fore, "target", s->target);
	sessions_add_number(fore, "cached", s->cached);
	sessions_add_number(fore, "max_cached", s->max_cached);
	sessions_add_number(back, "waiting", s->waiting);
	json_object_set_new(back, "state", json_string(paths[s->path]));
	for (size_t i = 0; i < rn_array_size(flags); i++) {
		if (s->flags & flags[i].bit)
			json_array_append_new(list, json_string(flags[i].name));
	}
	json_object_set_new(row, "fore", fore);
	json_object_set_new(row, "back", back);
	json_object_set_new(row, "flags", list);
}

static bool sessions_channel_has(const struct nfs4_view_channel *ch, uint64_t conn)
{
	for (uint32_t i = 0; i < ch->nconns; i++) {
		if (ch->conn[i] == conn)
			return true;
	}
	return false;
}

/* Connections that have ended are left out. */
static void sessions_add_connection(json_t *list, const struct page *p, uint64_t id,
				    const char *direction)
{
	struct rpc_conn_view v;
	json_t *to;

	if (!rpc_conns_find(p->conns, id, &v) || v.closing)
		return;
	to = json_object();
	sessions_add_number(to, "id", id);
	json_object_set_new(to, "transport", json_string(v.netid));
	endpoint_add(to, "address", "port", &v.peer);
	if (v.device[0])
		json_object_set_new(to, "device", json_string(v.device));
	json_object_set_new(to, "direction", json_string(direction));
	json_array_append_new(list, to);
}

static void sessions_add_connections(json_t *row, const struct page *p,
				     const struct nfs4_view_session *s)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->fore.nconns; i++)
		sessions_add_connection(list, p, s->fore.conn[i],
					sessions_channel_has(&s->back, s->fore.conn[i]) ? "both"
											: "fore");
	for (uint32_t i = 0; i < s->back.nconns; i++) {
		if (!sessions_channel_has(&s->fore, s->back.conn[i]))
			sessions_add_connection(list, p, s->back.conn[i], "back");
	}
	json_object_set_new(row, "connections", list);
}

static void add_session(void *arg, const struct nfs4_view_session *s)
{
	const struct page *p = arg;
	json_t *row = json_object();

	add_names(row, s, p->trusted);
	sessions_add_client(row, s);
	add_channels(row, s);
	sessions_add_connections(row, p, s);
	json_array_append_new(p->rows, row);
}

void control_sessions(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct nfs4_server *nfs4 = c->from.parts.nfs4;
	struct page p = {
		.conns = rpc_clients_conns(c->from.clients),
		.trusted = control_trusts(req),
	};
	struct nfs4_view_sessions how = { .show = add_session, .arg = &p };
	uint64_t after = 0;
	int rc = admin_query_number(req, "client", UINT64_MAX, &how.clientid);
	const bool one = rc == 0;

	if (rc == 0 || rc == -ENOENT)
		rc = admin_query_number(req, "after", UINT32_MAX, &after);
	if (rc && rc != -ENOENT) {
		admin_reply_error(
			r, 400, "bad_request",
			"client: a client's id is expected; after: that member of the page before");
		return;
	}
	uint32_t at = (uint32_t)after;

	/* Only the first page demands that the client is there: it may go while a reader asks for further ones. */
	if (one && !at && !control_has_client(c, how.clientid, r))
		return;
	p.rows = json_array();
	const bool all = !nfs4 || nfs4_view_sessions(nfs4, &at, PAGE, &how);
	json_t *reply = json_object();

	json_object_set_new(reply, "sessions", p.rows);
	if (!all)
		sessions_add_number(reply, "after", at);
	admin_reply_json(r, reply);
}
