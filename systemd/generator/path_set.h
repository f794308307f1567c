/* SPDX-License-Identifier: BSD-2-Clause */
/* A bounded set of paths. Zeroed memory is an empty one. */
#ifndef RN_SYSTEMD_PATH_SET_H
#define RN_SYSTEMD_PATH_SET_H

#include <stdbool.h>
#include <stddef.h>

/* Paths that differ. The manager looks for a unit file of each. */
enum { PATH_SET_MAX = 4096 };

struct path_set {
	char **paths; /* sorted by path_set_sort() */
	size_t n, cap;
	bool full; /* true if a path was left out */
};

/* Adds the first len bytes of the path. One that finds no room makes the set full, and then no more are taken. */
void path_set_add(struct path_set *set, const char *path, size_t len);
/* Sorts it and takes out what is there twice. */
void path_set_sort(struct path_set *set);
/* True if the first len bytes of the path are in it, which must be sorted. */
bool path_set_has(const struct path_set *set, const char *path, size_t len);
void path_set_free(struct path_set *set);

/* Length of the next longer prefix of a cleaned absolute path after one of `len` bytes (0: "/" itself, of length 1); 0 after
 * the path itself. */
size_t path_next_prefix(const char *path, size_t len);
/* True if the path is dir or lies below it; both are cleaned and absolute. */
bool path_within(const char *path, const char *dir);

#endif
