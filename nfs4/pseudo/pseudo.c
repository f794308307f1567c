/* SPDX-License-Identifier: BSD-2-Clause */
/* The pseudo file system in force, and a caller's view of it. Lock order: nfs4_pseudo.lock is a
 * leaf. It guards the pointer to the current set; each reader takes a reference of the set. */
#include "nfs4/pseudo/pseudo.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/pseudo/pseudo_set.h"

/* A handle: version (other than any of vfs/fs/handle.h), length of the id, zeros, and the id. */
#define FH_VERSION 2u
#define FH_HEAD 4u
#define FH_LEN (FH_HEAD + 8u)

#define FSID 0x7073657564660000u /* differs from any export's but for a chance of 2^-64 */

struct nfs4_pseudo {
	pthread_mutex_t lock; /* guards set; a leaf */
	struct nfs4_pseudo_set *set;
};

/* Returns the set in force, with a reference for the caller. */
static struct nfs4_pseudo_set *nfs4_pseudo_get(struct nfs4_server *s)
{
	struct nfs4_pseudo *ps = s->pseudo;
	struct nfs4_pseudo_set *set;

	pthread_mutex_lock(&ps->lock);
	set = ps->set;
	atomic_fetch_add(&set->refs, 1);
	pthread_mutex_unlock(&ps->lock);
	return set;
}

/* The time in nanoseconds, or before + 1 if the clock has not advanced. */
static uint64_t next_change(uint64_t before)
{
	uint64_t now = rn_wall_ns();

	return now > before ? now : before + 1;
}

int nfs4_pseudo_new(struct nfs4_server *s)
{
	struct nfs4_pseudo *ps = calloc(1, sizeof(*ps));
	int rc;

	if (!ps)
		return -ENOMEM;
	rc = nfs4_pseudo_set_new(&s->cfg.exports, s->cfg.log, next_change(0), &ps->set);
	if (rc < 0) {
		free(ps);
		return rc;
	}
	pthread_mutex_init(&ps->lock, NULL);
	s->pseudo = ps;
	return 0;
}

void nfs4_pseudo_free(struct nfs4_server *s)
{
	if (!s->pseudo)
		return;
	nfs4_pseudo_set_put(s->pseudo->set);
	pthread_mutex_destroy(&s->pseudo->lock);
	free(s->pseudo);
	s->pseudo = NULL;
}

int nfs4_pseudo_changed(struct nfs4_server *s)
{
	struct nfs4_pseudo *ps = s->pseudo;
	struct nfs4_pseudo_set *old = nfs4_pseudo_get(s), *now;
	int rc = nfs4_pseudo_set_new(&s->cfg.exports, s->cfg.log, next_change(old->change), &now);

	if (rc == 0) {
		pthread_mutex_lock(&ps->lock);
		ps->set = now;
		pthread_mutex_unlock(&ps->lock);
		nfs4_pseudo_set_put(old); /* the pointer's own reference */
	}
	nfs4_pseudo_set_put(old);
	return rc;
}

static void object_of_dir(const struct nfs4_pseudo_set *set, uint32_t dir, struct nfs4_object *out)
{
	uint64_t id = set->dir[dir].id, be = htobe64(id);

	nfs4_object_clear(out);
	*out = (struct nfs4_object){ .kind = NFS4_PSEUDO, .type = S_IFDIR, .pseudo_id = id };
	out->fh.len = FH_LEN;
	out->fh.data[0] = FH_VERSION;
	out->fh.data[1] = sizeof(be);
	memcpy(out->fh.data + FH_HEAD, &be, sizeof(be));
}

bool nfs4_pseudo_is_fh(const struct vfs_fh *fh)
{
	return fh->len > 0 && fh->data[0] == FH_VERSION;
}

/* 0 or -errno; -RN_EUNNAMED: not known yet, after a wait. */
static int may_use(struct nfs4_compound *c, uint32_t export_id)
{
	const struct vfs_exports *exports = &c->server->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&c->req->conn->peer;
	struct vfs_access access;
	struct vfs_export *exp;
	int rc;

	do
		rc = exports->by_id(exports->ctx, export_id, peer, &exp, &access);
	while (nfs4_await(c, rc));
	if (rc == 0)
		vfs_export_put(exp);
	return rc;
}

