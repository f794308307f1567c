/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/export_set.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conf/exports_match.h"
#include "daemon/log_sink.h"
#include "vfs/mount_table.h"
#include "vfs/vfs.h"

#define STRIPES 16u /* processors that share a lock: those of one remainder */
#define CACHE_LINE 64u

struct open_export {
	struct vfs_export *exp; /* NULL: could not be opened */
	struct stat st;		/* of the path when it was opened: shows a remount on reload */
	bool crossmnt;
};

struct export_set {
	struct exp_table *table;
	struct exp_matcher *matcher;
	struct open_export *open; /* by exp_export.index */
	_Atomic unsigned refs;
};

/* The set in force as requests on some of the processors see it: every call asks for its export, so
 * they share neither a lock nor a counter with the others. Holds a reference of the set. */
struct set_view {
	_Alignas(CACHE_LINE) _Atomic unsigned refs;
	struct export_set *set;
};

/* Lock order: lock is the innermost; nothing is called under it. */
struct stripe {
	_Alignas(CACHE_LINE) pthread_mutex_t lock; /* guards view */
	struct set_view *view;
};

struct exports {
	struct exports_config cfg;
	_Atomic uint32_t generation;
	struct stripe stripe[STRIPES];
};

static void set_put(struct export_set *set)
{
	if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
		return;
	for (unsigned i = 0; set->open && i < set->table->n_exports; i++)
		if (set->open[i].exp)
			vfs_export_put(set->open[i].exp);
	free(set->open);
	if (set->matcher)
		exp_matcher_free(set->matcher);
	exp_table_unref(set->table);
	free(set);
}

static struct set_view *view_new(struct export_set *set)
{
	struct set_view *view = aligned_alloc(CACHE_LINE, sizeof(*view));

	if (!view)
		return NULL;
	atomic_init(&view->refs, 1);
	view->set = set;
	atomic_fetch_add(&set->refs, 1);
	return view;
}

static struct set_view *view_get(struct exports *ex)
{
	int cpu = sched_getcpu();
	struct stripe *s = &ex->stripe[cpu > 0 ? (unsigned)cpu % STRIPES : 0];

	pthread_mutex_lock(&s->lock);
	struct set_view *view = s->view;
	atomic_fetch_add(&view->refs, 1);
	pthread_mutex_unlock(&s->lock);
	return view;
}

static void view_put(struct set_view *view)
{
	if (!view || atomic_fetch_sub(&view->refs, 1) != 1)
		return;
	set_put(view->set);
	free(view);
}

/* Puts a set in force: all or nothing. 0 or -ENOMEM. */
static int set_use(struct exports *ex, struct export_set *set)
{
	struct set_view *view[STRIPES] = { NULL };
	int err = 0;

	for (unsigned i = 0; i < STRIPES && !err; i++) {
		view[i] = view_new(set);
		err = view[i] ? 0 : -ENOMEM;
	}
	for (unsigned i = 0; i < STRIPES; i++) {
		struct stripe *s = &ex->stripe[i];
		struct set_view *old = view[i];

		if (!err) {
			pthread_mutex_lock(&s->lock);
			old = s->view;
			s->view = view[i];
			pthread_mutex_unlock(&s->lock);
		}
		view_put(old);
	}
	/* After the sets: who sees the number asks the new one. 0 is nobody's. */
	if (!err && atomic_fetch_add(&ex->generation, 1) == UINT32_MAX)
		atomic_fetch_add(&ex->generation, 1);
	return err;
}

static bool wants_crossmnt(const struct exp_export *e)
{
	for (unsigned i = 0; i < e->n_clients; i++)
		if (e->clients[i].opts.flags & (EXP_CROSSMNT | EXP_NOHIDE))
			return true;
	return false;
}

/* An export of the old set that still is the same directory: its cached descriptors stay warm. */
static struct vfs_export *reuse(const struct export_set *old, const struct exp_export *e,
				const struct open_export *now)
{
	const struct exp_export *was = old ? exp_table_by_path(old->table, e->path) : NULL;

	if (!was || was->id != e->id)
		return NULL;
	const struct open_export *o = &old->open[was->index];
	if (!o->exp || o->crossmnt != now->crossmnt || o->st.st_dev != now->st.st_dev ||
	    o->st.st_ino != now->st.st_ino)
		return NULL;
	vfs_export_ref(o->exp);
	return o->exp;
}

