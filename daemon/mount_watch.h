/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that waits for changes of the mount table. Looking at the exports' paths afterwards may
 * have to wait for a disk, so no other thread does it. */
#ifndef RN_DAEMON_MOUNT_WATCH_H
#define RN_DAEMON_MOUNT_WATCH_H

#include <stdbool.h>

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