/* The root's status before its exports are looked at. No export needs to admit the caller, but a
 * host of which nothing is known yet may be a stranger. */
static int root_visible(const struct nfs4_compound *c)
{
	return c->req->admission == RPC_UNKNOWN ? NFS4ERR_DELAY : NFS4_OK;
}

/* Checks whether a directory leads to an export that the caller may use. The root is visible to
 * all known hosts. NFS4_OK, NFS4ERR_NOENT, or NFS4ERR_DELAY: not known yet. */
static int visible(struct nfs4_compound *c, const struct nfs4_pseudo_set *set, uint32_t dir)
{
	const struct nfs4_pseudo_dir *d = &set->dir[dir];
	int status = dir == 0 ? root_visible(c) : NFS4ERR_NOENT;

	for (uint32_t i = 0; status != NFS4_OK && i < d->nexports; i++) {
		const int rc = may_use(c, set->export[d->first_export + i].id);

		if (rc == 0 || rc == -RN_ESILENT)
			status = NFS4_OK;
		else if (rc == -RN_EUNNAMED)
			status = NFS4ERR_DELAY;
	}
	return status;
}

/* Sets out to the export that replaces the directory, for callers who may use it; else to the
 * directory. */
static int pseudo_resolve(struct nfs4_compound *c, const struct nfs4_pseudo_set *set, uint32_t dir,
			  struct nfs4_object *out)
{
	uint32_t e = set->dir[dir].export;
	int status = NFS4ERR_STALE;

	if (e != NFS4_PSEUDO_NONE)
		status = nfs4_object_in_export(c, set->export[e].id, NULL, out);
	if (status != NFS4ERR_STALE)
		return status;
	status = visible(c, set, dir);
	if (status == NFS4_OK)
		object_of_dir(set, dir, out);
	return status;
}

int nfs4_pseudo_root(struct nfs4_compound *c, struct nfs4_object *out)
{
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);
	const int status = pseudo_resolve(c, set, 0, out);

	nfs4_pseudo_set_put(set);
	return status;
}

static int pseudo_by_fh(struct nfs4_compound *c, const struct vfs_fh *fh, struct nfs4_object *out)
{
	static const uint8_t head[FH_HEAD] = { FH_VERSION, 8, 0, 0 };
	struct nfs4_pseudo_set *set;
	uint64_t be;
	uint32_t dir;
	int status = NFS4ERR_STALE;

	if (fh->len != FH_LEN || memcmp(fh->data, head, FH_HEAD) != 0)
		return NFS4ERR_BADHANDLE;
	memcpy(&be, fh->data + FH_HEAD, sizeof(be));
	set = nfs4_pseudo_get(c->server);
	dir = nfs4_pseudo_find(set, be64toh(be));
	if (dir != NFS4_PSEUDO_NONE)
		status = visible(c, set, dir);
	if (status == NFS4_OK)
		object_of_dir(set, dir, out);
	nfs4_pseudo_set_put(set);
	return status == NFS4ERR_NOENT ? NFS4ERR_STALE : status;
}

int nfs4_object_by_fh(struct nfs4_compound *c, struct nfs4_object *p, const struct vfs_fh *fh)
{
	uint32_t id;
	int rc;

	if (nfs4_pseudo_is_fh(fh))
		return pseudo_by_fh(c, fh, p);
	rc = vfs_fh_export_id(c->server->cfg.vfs, fh, &id);
	return rc < 0 ? nfs4_status(c->minor, rc) : nfs4_object_in_export(c, id, fh, p);
}

