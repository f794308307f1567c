/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/exports/explain: which line is for a client, and what follows from it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admin/admin_query.h"
#include "conf/exports.h"
#include "daemon/admin/exports_json.h"
#include "daemon/admin/exports_task.h"
#include "daemon/admin/text.h"
#include "vfs/export.h"
#include "vfs/mount_table.h"

#define PATH_LEN 4097
#define ID_MAX (UINT32_MAX - 1)

struct question {
	char client[EXP_ADDR_STRLEN], path[PATH_LEN];
	struct sockaddr_storage peer;
	uint64_t uid, gid;
	json_t *lines;
	const struct exp_client *found;
	bool undecided;
};

static const char *const verdicts[] = {
	[EXP_NO_MATCH] = "no",
	[EXP_MATCH] = "yes",
	[EXP_UNDECIDED] = "not known",
	[EXP_NOT_ASKED] = "not needed",
};

static const char *const kinds[] = {
	[EXP_CLIENT_HOST] = "host",	    [EXP_CLIENT_NETWORK] = "network",
	[EXP_CLIENT_WILDCARD] = "wildcard", [EXP_CLIENT_NETGROUP] = "netgroup",
	[EXP_CLIENT_ANY] = "all machines",
};

/* The comparison in words; name is the client's, or NULL. */
static void say_why(const struct exp_client *c, enum exp_verdict verdict, const char *name,
		    char *why, size_t size)
{
	const bool is = verdict == EXP_MATCH;

	if (verdict == EXP_UNDECIDED)
		snprintf(why, size, "the name service does not answer");
	else if (verdict == EXP_NOT_ASKED)
		snprintf(why, size, "a line before it has decided");
	else if (c->kind == EXP_CLIENT_HOST && c->name)
		snprintf(why, size, "%s %s the client's address", c->name,
			 is ? "has" : "does not have");
	else if (c->kind == EXP_CLIENT_HOST)
		snprintf(why, size, is ? "it is the client's address" : "it is another address");
	else if (c->kind == EXP_CLIENT_NETWORK)
		snprintf(why, size, "the client's address is %s it", is ? "within" : "not within");
	else if (c->kind == EXP_CLIENT_ANY)
		snprintf(why, size, "it is for all machines");
	else
		snprintf(why, size, "%s%s %s",
			 name ? "the client's name is " : "the client has no confirmed name",
			 name ? name : ",", is ? "and matches" : "and does not match");
}

static void explain_add_line(void *ctx, const struct exp_client *c, enum exp_verdict verdict,
			     const char *name)
{
	struct question *q = ctx;
	json_t *object = json_object();
	char why[2 * EXP_NAME_MAX + 64];

	say_why(c, verdict, name, why, sizeof(why));
	json_object_set_new(object, "client", control_text(c->spec));
	json_object_set_new(object, "kind", json_string(kinds[c->kind]));
	json_object_set_new(object, "applies", json_string(verdicts[verdict]));
	json_object_set_new(object, "why", control_text(why));
	exports_add_source(object, c);
	json_array_append_new(q->lines, object);
	if (verdict == EXP_MATCH)
		q->found = c;
	q->undecided |= verdict == EXP_UNDECIDED;
}

struct origins {
	const struct exp_client *client;
	json_t *list;
};

static void add_option(void *ctx, uint32_t bit, const char *text)
{
	const struct origins *o = ctx;
	const char *from = "default";

	if (o->client->own & bit)
		from = "client";
	else if (o->client->inherited & bit)
		from = "line defaults";
	else if (bit == EXP_GIVEN_FSID)
		from = "another client"; /* all clients of an export share it */
	json_array_append_new(o->list,
			      json_pack("{s:o, s:s}", "option", control_text(text), "from", from));
}

static json_t *squash_json(const struct question *q, const struct vfs_access *a)
{
	struct vfs_cred cred = { .uid = (uint32_t)q->uid, .gid = (uint32_t)q->gid };

	vfs_cred_squash(&cred, a, false);
	return json_pack("{s:I, s:I, s:I, s:I}", "uid", (json_int_t)q->uid, "gid",
			 (json_int_t)q->gid, "as_uid", (json_int_t)cred.uid, "as_gid",
			 (json_int_t)cred.gid);
}

static json_t *flavors_json(const struct exp_opts *opts, bool mount_read_only)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < opts->n_flavors; i++) {
		const bool rw = (opts->flavors[i].flags & EXP_RW) && !mount_read_only;

		json_array_append_new(list, json_pack("{s:s, s:s}", "flavor",
						      exp_flavor_name(opts->flavors[i].flavor),
						      "access", rw ? "rw" : "ro"));
	}
	return list;
}

static void add_rights(json_t *to, const struct question *q, const struct export_place *p)
{
	const struct exp_opts *opts = &q->found->opts;
	const struct origins o = { q->found, json_array() };
	struct vfs_access access;

	exports_access(opts, p->read_only, &access);
	exp_opts_each(opts, add_option, (void *)(uintptr_t)&o);
	json_object_set_new(to, "client", control_text(q->found->spec));
	json_object_set_new(to, "options", o.list);
	json_object_set_new(to, "access", json_string(access.flags & VFS_RO ? "ro" : "rw"));
	json_object_set_new(to, "read_only_mount", json_boolean(p->read_only));
	json_object_set_new(to, "flavors", flavors_json(opts, p->read_only));
	json_object_set_new(to, "port",
			    json_string(access.flags & VFS_SECURE ? "below 1024" : "any"));
	json_object_set_new(to, "identity", squash_json(q, &access));
}

