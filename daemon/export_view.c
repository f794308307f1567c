/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers by the exports in force: which export a path or handle is of, and what a client may do there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports_match.h"
#include "daemon/export_set_private.h"
#include "daemon/lanes.h"
#include "daemon/workers.h"

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
		    (f & EXP_NO_MTLS ? VFS_NO_MTLS : 0);
}

/* Access of peer to export e of set; takes a reference on success. -EALREADY: the export waits for
 * a mount that is missing. */
static int admit(const struct exports *ex, const struct export_set *set, const struct exp_export *e,
		 const struct sockaddr *peer, struct vfs_export **exp, struct vfs_access *access)
{
	const struct export_place *place = &set->place[e->index];
	const struct exp_opts *opts;
	int rc = exp_match(set->matcher, e, peer, &opts);

	if (rc)
		return rc;
	rc = export_place_usable(e, place, opts);
	if (rc)
		return rc == -EAGAIN ? -EALREADY : rc;
	rc = worker_enters(ex->cfg.lanes, e->id);
	if (rc)
		return rc;
	exports_access(opts, place->read_only, access);
	vfs_export_ref(place->exp);
	*exp = place->exp;
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

		if (this == 0 || this == -EAGAIN)
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
	int rc = e ? admit(ctx, view->set, e, peer, exp, access) : -ESTALE;

	export_set_view_put(view);
	return rc == -EALREADY ? -ETIMEDOUT : rc;
}

/* The length of export path e as a prefix of path, whole components only; 0 if it is none. */
static size_t prefix_length(const char *e, const char *path)
{
	size_t n = strlen(e);

	if (n == 1)
		return 1; /* "/" */
	if (strncmp(e, path, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return 0;
	return n;
}

const struct exp_export *exports_find(const struct exp_table *table, const char *path,
				      size_t *length)
{
	const struct exp_export *best = NULL;

	*length = 0;
	for (unsigned i = 0; path[0] == '/' && i < table->n_exports; i++) {
		size_t n = prefix_length(table->exports[i].path, path);

		if (n > *length) {
			*length = n;
			best = &table->exports[i];
		}
	}
	return best;
}

const char *export_last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

struct path_part {
	const struct export_set *set;
	const char *path;
	size_t len;
};

/* Compares the first len bytes of a path with the real path of an export. */
static int compare_part(const void *key, const void *elem)
{
	const struct path_part *k = key;
	const char *real = vfs_export_real_path(k->set->place[*(const unsigned *)elem].exp);
	const int d = strncmp(k->path, real, k->len);

	return d != 0 ? d : real[k->len] == '\0' ? 0 : -1;
}

/* The open export whose path is the first len bytes of path, or NULL. */
static const unsigned *export_at(const struct export_set *set, const char *path, size_t len)
{
	const struct path_part key = { set, len > 0 ? path : "/", len > 0 ? len : 1 };

	return bsearch(&key, set->by_real, set->nopen, sizeof(set->by_real[0]), compare_part);
}

/* Length of the path of the directory that has the first len bytes of path; "/" has 0. */
static size_t length_above(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] != '/')
		len--;
	return len > 0 ? len - 1 : 0;
}

const unsigned *export_around(const struct export_set *set, const char *path)
{
	const unsigned *found = NULL;
	size_t len = strcmp(path, "/") == 0 ? 0 : strlen(path);

	while (!found && len > 0) {
		len = length_above(path, len);
		found = export_at(set, path, len);
	}
	return found;
}