static unsigned open_flags(const struct exp_export *e, bool crossmnt)
{
	const struct exp_opts *opts = &e->clients[0].opts; /* fsid= is the same for all of them */

	return (crossmnt ? VFS_EXPORT_CROSSMNT : 0) |
	       (opts->has_fsid || opts->has_uuid ? VFS_EXPORT_FSID : 0);
}

static int open_one(struct exports *ex, const struct export_set *old, const struct exp_export *e,
		    struct open_export *o)
{
	const char *why = NULL;

	o->crossmnt = wants_crossmnt(e);
	if (stat(e->path, &o->st) < 0) {
		rn_err(ex->cfg.log, "export %s: %s", e->path, strerror(errno));
		return -errno;
	}
	o->exp = reuse(old, e, o);
	if (o->exp)
		return 0;
	int err = vfs_export_open(ex->cfg.vfs, e->path, e->id, ex->cfg.io_mode,
				  open_flags(e, o->crossmnt), &o->exp, &why);
	if (!err && !vfs_export_fs_known(o->exp))
		rn_notice(ex->cfg.log,
			  "export %s: its file system has no UUID, so clients must mount it again "
			  "when "
			  "its device number changes; fsid=NUMBER would stand for it",
			  e->path);
	if (err)
		rn_err(ex->cfg.log, "export %s: %s", e->path, why ? why : strerror(-err));
	return err;
}

static int set_open_all(struct exports *ex, struct export_set *set, const struct export_set *old)
{
	int first = 0;

	set->open = calloc(set->table->n_exports + 1, sizeof(set->open[0]));
	if (!set->open)
		return -ENOMEM;
	for (unsigned i = 0; i < set->table->n_exports; i++) {
		int err = open_one(ex, old, &set->table->exports[i], &set->open[i]);

		if (err && !first)
			first = err;
	}
	return first;
}

/* Builds a set; with must_be_whole any error fails it, else what is wrong is left out. */
static int set_build(struct exports *ex, const struct export_set *old, bool must_be_whole,
		     struct export_set **out)
{
	struct exp_resolver resolver;
	struct cfg_diags diags;
	struct export_set *set = calloc(1, sizeof(*set));
	int err = set ? 0 : -ENOMEM;

	if (err)
		return err;
	atomic_init(&set->refs, 1);
	cfg_diags_init(&diags);
	err = exp_table_load(&ex->cfg.load, &diags, &set->table);
	log_diags(ex->cfg.log, &diags);
	if (!err && must_be_whole && diags.errors)
		err = -EINVAL;
	cfg_diags_free(&diags);
	exp_resolver_system(&resolver);
	if (!err)
		err = exp_matcher_new(set->table, &resolver, NULL, &set->matcher);
	if (!err) {
		err = set_open_all(ex, set, old);
		if (err != -ENOMEM && !must_be_whole)
			err = 0;
	}
	if (err) {
		if (set->table)
			set_put(set);
		else
			free(set);
		return err;
	}
	*out = set;
	return 0;
}

int exports_new(const struct exports_config *cfg, struct exports **out)
{
	struct exports *ex = aligned_alloc(CACHE_LINE, sizeof(*ex));
	struct export_set *set;
	int err;

	if (!ex)
		return -ENOMEM;
	*ex = (struct exports){ .cfg = *cfg };
	for (unsigned i = 0; i < STRIPES; i++)
		pthread_mutex_init(&ex->stripe[i].lock, NULL);
	err = set_build(ex, NULL, cfg->load.strict, &set);
	if (!err) {
		err = set_use(ex, set);
		set_put(set);
	}
	if (err)
		exports_free(ex);
	else
		*out = ex;
	return err;
}

void exports_free(struct exports *ex)
{
	for (unsigned i = 0; i < STRIPES; i++) {
		view_put(ex->stripe[i].view);
		pthread_mutex_destroy(&ex->stripe[i].lock);
	}
	free(ex);
}

/* What the clients of an old set have lost: see struct vfs_exports_lost. */
struct loss {
	const struct export_set *old, *now;
};

