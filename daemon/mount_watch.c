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
#define LOOK_MS 2000

struct mount_watch {
	int table_fd, stop_fd;
	bool running;
	pthread_t thread;
	struct mount_watch_calls calls;
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

/* True if the thread has to stop. *quiet: the time is over, and the table is the same. */
static bool wait_or_stop(struct mount_watch *w, bool for_table, int ms, bool *quiet)
{
	struct pollfd p[] = { { .fd = w->stop_fd, .events = POLLIN },
			      { .fd = for_table ? w->table_fd : -1, .events = POLLPRI } };

	while (poll(p, 2, ms) < 0 && errno == EINTR)
		continue;
	*quiet = p[1].revents == 0;
	return p[0].revents != 0;
}

static void *mount_watch_thread(void *arg)
{
	struct mount_watch *w = arg;
	const struct mount_watch_calls *calls = &w->calls;
	bool done = true, quiet;

	while (!wait_or_stop(w, done, done ? LOOK_MS : RETRY_MS, &quiet)) {
		if (done && quiet && !calls->look(calls->ctx))
			continue;
		done = calls->changed(calls->ctx);
		if (wait_or_stop(w, false, PAUSE_MS, &quiet))
			break;
	}
	return NULL;
}

int mount_watch_run(struct mount_watch *w, const struct mount_watch_calls *calls)
{
	int rc;

	w->calls = *calls;
	rc = pthread_create(&w->thread, NULL, mount_watch_thread, w);
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
