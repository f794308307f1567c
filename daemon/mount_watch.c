/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/mount_watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "vfs/mount_table.h"

#define PAUSE_MS 100  /* ms between two looks, so that hundreds of mounts at once cost few */
#define RETRY_MS 1000 /* after a failure */

struct mount_watch {
	int table_fd, stop_fd;
	bool running;
	pthread_t thread;
	bool (*changed)(void *ctx);
	void *ctx;
};

int mount_watch_new(struct mount_watch **out)
{
	struct mount_watch *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	w->table_fd = vfs_mount_table_watch();
	w->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (w->table_fd < 0 || w->stop_fd < 0) {
		rc = w->table_fd < 0 ? w->table_fd : -errno;
		mount_watch_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

/* True if the thread has to stop. */
static bool wait_or_stop(struct mount_watch *w, bool for_table, int ms)
{
	struct pollfd p[] = { { .fd = w->stop_fd, .events = POLLIN },
			      { .fd = for_table ? w->table_fd : -1, .events = POLLPRI } };

	while (poll(p, 2, ms) < 0 && errno == EINTR)
		continue;
	return p[0].revents != 0;
}

static void *watch(void *arg)
{
	struct mount_watch *w = arg;
	bool done = true;

	while (!wait_or_stop(w, done, done ? -1 : RETRY_MS)) {
		done = w->changed(w->ctx);
		if (wait_or_stop(w, false, PAUSE_MS))
			break;
	}
	return NULL;
}

int mount_watch_run(struct mount_watch *w, bool (*changed)(void *ctx), void *ctx)
{
	int rc;

	w->changed = changed;
	w->ctx = ctx;
	rc = pthread_create(&w->thread, NULL, watch, w);
	w->running = rc == 0;
	return -rc;
}

void mount_watch_free(struct mount_watch *w)
{
	if (!w)
		return;
	if (w->running) {
		eventfd_write(w->stop_fd, 1);
		pthread_join(w->thread, NULL);
	}
	if (w->table_fd >= 0)
		close(w->table_fd);
	if (w->stop_fd >= 0)
		close(w->stop_fd);
	free(w);
}