/* NULL: it is gone, or another directory has its place. */
static const struct exp_export *what_is_left(const struct loss *l, const struct exp_export *was)
{
	const struct exp_export *is = exp_table_by_id(l->now->table, was->id);
	const struct open_export *a = &l->old->open[was->index], *b;

	if (!is)
		return NULL;
	b = &l->now->open[is->index];
	return b->exp && a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino ? is : NULL;
}

/* Are they for the same clients, whatever their options? Who is in a netgroup may have changed. */
static bool same_clients(const struct exp_export *a, const struct exp_export *b)
{
	if (a->n_clients != b->n_clients)
		return false;
	for (unsigned i = 0; i < a->n_clients; i++)
		if (a->clients[i].kind == EXP_CLIENT_NETGROUP ||
		    strcmp(a->clients[i].spec, b->clients[i].spec) != 0)
			return false;
	return true;
}

static bool is_lost(void *ctx, uint32_t id, const struct sockaddr *peer)
{
	const struct loss *l = ctx;
	const struct exp_export *was = exp_table_by_id(l->old->table, id), *is;
	const struct exp_opts *opts;

	if (!was || !l->old->open[was->index].exp)
		return false;
	is = what_is_left(l, was);
	if (!is)
		return true;
	return exp_match_wait(l->old->matcher, was, peer, &opts) == 0 &&
	       exp_match_wait(l->now->matcher, is, peer, &opts) == -EACCES;
}

/* Those that some client may have lost: their number. */
static unsigned find_lost(const struct loss *l, uint32_t *ids)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->old->table->n_exports; i++) {
		const struct exp_export *was = &l->old->table->exports[i];
		const struct exp_export *is = what_is_left(l, was);

		if (l->old->open[i].exp && !(is && same_clients(was, is)))
			ids[n++] = was->id;
	}
	return n;
}

/* Descriptors below exports that are gone, or that are another directory now, must not pin them. */
static void forget_gone(struct exports *ex, const struct export_set *old,
			const struct export_set *now)
{
	for (unsigned i = 0; i < old->table->n_exports; i++) {
		const struct exp_export *was = &old->table->exports[i];
		const struct exp_export *is = exp_table_by_id(now->table, was->id);

		if (old->open[i].exp && (!is || now->open[is->index].exp != old->open[i].exp))
			vfs_forget_export(ex->cfg.vfs, was->id);
	}
}

/* Submounts that are not where they were. */
static void check_submounts(const struct exports *ex)
{
	struct vfs_mount_table t;

	if (vfs_mount_table_load(&t) != 0)
		return;
	vfs_mounts_changed(ex->cfg.vfs, &t);
	vfs_mount_table_free(&t);
}

int exports_reload(struct exports *ex,
		   void (*changed)(void *ctx, const struct vfs_exports_lost *lost), void *ctx)
{
	struct set_view *old = view_get(ex);
	struct loss loss = { .old = old->set };
	struct vfs_exports_lost lost = { .lost = is_lost, .ctx = &loss };
	uint32_t *ids = calloc(old->set->table->n_exports + 1, sizeof(*ids));
	struct export_set *now = NULL;
	int err = ids ? set_build(ex, old->set, true, &now) : -ENOMEM;

	if (!err) {
		err = set_use(ex, now);
		if (!err) {
			loss.now = now;
			lost.ids = ids;
			lost.n = find_lost(&loss, ids);
			changed(ctx, &lost);
			forget_gone(ex, old->set, now);
			check_submounts(ex);
		}
		set_put(now);
	}
	view_put(old);
	free(ids);
	return err;
}

static void to_access(const struct exp_opts *opts, struct vfs_access *a)
{
	uint32_t sys = 0, none = 0, f;

	*a = (struct vfs_access){ .anonuid = opts->anonuid, .anongid = opts->anongid };
	if (exp_opts_flavor(opts, EXP_AUTH_SYS, &sys))
		a->flags |= VFS_SEC_SYS;
	if (exp_opts_flavor(opts, EXP_AUTH_NONE, &none))
		a->flags |= VFS_SEC_NONE;
	if ((a->flags & VFS_SEC_NONE) && !(none & EXP_RW))
		a->flags |= VFS_RO_NONE;
	f = a->flags & VFS_SEC_SYS ? sys : none;
	a->flags |= (f & EXP_RW ? 0 : VFS_RO) | (f & EXP_ROOT_SQUASH ? VFS_ROOT_SQUASH : 0) |
		    (f & EXP_ALL_SQUASH ? VFS_ALL_SQUASH : 0) | (f & EXP_ASYNC ? VFS_ASYNC : 0) |
		    (f & EXP_INSECURE ? 0 : VFS_SECURE) |
		    (f & (EXP_CROSSMNT | EXP_NOHIDE) ? VFS_CROSSMNT : 0);
}

