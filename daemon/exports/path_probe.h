/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out whether the file systems of paths answer. One thread asks about all paths of a call in turn. While it has no answer, as from a
 * dead network disk or a program behind FUSE, another one goes on with the rest, so that a file system holds up nothing but the threads
 * that asked it. Thread-safe.
 */
#ifndef RN_DAEMON_EXPORTS_PATH_PROBE_H
#define RN_DAEMON_EXPORTS_PATH_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/log.h"

struct path_probe;

struct path_probe *path_probe_new(const struct rn_logger *log); /* NULL: no memory */
/* Threads that still wait are left to themselves. NULL is allowed. */
void path_probe_free(struct path_probe *p);

/* Sets answers[i] to true if the file system of path[i] answers, with an error or without; also for a path of NULL, and where no thread can
 * be started. False after two seconds (logged), and at once while an earlier question for the path has no answer. ctx is a struct
 * path_probe. */
void path_probe_ask(void *ctx, const char *const *path, size_t n, bool *answers);
/* The same for one path. */
bool path_probe_answers(struct path_probe *p, const char *path);
/* True if a question has no answer yet. */
bool path_probe_waits(struct path_probe *p);

/* A thread that waits for changes of the mount table. Looking at the exports' paths afterwards may
 * have to wait for a disk, so no other thread does it. */

struct mount_watch;

/* Changes from this call on are reported once the thread runs. 0 or -errno. */
int mount_watch_new(struct mount_watch **out);
struct mount_watch_calls {
	/* Called on the thread, at intervals of a tenth of a second at least; if it returns false, it could
	 * not do its work and is called again. */
	bool (*changed)(void *ctx);
	/* Called every two seconds: true if changed() is to be called though the table is the same. */
	bool (*look)(void *ctx);
	void *ctx;
};
/* 0 or -errno. */
int mount_watch_run(struct mount_watch *w, const struct mount_watch_calls *calls);
/* Ends the thread if it runs. NULL is allowed. */
void mount_watch_free(struct mount_watch *w);

#endif
