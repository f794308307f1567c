/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Crossing between exports. The directory that a nested export covers is looked up whenever its
 * name is met, as root and without following symbolic links. So nothing must be updated when local
 * processes rename directories.
 */
#include "nfs4/pseudo/cross.h"

#include <string.h>

#include "nfs4/pseudo/pseudo.h"
#include "nfs4/pseudo/pseudo_now.h"
#include "nfs4/server.h"

/* Replaces *n by its entry with that name. */
static int step(struct vfs_ctx *ctx, struct vfs_node **n, const char *name, size_t len)
{
	struct vfs_node *next;
	int rc = vfs_lookup(ctx, *n, name, (uint32_t)len, &next, NULL);

	if (rc == 0) {
		vfs_node_put(*n);
		*n = next;
	}
	return rc;
}

/* The node at the first len bytes of a path below the root of ctx's export. */
static int walk(const struct vfs_ctx *ctx, const char *rel, size_t len, struct vfs_node **out)
{
	struct vfs_ctx root = *ctx;
	const char *end = rel + len;
	struct vfs_node *n;
	int rc;

	root.cred = (struct vfs_cred){ 0 };
	rc = vfs_root(&root, &n);
	if (rc < 0)
		return rc;
	while (rel < end && rc == 0) {
		size_t left = (size_t)(end - rel);
		const char *slash = memchr(rel, '/', left);
		size_t name = slash ? (size_t)(slash - rel) : left;

		rc = step(&root, &n, rel, name);
		rel += name + (slash ? 1 : 0);
	}
	if (rc < 0)
		vfs_node_put(n);
	else
		*out = n;
	return rc;
}

static bool same_fh(const struct vfs_fh *a, const struct vfs_fh *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static bool covers(const struct nfs4_pseudo_export *e, const struct nfs4_place *dir,
		   const struct vfs_fh *found)
{
	const char *rel = nfs4_path_below(e->real_path, vfs_export_real_path(dir->ctx.exp));
	struct vfs_node *n;
	bool same;

	if (!rel || e->id == dir->export_id || walk(&dir->ctx, rel, strlen(rel), &n) < 0)
		return false;
	same = same_fh(vfs_node_fh(n), found);
	vfs_node_put(n);
	return same;
}

static int compare_name(const char *base, const char *name, uint32_t len)
{
	int d = strncmp(base, name, len);

	return d != 0 ? d : base[len] != '\0';
}

/* The first nested export with a last name that is not less than name. */
static uint32_t lower_bound(const struct nfs4_pseudo_set *set, const char *name, uint32_t len)
{
	uint32_t low = 0, high = set->nnested;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (compare_name(set->export[set->nested[mid]].base, name, len) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool cross_in(struct nfs4_compound *c, const struct nfs4_pseudo_set *set,
		     const struct nfs4_step *step, struct nfs4_place *out, int *status)
{
	for (uint32_t i = lower_bound(set, step->name, step->len); i < set->nnested; i++) {
		const struct nfs4_pseudo_export *e = &set->export[set->nested[i]];

		if (compare_name(e->base, step->name, step->len) != 0)
			break;
		if (!covers(e, &c->current, step->found))
			continue;
		*status = nfs4_place_of_export(c, e->id, out);
		if (*status != NFS4ERR_STALE)
			return true;
	}
	return false;
}

bool nfs4_cross_down(struct nfs4_compound *c, const struct nfs4_step *step, struct nfs4_place *out,
		     int *status)
{
	struct nfs4_pseudo_set *set;
	bool crossed;

	if (!atomic_load_explicit(&c->server->pseudo->any_nested, memory_order_relaxed))
		return false;
	set = nfs4_pseudo_get(c->server);
	crossed = cross_in(c, set, step, out, status);
	nfs4_pseudo_set_put(set);
	return crossed;
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
		    nfs4_path_below(path, e->real_path)) {
			best = e;
			best_len = len;
		}
	}
	return best;
}

/* The directory of an outer export that contains the entry at path. */
static int parent_in(struct nfs4_compound *c, const struct nfs4_pseudo_export *outer,
		     const char *path, struct nfs4_place *out)
{
	const char *rel = nfs4_path_below(path, outer->real_path);
	const char *slash = strrchr(rel, '/');
	struct nfs4_place p = { .kind = NFS4_NOWHERE };
	struct vfs_node *n;
	int status = nfs4_place_of_export(c, outer->id, &p);

	if (status != NFS4_OK)
		return status;
	if (walk(&p.ctx, rel, slash ? (size_t)(slash - rel) : 0, &n) < 0) {
		nfs4_place_clear(&p);
		return NFS4ERR_STALE;
	}
	nfs4_place_move(&p, n);
	nfs4_place_take(out, &p);
	return NFS4_OK;
}

static int find_parent(struct nfs4_compound *c, const struct nfs4_pseudo_set *set, const char *path,
		       struct nfs4_place *out)
{
	const struct nfs4_pseudo_export *e = around(set, path, SIZE_MAX);
	int status = NFS4ERR_STALE;

	while (e && status == NFS4ERR_STALE) {
		status = parent_in(c, e, path, out);
		e = around(set, path, strlen(e->real_path));
	}
	return status;
}

int nfs4_cross_up(struct nfs4_compound *c, struct nfs4_place *root, struct nfs4_place *out)
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

uint64_t nfs4_mounted_on(struct nfs4_compound *c, const struct nfs4_place *p, uint64_t fileid)
{
	struct nfs4_pseudo_set *set;
	struct nfs4_place above = { .kind = NFS4_NOWHERE };
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
		nfs4_place_clear(&above);
	}
	nfs4_pseudo_set_put(set);
	return id;
}
