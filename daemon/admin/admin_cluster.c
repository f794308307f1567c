/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/cluster, POST /v1/cluster/move, POST /v1/cluster/remove. ringnfsctl(8) describes the answers. */
#include <errno.h>
#include <unistd.h>

#include "admin/admin_query.h"
#include "cluster/cluster_store.h"
#include "daemon/admin/control_private.h"
#include "daemon/cluster_part.h"
#include "lib/host.h"

static json_t *addresses_json(const struct cluster_place *place)
{
	json_t *list = json_array();
	char text[RN_ADDRESS_TEXT];

	for (unsigned i = 0; i < place->naddresses; i++) {
		rn_address_text(place->address[i], text);
		json_array_append_new(list, json_string(text));
	}
	return list;
}

static const char *const waits[] = {
	[CLUSTER_WAITS_NOT] = "",
	[CLUSTER_WAITS_ENFORCE] = "enforce",
	[CLUSTER_WAITS_START] = "start",
	[CLUSTER_WAITS_RECLAIM] = "reclaim",
};

static json_t *member_json(const struct cluster_part_view *v, unsigned i)
{
	static const char *const states[] = {
		[CLUSTER_RUNNING] = "running",
		[CLUSTER_STOPPED] = "stopped",
		[CLUSTER_DEAD] = "dead",
	};

	const struct cluster_member *m = &v->seen.object.member[i];

	return json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:I, s:o, s:i, s:i}", "name", m->name,
			 "state", states[m->state], "enforcing", (int)m->enforcing, "reclaims",
			 (int)m->needs_grace, "lost", (int)m->lost, "waits",
			 waits[cluster_waits_for(&v->seen.object, m)], "heartbeat_ms",
			 (json_int_t)v->beat_age_ms[i], "addresses", addresses_json(&m->place),
			 "tcp_port", (int)m->place.tcp_port, "rdma_port", (int)m->place.rdma_port);
}

json_t *cluster_json(struct cluster_part *part)
{
	json_t *cluster = json_object(), *list = json_array();
	struct cluster_part_view v;

	cluster_part_look(part, &v);
	for (unsigned i = 0; i < v.seen.object.nmembers; i++)
		json_array_append_new(list, member_json(&v, i));
	json_object_set_new(cluster, "name", json_string(v.cluster));
	json_object_set_new(cluster, "instance", json_string(v.instance));
	json_object_set_new(cluster, "grants", json_boolean(v.grants));
	json_object_set_new(cluster, "grace", json_boolean(v.seen.object.reclaim_epoch != 0));
	json_object_set_new(cluster, "grace_seconds",
			    json_integer((json_int_t)(v.grace_ms / 1000)));
	json_object_set_new(cluster, "epoch", json_integer((json_int_t)v.seen.object.epoch));
	json_object_set_new(cluster, "lease_ms", json_integer((json_int_t)v.lease_left_ms));
	json_object_set_new(cluster, "dead_ms", json_integer((json_int_t)v.seen.object.dead_ms));
	json_object_set_new(cluster, "members", list);
	return cluster;
}

/* False: the server is alone, and r has the answer. */
static bool control_has_cluster(const struct control *c, struct admin_reply *r)
{
	if (!c->from.cluster)
		admin_reply_error(r, 404, "not_found",
				  "this server is no member of a cluster: there is no [cluster] in "
				  "its settings");
	return c->from.cluster != NULL;
}

void control_cluster(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;

	(void)req;
	if (control_has_cluster(c, r))
		admin_reply_json(r, cluster_json(c->from.cluster));
}

void control_cluster_move(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;

	if (!control_has_cluster(c, r))
		return;
	rn_notice(c->log, "user %u: this member is to be moved", (unsigned)req->peer.uid);
	cluster_part_move(c->from.cluster);
	admin_reply_json(r, json_pack("{s:s, s:i, s:s}", "moves",
				      c->from.settings->cluster.instance, "pid", (int)getpid(),
				      "state_dir", c->from.settings->server.state_dir));
}

static void control_cluster_removed(const struct control *c, const struct admin_request *req,
				    const char *name, struct admin_reply *r)
{
	rn_notice(c->log,
		  "user %u: member %s is removed from the cluster; its clients lose what they have "
		  "not reclaimed",
		  (unsigned)req->peer.uid, name);
	admin_reply_json(r, json_pack("{s:s}", "removed", name));
}

void control_cluster_remove(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	enum cluster_refusal why;
	char name[CLUSTER_NAME_SIZE];

	if (!control_has_cluster(c, r))
		return;
	if (admin_query_text(req, "member", name, sizeof(name)) != 0 ||
	    !cluster_name_is_valid(name)) {
		admin_reply_error(r, 400, "bad_request",
				  "member: the name of a member is expected");
		return;
	}
	const int rc = cluster_part_remove(c->from.cluster, name, &why);

	if (rc == 0)
		control_cluster_removed(c, req, name, r);
	else if (rc != -EPERM)
		admin_reply_error(r, 503, "busy", "the cluster's object: %s",
				  cluster_store_error_text(rc));
	else if (why == CLUSTER_IS_RUNNING)
		admin_reply_error(r, 409, "running", "member %s runs: stop it first", name);
	else
		admin_reply_error(r, 404, "not_found", "%s: %s", name, cluster_refusal_text(why));
}
