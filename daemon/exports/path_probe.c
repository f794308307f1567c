/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of exports while they may hang: mounts that come and go, and questions about a path that a thread of its own asks. */
#include "daemon/exports/path_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/clock.h"
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

#define PATIENCE_SECONDS 2
#define IDLE_SECONDS                                                                               \
	1 /* a thread stays so long for the next question: thousands of exports are opened one after the other */

struct probe {
	LIST_ENTRY(probe) link;
	bool taken, done;
	bool left; /* the user waits for it no longer */
	char path[];
};

struct path_probe {
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	LIST_HEAD(, probe) waiting;
	unsigned untaken; /* of them: no thread has them yet */
	unsigned idle;	  /* threads that wait for one */
	unsigned refs;	  /* references: the user's and each thread's */
	const struct rn_logger *log;
};

struct path_probe *path_probe_new(const struct rn_logger *log)
{
	struct path_probe *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	LIST_INIT(&p->waiting);
	p->refs = 1;
	p->log = log;
	return p;
}

/* Takes over the lock and a reference. */
static void path_probe_put_locked(struct path_probe *p)
{
	const bool last = --p->refs == 0;

	pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void path_probe_free(struct path_probe *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->log = NULL;
	pthread_cond_broadcast(&p->changed);
	path_probe_put_locked(p);
}

/* Makes the requests to the file system that opening an export begins with. */
static void touch(const char *path)
{
	struct statfs fs;
	struct stat st;
	int fd = open(path, O_PATH | O_CLOEXEC), dir = -1;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && fstatfs(fd, &fs) == 0)
		dir = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	if (dir >= 0)
		close(dir);
	close(fd);
}

/* Under the lock. NULL: there is none. */
static struct probe *take_question(struct path_probe *p)
{
	struct probe *probe;

	LIST_FOREACH (probe, &p->waiting, link) {
		if (probe->taken)
			continue;
		probe->taken = true;
		p->untaken--;
		return probe;
	}
	return NULL;
}

/* Under the lock. NULL: none comes for a while. */
static struct probe *next_question(struct path_probe *p)
{
	const struct timespec until = rn_after_seconds(IDLE_SECONDS);
	struct probe *probe;
	int rc = 0;

	p->idle++;
	while ((probe = take_question(p)) == NULL && p->log && rc == 0)
		rc = pthread_cond_timedwait(&p->changed, &p->lock, &until);
	p->idle--;
	return probe;
}

static void *probe_main(void *arg)
{
	struct path_probe *p = arg;
	struct probe *probe;

	pthread_mutex_lock(&p->lock);
	while ((probe = next_question(p)) != NULL) {
		pthread_mutex_unlock(&p->lock);
		touch(probe->path);
		pthread_mutex_lock(&p->lock);
		probe->done = true;
		LIST_REMOVE(probe, link);
		if (probe->left)
			free(probe);
		else
			pthread_cond_broadcast(&p->changed);
	}
	path_probe_put_locked(p);
	return NULL;
}

/* Under the lock. */
static bool is_waiting(const struct path_probe *p, const char *path)
{
	const struct probe *probe;

	LIST_FOREACH (probe, &p->waiting, link)
		if (probe->left && strcmp(probe->path, path) == 0)
			return true;
	return false;
}

/* Under the lock: makes sure that a thread takes the next question. */
static bool has_thread(struct path_probe *p)
{
	pthread_t thread;

	if (p->idle > p->untaken)
		return true;
	if (pthread_create(&thread, NULL, probe_main, p) != 0)
		return false;
	pthread_setname_np(thread, "paths");
	pthread_detach(thread);
	p->refs++;
	return true;
}

/* Under the lock. NULL: no memory, or no thread. */
static struct probe *path_probe_start(struct path_probe *p, const char *path)
{
	const size_t len = strlen(path) + 1;
	struct probe *probe = calloc(1, sizeof(*probe) + len);

	if (!probe)
		return NULL;
	if (!has_thread(p)) {
		free(probe);
		return NULL;
	}
	memcpy(probe->path, path, len);
	LIST_INSERT_HEAD(&p->waiting, probe, link);
	p->untaken++;
	pthread_cond_broadcast(&p->changed);
	return probe;
}

/* Under the lock. */
static bool path_probe_wait_for(struct path_probe *p, struct probe *probe)
{
	const struct timespec until = rn_after_seconds(PATIENCE_SECONDS);
	int rc = 0;

	while (!probe->done && rc == 0)
		rc = pthread_cond_timedwait(&p->changed, &p->lock, &until);
	if (probe->done) {
		free(probe);
		return true;
	}
	probe->left = true;
	return false;
}

bool path_probe_answers(void *ctx, const char *path)
{
	struct path_probe *p = ctx;
	struct probe *probe;
	bool answers = true, new = false;

	pthread_mutex_lock(&p->lock);
	if (is_waiting(p, path)) {
		answers = false;
	} else {
		probe = path_probe_start(p, path);
		/* Without a thread the caller asks by itself. */
		answers = !probe || path_probe_wait_for(p, probe);
		new = !answers;
	}
	pthread_mutex_unlock(&p->lock);
	if (new)
		rn_warn(p->log, "%s: its file system does not answer", path);
	return answers;
}

bool path_probe_waits(struct path_probe *p)
{
	bool waits;

	pthread_mutex_lock(&p->lock);
	waits = !LIST_EMPTY(&p->waiting);
	pthread_mutex_unlock(&p->lock);
	return waits;
}
