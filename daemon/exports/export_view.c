/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers by the exports in force: which export a path or handle is of, and what a client may do there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "daemon/exports/export_set_private.h"
#include "daemon/workers/fs_queues.h"
#include "daemon/workers/workers.h"
#include "lib/error.h"

static enum vfs_sec sec_of(uint32_t flavor)
{
	switch (flavor) {
	case EXP_AUTH_SYS:
		return VFS_SEC_SYS;
	case EXP_AUTH_KRB5:
		return VFS_SEC_KRB5;
	case EXP_AUTH_KRB5I:
		return VFS_SEC_KRB5I;
	case EXP_AUTH_KRB5P:
		return VFS_SEC_KRB5P;
	default:
		return VFS_SEC_NONE;
	}
}

void exports_access(const struct exp_opts *opts, bool mount_read_only, struct vfs_access *a)
{
	const uint32_t f = opts->flags;

	*a = (struct vfs_access){ .anonuid = opts->anonuid, .anongid = opts->anongid };
	for (uint32_t i = 0; i < opts->n_flavors; i++) {
		const uint32_t own = opts->flavors[i].flags;

		vfs_access_accept(a, sec_of(opts->flavors[i].flavor),
				  (own & EXP_RW && !mount_read_only ? 0 : VFS_RO) |
					  (own & EXP_ROOT_SQUASH ? VFS_ROOT_SQUASH : 0) |
					  (own & EXP_ALL_SQUASH ? VFS_ALL_SQUASH : 0));
	}
	vfs_access_use(a, a->secs[0].sec);
	a->flags |= (f & EXP_ASYNC ? VFS_ASYNC : 0) | (f & EXP_INSECURE ? 0 : VFS_SECURE) |
		    (opts->flags & EXP_NO_AUTH_NLM ? VFS_NO_AUTH_NLM : 0) |
		    (opts->flags & EXP_SECURITY_LABEL ? VFS_SECURITY_LABEL : 0) |
		    (f & EXP_CROSSMNT ? VFS_CROSSMNT : 0) | (f & EXP_NOHIDE ? VFS_NOHIDE : 0) |
		    (opts->flags & EXP_NO_RDIRPLUS ? VFS_NO_READDIRPLUS : 0) |
		    (opts->flags & EXP_NO_ACL ? VFS_NO_ACL : 0) |
		    (f & EXP_NO_PLAIN ? VFS_NO_PLAIN : 0) | (f & EXP_NO_TLS ? VFS_NO_TLS : 0) |
		    (f & EXP_NO_MTLS ? VFS_NO_MTLS : 0) | (f & EXP_REFER ? VFS_ABSENT : 0);
}

int export_set_admits(const struct export_set *set, const struct exp_export *e,
		      const struct sockaddr *peer, struct vfs_access *access)
{
	const struct export_place *place = &set->place[e->index];
	const struct exp_opts *opts;
	int rc = exp_match(set->matcher, e, peer, &opts);

	if (rc)
		return rc;
	rc = export_place_usable(e, place, opts);
	if (rc)
		return rc == -EALREADY ? -RN_ESILENT : rc;
	exports_access(opts, place->read_only, access);
	return 0;
}

/* Takes a reference on success. */
static int export_admit(const struct export_set *set, const struct exp_export *e,
			const struct sockaddr *peer, struct vfs_export **exp,
			struct vfs_access *access)
{
	const int rc = export_set_admits(set, e, peer, access);

	if (rc)
		return rc;
	*exp = set->place[e->index].exp;
	vfs_export_ref(*exp);
	return 0;
}

int exports_admit(struct exports *ex, const struct sockaddr *peer)
{
	struct set_view *view = export_set_view_get(ex);
	const struct export_set *set = view->set;
	const struct exp_opts *opts;
	int rc = -EACCES;

	for (unsigned i = 0; rc && i < set->table->n_exports; i++) {
		const int this = exp_match(set->matcher, &set->table->exports[i], peer, &opts);

		if (this == 0 || this == -RN_EUNNAMED)
			rc = this;
	}
	export_set_view_put(view);
	return rc;
}

static int view_by_id(void *ctx, uint32_t id, const struct sockaddr *peer, struct vfs_export **exp,
		      struct vfs_access *access)
{
	struct set_view *view = export_set_view_get(ctx);
	const struct exp_export *e = exp_table_by_id(view->set->table, id);
	const int rc = e ? export_admit(view->set, e, peer, exp, access) : -ESTALE;

	export_set_view_put(view);
	return rc;
}

static int view_enter(void *ctx, uint32_t id)
{
	const struct exports *ex = ctx;

	return worker_enters(ex->cfg.fs_queues, id);
}

int exports_find(const struct exports_now *now, const char *path, const struct sockaddr *peer,
		 const struct exp_export **e, size_t *length)
{
	const struct set_view *view = now->view;

	return export_set_line_of(view->set, path, peer, e, length);
}

static int view_by_path(void *ctx, const char *path, const struct sockaddr *peer,
			struct vfs_export **exp, struct vfs_access *access, const char **rest)
{
	struct set_view *view = export_set_view_get(ctx);
	const struct exp_export *e;
	size_t length;
	int rc = export_set_line_of(view->set, path, peer, &e, &length);

	*rest = path + length + strspn(path + length, "/");
	if (rc == 0)
		rc = export_admit(view->set, e, peer, exp, access);
	export_set_view_put(view);
	return rc == -ESTALE || rc == -RN_ESILENT ? -ENOENT : rc == -EPERM ? -EACCES : rc;
}

