/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/grace, POST /v1/grace/end. ringnfsctl(8) describes the answers. */
#include <errno.h>
#include <time.h>

#include "daemon/admin/control_private.h"
#include "daemon/admin/text.h"
#include "lib/clock.h"
#include "lib/error.h"

#define CLIENTS_MOST 1000u /* in one answer */
#define PATIENCE_NS (10 * RN_NS_PER_SECOND)
#define PAUSE_NS 5000000

static void control_grace_add_client(void *arg, const struct nfs4_grace_client *c)
{
	json_t *list = arg, *client;

	if (json_array_size(list) >= CLIENTS_MOST)
		return;
	client = json_object();
	json_object_set_new(client, "name", client_printable(c->name, c->name_len));
	json_object_set_new(client, "version", json_string(c->sessions ? "4.1" : "4.0"));
	json_object_set_new(client, "address",
			    c->address ? client_address(c->address) : json_null());
	json_object_set_new(client, "back", json_boolean(c->back));
	json_array_append_new(list, client);
}

static json_t *control_grace_json(struct nfs4_server *nfs4)
{
	struct nfs4_grace_status g = { 0 };
	json_t *list = json_array(), *grace = json_object();
	uint32_t at = 0;

	if (nfs4) {
		nfs4_grace_status(nfs4, &g);
		while (g.active && nfs4_grace_waiting(nfs4, &at, control_grace_add_client, list))
			;
	}
	json_object_set_new(grace, "active", json_boolean(g.active));
	json_object_set_new(grace, "seconds_left", json_integer((json_int_t)g.seconds_left));
	json_object_set_new(grace, "expected", json_integer(g.expected));
	json_object_set_new(grace, "waiting", json_integer(g.waiting));
	json_object_set_new(grace, "clients", list);
	return grace;
}

void control_grace(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;

	(void)req;
	admin_reply_json(r, control_grace_json(c->from.parts.nfs4));
}

/* The end is written to disk meanwhile. */
static int control_grace_end_soon(struct nfs4_server *nfs4)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const uint64_t deadline_ns = rn_now_ns() + PATIENCE_NS;
	int rc;

	while ((rc = nfs4_grace_end(nfs4)) == -RN_ESOON && rn_now_ns() < deadline_ns)
		nanosleep(&pause, NULL);
	return rc;
}

void control_grace_end(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct nfs4_server *nfs4 = c->from.parts.nfs4;
	json_t *was = control_grace_json(nfs4);
	const bool active = json_is_true(json_object_get(was, "active"));
	const int rc = active ? control_grace_end_soon(nfs4) : 0;

	if (rc) {
		json_decref(was);
		admin_reply_error(
			r, 503, "busy",
			"the end of the grace period could not be written to the disk yet");
		return;
	}
	if (active)
		rn_notice(c->log,
			  "user %u: the grace period is ended, while others waited for %d clients",
			  (unsigned)req->peer.uid,
			  (int)json_integer_value(json_object_get(was, "waiting")));
	json_object_set_new(was, "ended", json_boolean(active));
	json_object_set_new(was, "active", json_false());
	json_object_set_new(was, "seconds_left", json_integer(0));
	admin_reply_json(r, was);
}