int nfs4_pseudo_lookup(struct nfs4_compound *c, const struct nfs4_object *dir, const char *name,
		       uint32_t len, struct nfs4_object *out)
{
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);
	uint32_t d = nfs4_pseudo_find(set, dir->pseudo_id), kid;
	int status = d == NFS4_PSEUDO_NONE ? NFS4ERR_STALE : NFS4ERR_NOENT;

	if (status == NFS4ERR_NOENT) {
		kid = nfs4_pseudo_find_kid(set, d, name, len);
		if (kid != NFS4_PSEUDO_NONE)
			status = pseudo_resolve(c, set, kid, out);
	}
	nfs4_pseudo_set_put(set);
	return status;
}

int nfs4_pseudo_parent(struct nfs4_compound *c, const struct nfs4_object *dir,
		       struct nfs4_object *out)
{
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);
	uint32_t d = nfs4_pseudo_find(set, dir->pseudo_id);
	int status = NFS4_OK;

	if (d == NFS4_PSEUDO_NONE)
		status = NFS4ERR_STALE;
	else if (d == 0)
		status = NFS4ERR_NOENT;
	else
		status = pseudo_resolve(c, set, set->dir[d].parent, out);
	nfs4_pseudo_set_put(set);
	return status;
}

/* The directory that holds the export: the result of LOOKUPP from its root. */
static int nfs4_pseudo_above_export(struct nfs4_compound *c, uint32_t export_id,
				    struct nfs4_object *out)
{
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);
	uint32_t d = nfs4_pseudo_dir_of(set, export_id);
	int status = NFS4ERR_NOENT;

	if (d != NFS4_PSEUDO_NONE && d != 0)
		status = pseudo_resolve(c, set, set->dir[d].parent, out);
	nfs4_pseudo_set_put(set);
	return status;
}

void nfs4_pseudo_path_of(struct nfs4_compound *c, uint32_t export_id, char *path, size_t size)
{
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);

	*path = '\0';
	for (uint32_t i = 0; i < set->nexports; i++) {
		if (set->export[i].id == export_id)
			snprintf(path, size, "%s", set->export[i].path);
	}
	nfs4_pseudo_set_put(set);
}

static void fill_attr(const struct nfs4_pseudo_set *set, uint32_t dir, struct vfs_attr *out)
{
	const struct nfs4_pseudo_dir *d = &set->dir[dir];
	struct timespec when = { .tv_sec = (time_t)(set->change / 1000000000u),
				 .tv_nsec = (long)(set->change % 1000000000u) };

	*out = (struct vfs_attr){
		.mode = S_IFDIR | 0555,
		.nlink = 2 + d->nkids,
		.size = 4096,
		.fsid = FSID,
		.fileid = d->id,
		.atime = when,
		.mtime = when,
		.ctime = when,
		.change = set->change,
		.blksize = 4096,
	};
}

int nfs4_pseudo_attr(struct nfs4_compound *c, const struct nfs4_object *dir, struct vfs_attr *out)
{
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);
	uint32_t d = nfs4_pseudo_find(set, dir->pseudo_id);

	if (d != NFS4_PSEUDO_NONE)
		fill_attr(set, d, out);
	nfs4_pseudo_set_put(set);
	return d == NFS4_PSEUDO_NONE ? NFS4ERR_STALE : NFS4_OK;
}

/* Flavours that the export accepts, as bits by enum vfs_sec; 0 if the caller may not use it. */
static unsigned flavors_of(struct nfs4_compound *c, uint32_t export_id)
{
	const struct vfs_exports *exports = &c->server->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&c->req->conn->peer;
	struct vfs_access access;
	struct vfs_export *exp;
	unsigned bits = 0;

	if (exports->by_id(exports->ctx, export_id, peer, &exp, &access) < 0)
		return 0;
	vfs_export_put(exp);
	for (unsigned i = 0; i < access.nsecs; i++)
		bits |= 1u << access.secs[i].sec;
	return bits;
}

