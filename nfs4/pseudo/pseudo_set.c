/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the exports of a set, sorts them, and builds the directories from their paths. */
#include "nfs4/pseudo/pseudo_set.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/nested.h"

#define ROOT_ID 3u /* lower values are cookies that READDIR must not use */

/* The id of an entry: a hash of its directory's id and its name, under a fixed key, so that it
 * never changes. */
static uint64_t kid_id(uint64_t parent, const char *name, uint32_t len)
{
	static const uint8_t key[crypto_shorthash_KEYBYTES + 1] = "ringnfs pseudofs";
	uint8_t sum[crypto_shorthash_BYTES], both[2 * sizeof(uint64_t)];
	uint64_t id;

	crypto_shorthash(sum, (const uint8_t *)name, len, key);
	memcpy(both, &parent, sizeof(parent));
	memcpy(both + sizeof(parent), sum, sizeof(sum));
	crypto_shorthash(sum, both, sizeof(both), key);
	memcpy(&id, sum, sizeof(id));
	id &= INT64_MAX;
	return id > ROOT_ID ? id : id + ROOT_ID + 1;
}

static int pseudo_tree_add_dir(struct nfs4_pseudo_set *set, const struct nfs4_pseudo_dir *d)
{
	if (set->ndirs == set->dirs_size) {
		uint32_t room = set->dirs_size ? 2 * set->dirs_size : 16;
		struct nfs4_pseudo_dir *more = reallocarray(set->dir, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		set->dir = more;
		set->dirs_size = room;
	}
	set->dir[set->ndirs++] = *d;
	return 0;
}

/* Exports are sorted, so an existing entry can only be the one made last. */
static int step_down(struct nfs4_pseudo_set *set, uint32_t *at, const char *name, uint32_t len)
{
	uint32_t parent = *at, last = set->dir[parent].last_kid;
	struct nfs4_pseudo_dir d = {
		.id = kid_id(set->dir[parent].id, name, len),
		.name = name,
		.len = len,
		.parent = parent,
		.export = NFS4_PSEUDO_NONE,
		.last_kid = NFS4_PSEUDO_NONE,
	};
	int rc;

	if (last != NFS4_PSEUDO_NONE && set->dir[last].len == len &&
	    memcmp(set->dir[last].name, name, len) == 0) {
		*at = last;
		return 0;
	}
	rc = pseudo_tree_add_dir(set, &d);
	if (rc != 0)
		return rc;
	*at = set->ndirs - 1;
	set->dir[parent].last_kid = *at;
	set->dir[parent].nkids++;
	return 0;
}

static void count_export(struct nfs4_pseudo_dir *d, uint32_t i)
{
	if (d->nexports == 0)
		d->first_export = i;
	d->nexports = i - d->first_export + 1;
}

static int pseudo_tree_add_export(struct nfs4_pseudo_set *set, uint32_t i)
{
	const char *p = set->export[i].path;
	uint32_t at = 0;
	int rc = 0;

	if (*p == '\0')
		return 0;
	count_export(&set->dir[0], i);
	p += strspn(p, "/");
	while (*p && rc == 0) {
		size_t len = strcspn(p, "/");

		rc = step_down(set, &at, p, (uint32_t)len);
		if (rc == 0)
			count_export(&set->dir[at], i);
		p += len;
		p += strspn(p, "/");
	}
	if (rc != 0)
		return rc;
	set->dir[at].export = i;
	set->export[i].dir = at;
	return 0;
}

static int pseudo_tree_compare_ids(const void *a, const void *b, void *arg)
{
	const struct nfs4_pseudo_set *set = arg;
	const struct nfs4_pseudo_dir *d = &set->dir[*(const uint32_t *)a];
	const struct nfs4_pseudo_dir *e = &set->dir[*(const uint32_t *)b];

	return (d->id > e->id) - (d->id < e->id);
}

static int compare_kids(const void *a, const void *b, void *arg)
{
	const struct nfs4_pseudo_set *set = arg;
	const struct nfs4_pseudo_dir *d = &set->dir[*(const uint32_t *)a];
	const struct nfs4_pseudo_dir *e = &set->dir[*(const uint32_t *)b];

	if (d->parent != e->parent)
		return d->parent < e->parent ? -1 : 1;
	return pseudo_tree_compare_ids(a, b, arg);
}

static int sort_dirs(struct nfs4_pseudo_set *set)
{
	uint32_t n = set->ndirs;

	set->by_id = calloc(n, sizeof(set->by_id[0]));
	set->kid = calloc(n, sizeof(set->kid[0]));
	if (!set->by_id || !set->kid)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		set->by_id[i] = i;
	for (uint32_t i = 1; i < n; i++)
		set->kid[i - 1] = i;
	qsort_r(set->by_id, n, sizeof(set->by_id[0]), pseudo_tree_compare_ids, set);
	qsort_r(set->kid, n - 1, sizeof(set->kid[0]), compare_kids, set);
	for (uint32_t i = n - 1; i > 0; i--)
		set->dir[set->dir[set->kid[i - 1]].parent].first_kid = i - 1;
	for (uint32_t i = 1; i < n; i++) {
		if (set->dir[set->by_id[i]].id == set->dir[set->by_id[i - 1]].id)
			return -EEXIST;
	}
	return 0;
}

/* Fills dir, kid and by_id, and dir of each export. Exports with an empty path are left out. 0,
 * -ENOMEM or -EEXIST. */
static int nfs4_pseudo_tree_build(struct nfs4_pseudo_set *set)
{
	const struct nfs4_pseudo_dir root = {
		.id = ROOT_ID,
		.name = "",
		.export = NFS4_PSEUDO_NONE,
		.last_kid = NFS4_PSEUDO_NONE,
	};
	int rc = pseudo_tree_add_dir(set, &root);

	for (uint32_t i = 0; rc == 0 && i < set->nexports; i++)
		rc = pseudo_tree_add_export(set, i);
	return rc == 0 ? sort_dirs(set) : rc;
}

uint32_t nfs4_pseudo_find(const struct nfs4_pseudo_set *set, uint64_t id)
{
	uint32_t low = 0, high = set->ndirs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (set->dir[set->by_id[mid]].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == set->ndirs || set->dir[set->by_id[low]].id != id)
		return NFS4_PSEUDO_NONE;
	return set->by_id[low];
}

uint32_t nfs4_pseudo_find_kid(const struct nfs4_pseudo_set *set, uint32_t dir, const char *name,
			      uint32_t len)
{
	uint32_t at = nfs4_pseudo_find(set, kid_id(set->dir[dir].id, name, len));

	if (at == NFS4_PSEUDO_NONE || set->dir[at].parent != dir || set->dir[at].len != len ||
	    memcmp(set->dir[at].name, name, len) != 0)
		return NFS4_PSEUDO_NONE;
	return at;
}

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
