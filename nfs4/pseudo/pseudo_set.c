/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the exports of a set, and sorts them for its tree. */
#include "nfs4/pseudo/pseudo_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/nested.h"
#include "nfs4/pseudo/pseudo_tree.h"

struct gathering {
	struct nfs4_pseudo_set *set;
	uint32_t room;
	bool no_memory;
};

static bool pseudo_set_make_room(struct gathering *g)
{
	struct nfs4_pseudo_export *more;

	if (g->set->nexports < g->room)
		return true;
	g->room = g->room ? 2 * g->room : 16;
	more = reallocarray(g->set->export, g->room, sizeof(*more));
	if (more)
		g->set->export = more;
	return more;
}

static bool pseudo_set_gather(void *arg, struct vfs_export *exp)
{
	struct gathering *g = arg;
	struct nfs4_pseudo_export *e;

	g->no_memory = !pseudo_set_make_room(g);
	if (g->no_memory)
		return false;
	e = &g->set->export[g->set->nexports++];
	*e = (struct nfs4_pseudo_export){
		.id = vfs_export_id(exp),
		.dir = NFS4_PSEUDO_NONE,
		.path = strdup(vfs_export_path(exp)),
		.real_path = strdup(vfs_export_real_path(exp)),
	};
	g->no_memory = !e->path || !e->real_path;
	return !g->no_memory;
}

/* With an export of fsid=0 paths begin at that export; exports outside of it get an empty path. */
static void cut_paths(struct nfs4_pseudo_set *set, const struct rn_logger *log)
{
	char *root = NULL;

	for (uint32_t i = 0; i < set->nexports && !root; i++) {
		if (set->export[i].id == 0)
			root = set->export[i].path;
	}
	for (uint32_t i = 0; root && i < set->nexports; i++) {
		char *path = set->export[i].path;
		const char *rest = vfs_path_below(path, root);

		if (path == root)
			continue;
		if (!rest)
			rn_notice(log,
				  "export %s: hidden from NFSv4 clients, whose root is %s (fsid=0)",
				  path, root);
		/* The slash before rest stays. */
		memmove(path, rest ? rest - 1 : "", rest ? strlen(rest) + 2 : 1);
	}
	if (root)
		strcpy(root, "/");
}

/* Compares byte by byte, with a slash before all other characters: a directory's contents follow
 * it. */
static int pseudo_compare_paths(const void *a, const void *b)
{
	const unsigned char *p = (const void *)((const struct nfs4_pseudo_export *)a)->path;
	const unsigned char *q = (const void *)((const struct nfs4_pseudo_export *)b)->path;

	while (*p && *p == *q) {
		p++;
		q++;
	}
	if (*p == *q)
		return 0;
	if (*p == '\0' || *q == '\0')
		return *p ? 1 : -1;
	if (*p == '/' || *q == '/')
		return *p == '/' ? -1 : 1;
	return *p < *q ? -1 : 1;
}

int nfs4_pseudo_set_new(const struct vfs_exports *exports, const struct rn_logger *log,
			uint64_t change, struct nfs4_pseudo_set **out)
{
	struct nfs4_pseudo_set *set = calloc(1, sizeof(*set));
	struct gathering g = { .set = set };
	int rc = 0;

	if (!set)
		return -ENOMEM;
	atomic_init(&set->refs, 1);
	set->change = change;
	exports->each(exports->ctx, pseudo_set_gather, &g);
	if (g.no_memory)
		rc = -ENOMEM;
	if (rc == 0) {
		cut_paths(set, log);
		if (set->nexports > 0)
			qsort(set->export, set->nexports, sizeof(set->export[0]),
			      pseudo_compare_paths);
		rc = nfs4_pseudo_tree_build(set);
	}
	if (rc != 0)
		nfs4_pseudo_set_put(set);
	else
		*out = set;
	return rc;
}

void nfs4_pseudo_set_put(struct nfs4_pseudo_set *set)
{
	if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
		return;
	for (uint32_t i = 0; i < set->nexports; i++) {
		free(set->export[i].path);
		free(set->export[i].real_path);
	}
	free(set->export);
	free(set->dir);
	free(set->kid);
	free(set->by_id);
	free(set);
}

uint32_t nfs4_pseudo_dir_of(const struct nfs4_pseudo_set *set, uint32_t export_id)
{
	for (uint32_t i = 0; i < set->nexports; i++) {
		if (set->export[i].id == export_id)
			return set->export[i].dir;
	}
	return NFS4_PSEUDO_NONE;
}
