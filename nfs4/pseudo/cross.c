/* SPDX-License-Identifier: BSD-2-Clause */
/* Crossing between exports. */
#include "nfs4/pseudo/cross.h"

#include <errno.h>
#include <string.h>

#include "nfs4/pseudo/pseudo.h"
#include "nfs4/pseudo/pseudo_now.h"
#include "nfs4/nfs4_private.h"

struct crossing {
	struct nfs4_compound *c;
	struct nfs4_place *out;
	int status;
};

/* An export that is not for this caller leaves him in the outer one. */
static bool cross_into(void *arg, struct vfs_export *exp)
{
	struct crossing *x = arg;

	x->status = nfs4_place_of_export(x->c, vfs_export_id(exp), x->out);
	return x->status != NFS4ERR_STALE;
}

bool nfs4_cross_down(struct nfs4_compound *c, const struct nfs_entry *e, struct nfs4_place *out,
		     int *status)
{
	const struct vfs_exports *exports = &c->server->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&c->req->conn->peer;
	struct crossing x = { .c = c, .out = out };
	int rc = nfs_nested_at(exports, &c->current.ctx, peer, e, cross_into, &x);

	if (rc == 0)
		rc = nfs_governed(exports, &c->current.ctx, peer, e->found);
	if (rc == 0)
		return false;
	/* The name is there, and leads to what the caller may not enter. */
	*status = rc == -ESTALE ? NFS4ERR_ACCESS : rc < 0 ? nfs4_status(c->minor, rc) : x.status;
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
		     const char *path, struct nfs4_place *out)
{
	const char *rel = vfs_path_below(path, outer->real_path);
	const char *slash = strrchr(rel, '/');
	struct nfs4_place p = { .kind = NFS4_NOWHERE };
	struct vfs_node *n;
	int status = nfs4_place_of_export(c, outer->id, &p);

	if (status != NFS4_OK)
		return status;
	if (nfs_walk_down(&p.ctx, rel, slash ? (size_t)(slash - rel) : 0, &n) < 0) {
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