static bool read_question(const struct exports_task *t, struct question *q)
{
	const struct admin_request req = { .query = t->query };
	struct exp_addr addr;

	if (admin_query_text(&req, "client", q->client, sizeof(q->client)) != 0 ||
	    admin_query_text(&req, "path", q->path, sizeof(q->path)) != 0 || q->path[0] != '/' ||
	    !exp_path_clean(q->path) || !exp_addr_from_text(q->client, &addr))
		return false;
	exp_addr_to_sockaddr(&addr, &q->peer);
	int rc = admin_query_number(&req, "uid", ID_MAX, &q->uid);

	if (rc == 0)
		q->gid = q->uid;
	if (rc == 0 || rc == -ENOENT)
		rc = admin_query_number(&req, "gid", ID_MAX, &q->gid);
	return rc == 0 || rc == -ENOENT;
}

/* Cuts an absolute path to that of the directory above; "/" stays. */
static void cut_to_parent(char *path)
{
	char *slash = strrchr(path, '/');

	slash[slash == path ? 1 : 0] = '\0';
}

/* Lists the exports on the path that lie deeper than its first length bytes: they have no line for the client. */
static json_t *passed_over(const struct exports_now *now, const char *asked, size_t length)
{
	json_t *list = json_array();
	char path[PATH_LEN];

	strcpy(path, asked);
	while (strlen(path) > length) {
		const struct exp_export *e = exp_table_by_path(now->table, path);

		if (e)
			json_array_append_new(list, control_text(e->path));
		cut_to_parent(path);
	}
	return list;
}

/* Says whether clients of NFSv2 and 3 come into the export by a lookup from the export around it, or nothing if there is none for them. */
static void add_crossing(json_t *to, const struct question *q, const struct exports_now *now,
			 const struct exp_export *e)
{
	const struct sockaddr *peer = (const struct sockaddr *)&q->peer;
	const struct vfs_export *inner = now->place[e->index].exp, *outer;
	const struct exp_export *around;
	const struct exp_opts *opts;
	char path[PATH_LEN];
	size_t length;

	strcpy(path, e->path);
	cut_to_parent(path);
	if (exports_find(now, path, peer, &around, &length) != 0 || around == e ||
	    exp_match(now->matcher, around, peer, &opts) != 0)
		return;
	outer = now->place[around->index].exp;
	if (!inner || !outer)
		return;
	const bool enters = !vfs_export_is_mounted_in(inner, outer) ||
			    (opts->flags & EXP_CROSSMNT) || (q->found->opts.flags & EXP_NOHIDE);

	json_object_set_new(to, "within", control_text(around->path));
	json_object_set_new(to, "entered_by",
			    json_string(enters ? "all versions" : "NFSv4 and MNT"));
}

/* Names the mount below the export that the path lies on, and whether the client is shown it. */
static void explain_add_mount(json_t *to, const struct question *q, const struct exports_now *now,
			      const struct exp_export *e, const char *rest)
{
	const struct export_place *place = &now->place[e->index];
	const struct vfs_mount_entry *deepest = NULL;
	char path[2 * PATH_LEN];
	struct vfs_mount_table t;

	if (!place->exp || *rest == '\0' || vfs_mount_table_load(&t) != 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", vfs_export_real_path(place->exp), rest);
	for (size_t i = 0; i < t.n; i++) {
		const struct vfs_mount_entry *m = &t.entry[i];

		if (vfs_path_below(m->path, vfs_export_real_path(place->exp)) &&
		    (strcmp(m->path, path) == 0 || vfs_path_below(path, m->path)) &&
		    (!deepest || strlen(m->path) >= strlen(deepest->path)))
			deepest = m;
	}
	if (deepest) {
		json_object_set_new(to, "mount_below", control_text(deepest->path));
		json_object_set_new(to, "mount_shown",
				    json_boolean(q->found->opts.flags & EXP_CROSSMNT));
	}
	vfs_mount_table_free(&t);
}

static json_t *explain_json(struct question *q, const struct exports_now *now)
{
	const struct sockaddr *peer = (const struct sockaddr *)&q->peer;
	json_t *answer = json_object(), *passed;
	const struct exp_export *e;
	size_t length;

	const int rc = exports_find(now, q->path, peer, &e, &length);

	json_object_set_new(answer, "access", json_string("none"));
	if (rc == -EPERM) {
		q->path[length] = '\0';
		json_object_set_new(answer, "in_error", control_text(q->path));
	}
	if (!e)
		return answer;
	exp_match_explain(now->matcher, e, peer, explain_add_line, q);
	passed = passed_over(now, q->path, length);
	if (q->found && json_array_size(passed) > 0)
		json_object_set(answer, "no_line_in", passed);
	json_decref(passed);
	json_object_set_new(answer, "export", control_text(e->path));
	exports_add_state(answer, &now->place[e->index]);
	json_object_set(answer, "lines", q->lines);
	if (q->undecided)
		json_object_set_new(answer, "access", json_string("not known"));
	if (q->found) {
		const char *rest = q->path + length;

		add_rights(answer, q, &now->place[e->index]);
		add_crossing(answer, q, now, e);
		explain_add_mount(answer, q, now, e, rest + strspn(rest, "/"));
	}
	return answer;
}

static void run_explain(const struct exports_task *t, struct admin_reply *r)
{
	struct question q = { .lines = json_array() };
	struct exports_now now;

	if (!read_question(t, &q)) {
		admin_reply_error(r, 400, "bad_request",
				  "client: an IP address; path: an absolute path without \"..\"; "
				  "uid, gid: numbers, "
				  "or none");
	} else {
		exports_now_get(t->control->from.exports, &now);
		admin_reply_json(r, explain_json(&q, &now));
		exports_now_put(&now);
	}
	json_decref(q.lines);
}

void control_exports_explain(void *control, const struct admin_request *req, struct admin_reply *r)
{
	exports_task_start(control, req, r, run_explain);
}