/* What peer may do with export e of set; takes a reference on success. */
static int admit(struct export_set *set, const struct exp_export *e, const struct sockaddr *peer,
		 struct vfs_export **exp, struct vfs_access *access)
{
	struct vfs_export *open = set->open[e->index].exp;
	const struct exp_opts *opts;
	int err;

	if (!open)
		return -ESTALE;
	err = exp_match(set->matcher, e, peer, &opts);
	if (err)
		return err;
	if (opts->mountpoint && exp_check_mountpoint(opts->mountpoint) < 0)
		return -ESTALE;
	to_access(opts, access);
	vfs_export_ref(open);
	*exp = open;
	return 0;
}

int exports_admit(struct exports *ex, const struct sockaddr *peer)
{
	struct set_view *view = view_get(ex);
	const struct export_set *set = view->set;
	const struct exp_opts *opts;
	int err = -EACCES;

	for (unsigned i = 0; err && i < set->table->n_exports; i++) {
		const int this = exp_match(set->matcher, &set->table->exports[i], peer, &opts);

		if (this == 0 || this == -EAGAIN)
			err = this;
	}
	view_put(view);
	return err;
}

uint32_t exports_generation(struct exports *ex)
{
	return atomic_load_explicit(&ex->generation, memory_order_acquire);
}

static int view_by_id(void *ctx, uint32_t id, const struct sockaddr *peer, struct vfs_export **exp,
		      struct vfs_access *access)
{
	struct set_view *view = view_get(ctx);
	const struct exp_export *e = exp_table_by_id(view->set->table, id);
	int err = e ? admit(view->set, e, peer, exp, access) : -ESTALE;

	view_put(view);
	return err;
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

static int view_by_path(void *ctx, const char *path, const struct sockaddr *peer,
			struct vfs_export **exp, struct vfs_access *access, const char **rest)
{
	struct set_view *view = view_get(ctx);
	struct export_set *set = view->set;
	const struct exp_export *best = NULL;
	size_t longest = 0;
	int err = -ENOENT;

	for (unsigned i = 0; path[0] == '/' && i < set->table->n_exports; i++) {
		size_t n = prefix_length(set->table->exports[i].path, path);

		if (n > longest) {
			longest = n;
			best = &set->table->exports[i];
		}
	}
	if (best) {
		*rest = path + longest + strspn(path + longest, "/");
		err = admit(set, best, peer, exp, access);
		if (err == -ESTALE)
			err = -ENOENT;
	}
	view_put(view);
	return err;
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
	struct set_view *view = view_get(ctx);
	struct list_call call = { .set = view->set, .each = each, .arg = arg };

	for (unsigned i = 0; i < call.set->table->n_exports; i++)
		if (call.set->open[i].exp && !list_one(&call, &call.set->table->exports[i]))
			break;
	view_put(view);
}

static void view_each(void *ctx, bool (*each)(void *arg, struct vfs_export *exp), void *arg)
{
	struct set_view *view = view_get(ctx);
	struct export_set *set = view->set;

	for (unsigned i = 0; i < set->table->n_exports; i++)
		if (set->open[i].exp && !each(arg, set->open[i].exp))
			break;
	view_put(view);
}

struct vfs_exports exports_view(struct exports *ex)
{
	return (struct vfs_exports){ .by_id = view_by_id,
				     .by_path = view_by_path,
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
	struct set_view *view = view_get(ex);
	struct export_set *set = view->set;
	unsigned served = 0;

	for (unsigned i = 0; i < set->table->n_exports; i++) {
		if (!set->open[i].exp)
			continue;
		log_one(ex->cfg.log, &set->table->exports[i]);
		served++;
	}
	if (!served)
		rn_warn(ex->cfg.log, "no directory is exported: name one in %s",
			ex->cfg.load.file ? ex->cfg.load.file : "an exports file");
	view_put(view);
}
