/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/pseudo/pseudo_tree.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

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
	if (set->ndirs == set->dirs_room) {
		uint32_t room = set->dirs_room ? 2 * set->dirs_room : 16;
		struct nfs4_pseudo_dir *more = reallocarray(set->dir, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		set->dir = more;
		set->dirs_room = room;
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

int nfs4_pseudo_tree_build(struct nfs4_pseudo_set *set)
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
