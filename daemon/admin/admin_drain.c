/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/drain, POST /v1/drain and /v1/drain/cancel. ringnfsctl(8) describes the answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin/admin_query.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/exports_json.h"
#include "daemon/admin/text.h"
#include "daemon/daemon_drain.h"
#include "daemon/server_parts.h"
#include "lib/clock.h"

#define PATH_LEN 4097
/* Clients' state is being ended meanwhile. Longer than this the other peers of the socket do not wait. */
#define PATIENCE_NS (2 * RN_NS_PER_SECOND)
#define PAUSE_NS 5000000

static void add_path(void *list, const char *path)
{
	json_array_append_new(list, control_text(path));
}

bool drain_add_json(json_t *to, struct drain *drain)
{
	json_t *paths = json_array();
	uint64_t since_ns;
	const bool active = drain_each(drain, add_path, paths, &since_ns);

	json_object_set_new(to, "active", json_boolean(active));
	json_object_set_new(to, "all", json_boolean(drain_is_all(drain)));
	json_object_set_new(to, "exports", paths);
	if (active)
		json_object_set_new(
			to, "seconds",
			json_integer((json_int_t)((rn_now_ns() - since_ns) / RN_NS_PER_SECOND)));
	return active;
}

static bool everybody(void *ctx, uint32_t id, const struct sockaddr *peer)
{
	(void)ctx;
	(void)id;
	(void)peer;
	return true;
}

/* Ids of the exports that are drained, or of that one; the caller frees them. NULL: no memory. */
static uint32_t *drained_ids(const struct control *c, const char *path, unsigned *n)
{
	struct exports_now now;

	exports_now_get(c->from.exports, &now);
	uint32_t *ids = calloc(now.table->n_exports + 1, sizeof(*ids));

	*n = 0;
	for (unsigned i = 0; ids && i < now.table->n_exports; i++) {
		const struct exp_export *e = &now.table->exports[i];

		if (drain_covers(c->from.drain, e->path) && (!path || strcmp(path, e->path) == 0))
			ids[(*n)++] = e->id;
	}
	exports_now_put(&now);
	return ids;
}

static bool control_drain_lock(pthread_mutex_t *lock)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const uint64_t deadline_ns = rn_now_ns() + PATIENCE_NS;

	while (pthread_mutex_trylock(lock) != 0) {
		if (rn_now_ns() >= deadline_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Numbers of what clients hold where it is drained. NULL: they cannot be counted now. */
static json_t *held_json(const struct control *c, const char *path)
{
	struct exports_revoked held = { 0 };
	struct vfs_exports_lost below = { .lost = everybody };
	uint32_t *ids = drained_ids(c, path, &below.n);
	json_t *object = NULL;

	below.some = ids ? calloc(below.n + 1, sizeof(*ids)) : NULL;
	if (below.some && control_drain_lock(c->from.clients_lock)) {
		below.ids = ids;
		exports_count_holders(c->from.parts.nfs4, c->from.nfs3, &below, &held);
		pthread_mutex_unlock(c->from.clients_lock);
		object = exports_revoked_json(&held);
	}
	free(held.holder);
	free(below.some);
	free(ids);
	return object;
}

/* About the export with that path, or about all that is drained. */
static void control_drain_answer(const struct control *c, const char *path, struct admin_reply *r)
{
	json_t *object = json_object();

	drain_add_json(object, c->from.drain);
	if (path)
		json_object_set_new(object, "active",
				    json_boolean(drain_covers(c->from.drain, path)));
	if (json_is_true(json_object_get(object, "active"))) {
		json_t *held = held_json(c, path);

		json_object_set_new(object, "held", held ? held : json_null());
	}
	admin_reply_json(r, object);
}

/* Reads the parameter export into path. NULL: there is none. */
static bool read_export(const struct admin_request *req, char path[PATH_LEN], const char **out,
			struct admin_reply *r)
{
	const int rc = admin_query_text(req, "export", path, PATH_LEN);

	*out = rc == 0 ? path : NULL;
	if (rc == -ENOENT || (rc == 0 && path[0] == '/' && exp_path_clean(path)))
		return true;
	admin_reply_error(r, 400, "bad_request", "export: the path of an export is expected");
	return false;
}

void control_drain(void *control, const struct admin_request *req, struct admin_reply *r)
{
	char text[PATH_LEN];
	const char *path;

	if (read_export(req, text, &path, r))
		control_drain_answer(control, path, r);
}

static bool is_exported(const struct control *c, const char *path)
{
	struct exports_now now;

	exports_now_get(c->from.exports, &now);
	const bool is = exp_table_by_path(now.table, path) != NULL;

	exports_now_put(&now);
	return is;
}

/* Has all parts follow. */
static void control_drain_follow(const struct control *c)
{
	uint64_t since_ns;
	json_t *none = json_array();
	const bool any = drain_each(c->from.drain, add_path, none, &since_ns);

	json_decref(none);
	if (c->from.parts.nfs4)
		nfs4_drain(c->from.parts.nfs4, drain_is_all(c->from.drain) ? NFS4_DRAIN_ALL
					       : any			   ? NFS4_DRAIN_SOME
									   : NFS4_DRAIN_NONE);
	exports_follow_drain(c->from.exports);
}

void control_drain_begin(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	char text[PATH_LEN];
	const char *path;

	if (!read_export(req, text, &path, r))
		return;
	if (path && !is_exported(c, path)) {
		admin_reply_error(r, 404, "not_found", "no export is at %s", path);
		return;
	}
	const int rc = drain_begin(c->from.drain, path);

	if (rc && rc != -EALREADY) {
		admin_reply_error(r, 503, "busy",
				  "so many exports are drained already, or there is no memory");
		return;
	}
	control_drain_follow(c);
	if (!rc)
		rn_notice(c->log,
			  "user %u: clients get no new state of %s, until that is cancelled",
			  (unsigned)req->peer.uid, path ? path : "all exports");
	control_drain_answer(c, path, r);
}

void control_drain_cancel(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	char text[PATH_LEN];
	const char *path;

	if (!read_export(req, text, &path, r))
		return;
	const int rc = drain_end(c->from.drain, path);

	if (rc) {
		admin_reply_error(r, 409, "not_drained", "%s%s", path ? path : "nothing",
				  !path		 ? " is drained"
				  : rc == -EBUSY ? " is drained with all exports: cancel all"
						 : " is not drained");
		return;
	}
	control_drain_follow(c);
	rn_notice(c->log, "user %u: clients get new state of %s again", (unsigned)req->peer.uid,
		  path ? path : "all exports");
	control_drain_answer(c, NULL, r);
}
