/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports that an administrator drains, so that nothing is held of them any more: clients get no new state there, until the
 * drain is cancelled or the server ends. They are remembered by their paths, and so across reloads. Thread-safe.
 */
#ifndef RN_DAEMON_DAEMON_DRAIN_H
#define RN_DAEMON_DAEMON_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

enum { DRAIN_PATHS_MAX = 1000 };

struct drain;

struct drain *drain_new(void);	  /* NULL: no memory */
void drain_free(struct drain *d); /* NULL is allowed */

/* Drains the export with that path, or all if that is NULL. 0; -EALREADY: it is drained by itself or with all;
 * -ENOSPC, -ENOMEM. */
int drain_begin(struct drain *d, const char *path);
/* Ends that. NULL: whatever is drained. 0; -ENOENT: it is not drained; -EBUSY: it is drained with all. */
int drain_end(struct drain *d, const char *path);

/* True if the export of that path is drained. */
bool drain_covers(struct drain *d, const char *path);
bool drain_is_all(struct drain *d);
/* Calls each(arg, path) for paths that were named. False: nothing is drained. *since_ns: rn_now_ns() of the beginning. */
bool drain_each(struct drain *d, void (*each)(void *arg, const char *path), void *arg,
		uint64_t *since_ns);

#endif