static void view_nested(void *ctx, const char *name, uint32_t len,
			bool (*each)(void *arg, struct vfs_export *exp), void *arg)
{
	struct exports *ex = ctx;

	if (!atomic_load_explicit(&ex->any_nested, memory_order_relaxed))
		return;
	struct set_view *view = export_set_view_get(ex);
	const struct export_set *set = view->set;
	unsigned low = 0, high = set->nnested;

	while (low < high) {
		const unsigned mid = low + (high - low) / 2;
		const char *last =
			export_last_name(vfs_export_real_path(set->place[set->nested[mid]].exp));
		const int d = strncmp(last, name, len);

		if (d < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < set->nnested; low++) {
		struct vfs_export *exp = set->place[set->nested[low]].exp;
		const char *last = export_last_name(vfs_export_real_path(exp));

		if (strncmp(last, name, len) != 0 || last[len] != '\0' || !each(arg, exp))
			break;
	}
	export_set_view_put(view);
}

static int view_governs(void *ctx, const char *real_path, const struct sockaddr *peer, uint32_t *id)
{
	struct set_view *view = export_set_view_get(ctx);
	const struct export_set *set = view->set;
	size_t len = strcmp(real_path, "/") == 0 ? 0 : strlen(real_path);
	int rc = -EACCES;

	for (;;) {
		const unsigned *at = export_at(set, real_path, len);
		const struct exp_opts *opts;

		if (at) {
			*id = set->table->exports[*at].id;
			rc = exp_match(set->matcher, &set->table->exports[*at], peer, &opts);
		}
		if (rc != -EACCES || len == 0)
			break;
		len = length_above(real_path, len);
	}
	export_set_view_put(view);
	return rc == -EACCES ? -ENOENT : rc;
}

/* The export with the longest path below *length that leads to path, by the path in exports(5) or by the one without links; sets
 * *length to that of the path. NULL: there is none. */
static const struct exp_export *find_shorter(const struct export_set *set, const char *path,
					     size_t *length)
{
	const struct exp_export *best = NULL;
	size_t longest = 0;

	for (unsigned i = 0; path[0] == '/' && i < set->table->n_exports; i++) {
		const struct vfs_export *open = set->place[i].exp;
		size_t n[2] = { prefix_length(set->table->exports[i].path, path),
				open ? prefix_length(vfs_export_real_path(open), path) : 0 };

		for (unsigned k = 0; k < 2; k++) {
			if (n[k] > longest && n[k] < *length) {
				longest = n[k];
				best = &set->table->exports[i];
			}
		}
	}
	*length = longest;
	return best;
}

static int view_by_path(void *ctx, const char *path, const struct sockaddr *peer,
			struct vfs_export **exp, struct vfs_access *access, const char **rest)
{
	struct set_view *view = export_set_view_get(ctx);
	size_t length = SIZE_MAX;
	int rc = -EACCES;
	bool any = false;

	/* A host that has no line in an export within another one has what the outer one gives, as with rpc.mountd. */
	while (rc == -EACCES) {
		const struct exp_export *e = find_shorter(view->set, path, &length);

		if (!e)
			break;
		any = true;
		*rest = path + length + strspn(path + length, "/");
		rc = admit(ctx, view->set, e, peer, exp, access);
	}
	export_set_view_put(view);
	return !any || rc == -ESTALE || rc == -EALREADY ? -ENOENT : rc;
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
static const struct exp_client *line_of(const struct exp_export *e, const struct exp_opts *opts)
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
	size_t longest;
	const struct exp_export *e = exports_find(view->set->table, path, &longest);
	const struct exp_opts *opts = NULL;
	const int rc = e ? exp_match(view->set->matcher, e, peer, &opts) : -ENOENT;
	const struct exp_client *c = e && rc == 0 ? line_of(e, opts) : e ? e->clients : NULL;
	char line[512] = "";

	if (c)
		say_line(c, line, sizeof(line));
	if (!e)
		snprintf(text, size, "no export leads there");
	else if (rc == 0)
		snprintf(text, size, "export %s, the line for %s (%s)%s", e->path, c->spec, line,
			 view->set->place[e->index].exp ? "" : ", which is not served now");
	else
		snprintf(text, size, "export %s (%s), %s", e->path, line,
			 rc == -EAGAIN ? "whose names are not known yet"
				       : "which has no line for this host");
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
				     .by_path = view_by_path,
				     .why = view_why,
				     .nested = view_nested,
				     .governs = view_governs,
				     .list = view_list,
				     .each = view_each,
				     .ctx = ex };
}

static void log_one(const struct rn_logger *log, const struct exp_export *e)
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
		log_one(ex->cfg.log, &set->table->exports[i]);
		served++;
	}
	if (!served)
		rn_warn(ex->cfg.log, "no directory is exported: name one in %s",
			ex->cfg.load.file ? ex->cfg.load.file : "an exports file");
	export_set_view_put(view);
}