void nfs4_pseudo_flavors(struct nfs4_compound *c, const struct nfs4_object *dir,
			 struct vfs_access *all)
{
	/* Clients take the first that they have, so AUTH_NONE is the last. */
	static const enum vfs_sec order[VFS_SECS] = { VFS_SEC_SYS, VFS_SEC_KRB5, VFS_SEC_KRB5I,
						      VFS_SEC_KRB5P, VFS_SEC_NONE };
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);
	const uint32_t d = nfs4_pseudo_find(set, dir->pseudo_id);
	unsigned bits = 0;

	for (uint32_t i = 0; d != NFS4_PSEUDO_NONE && i < set->dir[d].nexports; i++)
		bits |= flavors_of(c, set->export[set->dir[d].first_export + i].id);
	nfs4_pseudo_set_put(set);
	if (bits == 0)
		bits = 1u << VFS_SEC_SYS | 1u << VFS_SEC_NONE;
	for (unsigned i = 0; i < VFS_SECS; i++) {
		if (bits & 1u << order[i])
			vfs_access_accept(all, order[i], 0);
	}
}

/* Calls each for one entry if the caller may see it. False: each wants no more. */
static bool each_kid(struct nfs4_compound *c, const struct nfs4_pseudo_set *set, uint32_t kid,
		     bool (*each)(void *arg, const struct nfs4_pseudo_entry *e), void *arg)
{
	const struct nfs4_pseudo_dir *d = &set->dir[kid];
	struct nfs4_object object = { .kind = NFS4_NOWHERE };
	struct nfs4_pseudo_entry e = {
		.name = d->name,
		.len = d->len,
		.cookie = d->id,
		.mounted_on = d->id,
		.object = &object,
	};
	bool more = true;

	e.status = pseudo_resolve(c, set, kid, &object);
	if (e.status == NFS4_OK)
		e.status = nfs4_object_usable(&object);
	if (e.status != NFS4ERR_NOENT)
		more = each(arg, &e);
	nfs4_object_clear(&object);
	return more;
}

int nfs4_pseudo_each(struct nfs4_compound *c, const struct nfs4_object *dir, uint64_t cookie,
		     bool (*each)(void *arg, const struct nfs4_pseudo_entry *e), void *arg,
		     bool *eof)
{
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);
	uint32_t d = nfs4_pseudo_find(set, dir->pseudo_id);
	bool more = true;

	for (uint32_t i = 0; d != NFS4_PSEUDO_NONE && more && i < set->dir[d].nkids; i++) {
		uint32_t kid = set->kid[set->dir[d].first_kid + i];

		if (set->dir[kid].id > cookie)
			more = each_kid(c, set, kid, each, arg);
	}
	*eof = more;
	nfs4_pseudo_set_put(set);
	return d == NFS4_PSEUDO_NONE ? NFS4ERR_STALE : NFS4_OK;
}

/* Crossing between exports. */

/* An export that begins at an entry. */
struct crossing {
	struct vfs_export *exp; /* a reference, if rc is 0 */
	struct vfs_access access;
	int rc;
};

/* An export that is not for this caller leaves him in the outer one. */
static bool nfs4_cross_take_nested(void *arg, const struct vfs_nested *n)
{
	struct crossing *x = arg;

	if (n->rc == -EACCES || n->rc == -ESTALE)
		return false;
	x->rc = n->rc;
	if (n->rc == 0) {
		x->exp = n->exp;
		x->access = n->access;
		vfs_export_ref(n->exp);
	}
	return true;
}

/* False: its root is gone, and the caller stays in the outer one. */
static bool nfs4_cross_into(struct nfs4_compound *c, const struct crossing *x,
			    struct nfs4_object *out, int *status)
{
	*status = nfs4_object_of_nested(c, x->exp, &x->access, out);
	vfs_export_put(x->exp);
	if (*status != NFS4ERR_STALE)
		return true;
	*status = nfs4_object_enter(c, &c->current);
	return *status != NFS4_OK;
}

bool nfs4_cross_down(struct nfs4_compound *c, const struct nfs_entry *e, struct nfs4_object *out,
		     int *status)
{
	const struct vfs_exports *exports = &c->server->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&c->req->conn->peer;
	struct crossing x;
	int rc;

	do {
		rc = nfs_nested_at(exports, &c->current.ctx, peer, e, nfs4_cross_take_nested, &x);
		if (rc == 0)
			rc = nfs_governed(exports, &c->current.ctx, peer, e->found);
		else if (rc > 0 && x.rc == 0)
			return nfs4_cross_into(c, &x, out, status);
		else if (rc > 0)
			rc = x.rc;
	} while (nfs4_await(c, rc));
	if (rc == 0)
		return false;
	/* The name is there, and leads to what the caller may not enter. */
	*status = rc == -ESTALE ? NFS4ERR_ACCESS : nfs4_status(c->minor, rc);
	return true;
}