static void view_nested(void *ctx, const char *name, uint32_t len, const struct sockaddr *peer,
			bool (*each)(void *arg, const struct vfs_nested *n), void *arg)
{
	struct exports *ex = ctx;
	struct set_view *view;

	if (!atomic_load_explicit(&ex->any_nested, memory_order_relaxed))
		return;
	view = export_set_view_get(ex);
	export_set_nested(view->set, name, len, peer, each, arg);
	export_set_view_put(view);
}

static int view_governs(void *ctx, const struct vfs_export *outer, const char *path,
			const struct sockaddr *peer)
{
	struct set_view *view = export_set_view_get(ctx);
	const int rc = export_set_governs(view->set, outer, path, peer);

	export_set_view_put(view);
	return rc;
}

/* A line without a file was added by hand. */
static void say_line(const struct exp_client *c, char *text, size_t size)
{
	if (c->file)
		snprintf(text, size, "%s:%u", c->file, c->line);
	else
		snprintf(text, size, "temporary");
}

/* The line whose options the peer has. */
static const struct exp_client *export_client_of(const struct exp_export *e,
						 const struct exp_opts *opts)
{
	const struct exp_client *c = e->clients;

	while (&c->opts != opts)
		c++;
	return c;
}

static void view_why(void *ctx, const char *path, const struct sockaddr *peer, char *text,
		     size_t size)
{
	struct set_view *view = export_set_view_get(ctx);
	const struct exp_export *e;
	const struct exp_opts *opts = NULL;
	size_t length;
	int rc = export_set_line_of(view->set, path, peer, &e, &length);

	if (rc == 0)
		rc = exp_match(view->set->matcher, e, peer, &opts);
	const struct exp_client *c = rc == 0 ? export_client_of(e, opts) : e ? e->clients : NULL;
	char line[512] = "";

	if (c)
		say_line(c, line, sizeof(line));
	if (rc == -EPERM)
		snprintf(text, size, "the lines for %.*s are in error", (int)length, path);
	else if (!e)
		snprintf(text, size, "no export leads there");
	else if (rc == 0)
		snprintf(text, size, "export %s, the line for %s (%s)%s", e->path, c->spec, line,
			 view->set->place[e->index].exp ? "" : ", which is not served now");
	else
		snprintf(text, size, "export %s (%s), %s", e->path, line,
			 rc == -RN_EUNNAMED ? "whose names are not known yet"
					    : "which has no line for this host");
	export_set_view_put(view);
}

static void view_locations(void *ctx, uint32_t id, const struct sockaddr *peer,
			   void (*each)(void *arg, const struct vfs_location *l), void *arg)
{
	struct set_view *view = export_set_view_get(ctx);
	const struct exp_export *e = exp_table_by_id(view->set->table, id);
	const struct exp_opts *opts;
	struct exp_location l;

	if (e && exp_match(view->set->matcher, e, peer, &opts) == 0 && opts->locations) {
		const char *list = opts->locations;

		while (exp_location_next(&list, &l))
			each(arg,
			     &(struct vfs_location){ l.path, l.path_len, l.hosts, l.hosts_len });
	}
	export_set_view_put(view);
}

struct list_call {
	struct export_set *set;
	bool (*each)(void *arg, const char *path, const char *const *groups, unsigned ngroups);
	void *arg;
};

static bool list_one(const struct list_call *c, const struct exp_export *e)
{
	const char **groups = calloc(e->n_clients, sizeof(*groups));
	bool more = true;

	for (unsigned i = 0; groups && i < e->n_clients; i++)
		groups[i] = e->clients[i].spec;
	if (groups)
		more = c->each(c->arg, e->path, groups, e->n_clients);
	free(groups);
	return more;
}

static void view_list(void *ctx,
		      bool (*each)(void *arg, const char *path, const char *const *groups,
				   unsigned ngroups),
		      void *arg)
{
	struct set_view *view = export_set_view_get(ctx);
	struct list_call call = { .set = view->set, .each = each, .arg = arg };

	for (unsigned i = 0; i < call.set->table->n_exports; i++)
		if (call.set->place[i].exp && !list_one(&call, &call.set->table->exports[i]))
			break;
	export_set_view_put(view);
}

static void view_each(void *ctx, bool (*each)(void *arg, struct vfs_export *exp), void *arg)
{
	struct set_view *view = export_set_view_get(ctx);
	struct export_set *set = view->set;

	for (unsigned i = 0; i < set->table->n_exports; i++)
		if (set->place[i].exp && !each(arg, set->place[i].exp))
			break;
	export_set_view_put(view);
}

struct vfs_exports exports_view(struct exports *ex)
{
	return (struct vfs_exports){ .by_id = view_by_id,
				     .enter = view_enter,
				     .by_path = view_by_path,
				     .why = view_why,
				     .nested = view_nested,
				     .governs = view_governs,
				     .locations = view_locations,
				     .list = view_list,
				     .each = view_each,
				     .ctx = ex };
}

static void export_log_served(const struct rn_logger *log, const struct exp_export *e)
{
	char who[512];
	size_t n = 0;

	for (unsigned i = 0; i < e->n_clients && n < sizeof(who); i++)
		n += (size_t)snprintf(who + n, sizeof(who) - n, " %s(%s)", e->clients[i].spec,
				      e->clients[i].opts.flags & EXP_RW ? "rw" : "ro");
	rn_notice(log, "serving %s to%s", e->path, who);
}

void exports_log(struct exports *ex)
{
	struct set_view *view = export_set_view_get(ex);
	struct export_set *set = view->set;
	unsigned served = 0;

	for (unsigned i = 0; i < set->table->n_exports; i++) {
		if (!set->place[i].exp)
			continue;
		export_log_served(ex->cfg.log, &set->table->exports[i]);
		served++;
	}
	if (!served)
		rn_warn(ex->cfg.log, "no directory is exported: name one in %s",
			ex->cfg.load.file ? ex->cfg.load.file : "an exports file");
	export_set_view_put(view);
}
