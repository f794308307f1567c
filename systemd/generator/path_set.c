/* SPDX-License-Identifier: BSD-2-Clause */
#include "systemd/generator/path_set.h"

#include <stdlib.h>
#include <string.h>

static int path_set_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void path_set_sort(struct path_set *set)
{
	size_t n = 0;

	if (set->n)
		qsort(set->paths, set->n, sizeof(*set->paths), path_set_compare);
	for (size_t i = 0; i < set->n; i++) {
		if (n && !strcmp(set->paths[n - 1], set->paths[i]))
			free(set->paths[i]);
		else
			set->paths[n++] = set->paths[i];
	}
	set->n = n;
}

/* Room for one more: doubles are thrown out before the set grows. */
static bool path_set_make_room(struct path_set *set)
{
	size_t cap = set->cap ? 2 * set->cap : 64;
	char **grown;

	if (set->n < set->cap)
		return true;
	path_set_sort(set);
	if (set->n <= set->cap / 2 && set->cap)
		return true;
	if (set->n >= PATH_SET_MAX)
		return false;
	grown = realloc(set->paths, cap * sizeof(*grown));
	if (!grown)
		return false;
	set->paths = grown;
	set->cap = cap;
	return true;
}

void path_set_add(struct path_set *set, const char *path, size_t len)
{
	char *copy = !set->full && path_set_make_room(set) ? strndup(path, len) : NULL;

	if (copy)
		set->paths[set->n++] = copy;
	else
		set->full = true;
}

bool path_set_has(const struct path_set *set, const char *path, size_t len)
{
	size_t low = 0, high = set->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strncmp(set->paths[mid], path, len);

		if (!order && set->paths[mid][len])
			order = 1;
		if (!order)
			return true;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

void path_set_free(struct path_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		free(set->paths[i]);
	free(set->paths);
	*set = (struct path_set){ 0 };
}

size_t path_next_prefix(const char *path, size_t len)
{
	if (!len)
		return 1;
	if (!path[len])
		return 0;
	/* After "/" the first component begins here; else a slash does. */
	return len == 1 ? 1 + strcspn(path + 1, "/") : len + 1 + strcspn(path + len + 1, "/");
}

bool path_within(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (!dir[1])
		return true;
	return !strncmp(path, dir, len) && (!path[len] || path[len] == '/');
}
