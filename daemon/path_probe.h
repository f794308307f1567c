/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out whether the file system of a path answers. Each question has a thread to itself, so that a
 * dead network disk, or a program behind FUSE, holds up nothing but that thread; one that has its answer takes the next. Thread-safe.
 */
#ifndef RN_DAEMON_PATH_PROBE_H
#define RN_DAEMON_PATH_PROBE_H

#include <stdbool.h>

#include "lib/log.h"

struct path_probe;

struct path_probe *path_probe_new(const struct rn_logger *log); /* NULL: no memory */
/* Threads that still wait are left to themselves. NULL is allowed. */
void path_probe_free(struct path_probe *p);

/* True if the file system answers, with an error or without. False after two seconds (logged), and
 * at once while an earlier question for the path has no answer. ctx is a struct path_probe. */
bool path_probe_answers(void *ctx, const char *path);
/* True if a question has no answer yet. */
bool path_probe_waits(struct path_probe *p);

#endif