/* The innermost export that contains path, among those with a path shorter than shorter_than; or
 * NULL. */
static const struct nfs4_pseudo_export *around(const struct nfs4_pseudo_set *set, const char *path,
					       size_t shorter_than)
{
	const struct nfs4_pseudo_export *best = NULL;
	size_t best_len = 0;

	for (uint32_t i = 0; i < set->nexports; i++) {
		const struct nfs4_pseudo_export *e = &set->export[i];
		size_t len = strlen(e->real_path);

		if (e->dir != NFS4_PSEUDO_NONE && len < shorter_than && len > best_len &&
		    vfs_path_below(path, e->real_path)) {
			best = e;
			best_len = len;
		}
	}
	return best;
}

/* The directory of an outer export that contains the entry at path. */
static int parent_in(struct nfs4_compound *c, const struct nfs4_pseudo_export *outer,
		     const char *path, struct nfs4_object *out)
{
	const char *rel = vfs_path_below(path, outer->real_path);
	const char *slash = strrchr(rel, '/');
	struct nfs4_object p = { .kind = NFS4_NOWHERE };
	struct vfs_node *n;
	int status = nfs4_object_in_export(c, outer->id, NULL, &p);

	if (status != NFS4_OK)
		return status;
	if (nfs_walk_down(&p.ctx, rel, slash ? (size_t)(slash - rel) : 0, &n) < 0) {
		nfs4_object_clear(&p);
		return NFS4ERR_STALE;
	}
	nfs4_object_move(&p, n);
	nfs4_object_take(out, &p);
	return NFS4_OK;
}

static int find_parent(struct nfs4_compound *c, const struct nfs4_pseudo_set *set, const char *path,
		       struct nfs4_object *out)
{
	const struct nfs4_pseudo_export *e = around(set, path, SIZE_MAX);
	int status = NFS4ERR_STALE;

	while (e && status == NFS4ERR_STALE) {
		status = parent_in(c, e, path, out);
		e = around(set, path, strlen(e->real_path));
	}
	return status;
}

int nfs4_cross_up(struct nfs4_compound *c, struct nfs4_object *root, struct nfs4_object *out)
{
	struct nfs4_pseudo_set *set = nfs4_pseudo_get(c->server);
	const char *path = vfs_export_real_path(root->ctx.exp);
	int status = NFS4ERR_STALE;

	if (nfs4_pseudo_dir_of(set, root->export_id) == 0)
		status = NFS4ERR_NOENT; /* the root of NFSv4 */
	else
		status = find_parent(c, set, path, out);
	nfs4_pseudo_set_put(set);
	return status == NFS4ERR_STALE ? nfs4_pseudo_above_export(c, root->export_id, out) : status;
}

uint64_t nfs4_mounted_on(struct nfs4_compound *c, const struct nfs4_object *p, uint64_t fileid)
{
	struct nfs4_pseudo_set *set;
	struct nfs4_object above = { .kind = NFS4_NOWHERE };
	uint64_t id = fileid;
	uint32_t dir;

	if (!vfs_node_is_root(p->node))
		return vfs_mounted_on(p->node, fileid);
	set = nfs4_pseudo_get(c->server);
	dir = nfs4_pseudo_dir_of(set, p->export_id);
	if (dir != NFS4_PSEUDO_NONE && dir != 0) {
		id = set->dir[dir].id;
		if (find_parent(c, set, vfs_export_real_path(p->ctx.exp), &above) == NFS4_OK)
			id = vfs_mounted_on(p->node, fileid);
		nfs4_object_clear(&above);
		nfs4_object_enter(c, p);
	}
	nfs4_pseudo_set_put(set);
	return id;
}
