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
#define STALL_MS 50 /* without an answer for so long, another thread asks about the other paths */

struct question {
	LIST_ENTRY(question) link; /* from when a thread takes it until it is answered */
	const char *path;	   /* the round's; NULL: nothing is asked */
	bool skipped;		   /* another question for the path was under way */
	bool left;		   /* the caller waits for it no longer */
};
LIST_HEAD(questions, question);

/* Questions of one call. Threads without an answer keep it when the call has ended. */
struct probe_round {
	struct path_probe *probe;
	unsigned refs;	/* the caller's, and each thread's */
	size_t n, next; /* questions, and the first that no thread has taken */
	size_t open;	/* questions without an answer */
	struct questions taken;
	char *text; /* paths of all */
	struct question q[];
};

struct path_probe {
	pthread_mutex_t lock;	 /* guards all, also the rounds */
	pthread_cond_t answered; /* a round has all answers */
	struct questions left;
	unsigned refs; /* the user's and each round's */
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
	pthread_cond_init(&p->answered, &attr);
	pthread_condattr_destroy(&attr);
	LIST_INIT(&p->left);
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
	pthread_cond_destroy(&p->answered);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void path_probe_free(struct path_probe *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	path_probe_put_locked(p);
}

/* Takes over the lock and a reference. */
static void probe_round_put_locked(struct probe_round *r)
{
	struct path_probe *p = r->probe;

	if (--r->refs > 0) {
		pthread_mutex_unlock(&p->lock);
		return;
	}
	free(r->text);
	free(r);
	path_probe_put_locked(p);
}

/* Makes the requests to the file system that opening an export begins with. */
static void touch(const char *path)
{
	struct statfs fs;
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0) {
		(void)!stat(path, &st);
		return;
	}
	if (fstat(fd, &st) == 0)
		(void)!fstatfs(fd, &fs);
	close(fd);
}

/* Under the lock. */
static bool questions_ask(const struct questions *list, const char *path)
{
	const struct question *q;

	LIST_FOREACH (q, list, link)
		if (strcmp(q->path, path) == 0)
			return true;
	return false;
}

/* Under the lock. NULL: all are taken. */
static struct question *take_question(struct probe_round *r)
{
	while (r->next < r->n) {
		struct question *q = &r->q[r->next++];

		if (!q->path)
			continue;
		q->skipped = questions_ask(&r->taken, q->path) ||
			     questions_ask(&r->probe->left, q->path);
		if (!q->skipped) {
			LIST_INSERT_HEAD(&r->taken, q, link);
			return q;
		}
		r->open--;
	}
	return NULL;
}

static void *probe_main(void *arg)
{
	struct probe_round *r = arg;
	struct path_probe *p = r->probe;
	struct question *q;

	pthread_mutex_lock(&p->lock);
	while ((q = take_question(r)) != NULL) {
		pthread_mutex_unlock(&p->lock);
		touch(q->path);
		pthread_mutex_lock(&p->lock);
		LIST_REMOVE(q, link);
		r->open--;
	}
	if (r->open == 0)
		pthread_cond_broadcast(&p->answered);
	probe_round_put_locked(r);
	return NULL;
}

/* Under the lock. NULL: no memory. */
static struct probe_round *probe_round_new(struct path_probe *p, const char *const *path, size_t n)
{
	struct probe_round *r = calloc(1, sizeof(*r) + n * sizeof(r->q[0]));
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += path[i] ? strlen(path[i]) + 1 : 0;
	char *at = r ? malloc(len + 1) : NULL;

	if (!at) {
		free(r);
		return NULL;
	}
	*r = (struct probe_round){ .probe = p, .refs = 1, .n = n, .text = at };
	p->refs++;
	for (size_t i = 0; i < n; i++) {
		if (!path[i])
			continue;
		r->q[i].path = at;
		at = stpcpy(at, path[i]) + 1;
		r->open++;
	}
	return r;
}

/* Under the lock. */
static bool probe_round_start_thread(struct probe_round *r)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, probe_main, r) != 0)
		return false;
	pthread_setname_np(thread, "paths");
	pthread_detach(thread);
	r->refs++;
	return true;
}

/* Waits, under the lock, until all have answered or had their time. */
static void probe_round_run(struct probe_round *r)
{
	const bool started = probe_round_start_thread(r);
	struct timespec end = rn_after_seconds(PATIENCE_SECONDS);
	size_t next = r->next;

	while (started && r->open > 0) {
		const struct timespec until = r->next < r->n ? rn_after_ms(STALL_MS) : end;
		const int rc = pthread_cond_timedwait(&r->probe->answered, &r->probe->lock, &until);

		if (r->next != next)
			end = rn_after_seconds(PATIENCE_SECONDS);
		else if (rc == ETIMEDOUT && r->next == r->n)
			break;
		else if (rc == ETIMEDOUT && !probe_round_start_thread(r))
			r->next = r->n;
		next = r->next;
	}
	r->next = r->n;
}

/* Under the lock: leaves the questions without an answer to their threads. */
static void probe_round_leave(struct probe_round *r, bool *answers)
{
	struct path_probe *p = r->probe;
	struct question *q;

	while ((q = LIST_FIRST(&r->taken)) != NULL) {
		LIST_REMOVE(q, link);
		LIST_INSERT_HEAD(&p->left, q, link);
		q->left = true;
	}
	for (size_t i = 0; i < r->n; i++) {
		q = &r->q[i];
		answers[i] = !q->left && !(q->skipped && questions_ask(&p->left, q->path));
	}
}

void path_probe_ask(void *ctx, const char *const *path, size_t n, bool *answers)
{
	struct path_probe *p = ctx;
	struct probe_round *r;

	memset(answers, true, n * sizeof(*answers));
	pthread_mutex_lock(&p->lock);
	r = probe_round_new(p, path, n);
	if (!r) {
		pthread_mutex_unlock(&p->lock);
		return;
	}
	probe_round_run(r);
	probe_round_leave(r, answers);
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < n; i++)
		if (r->q[i].left)
			rn_warn(p->log, "%s: its file system does not answer", r->q[i].path);
	pthread_mutex_lock(&p->lock);
	probe_round_put_locked(r);
}

bool path_probe_answers(struct path_probe *p, const char *path)
{
	bool answers;

	path_probe_ask(p, &path, 1, &answers);
	return answers;
}

bool path_probe_waits(struct path_probe *p)
{
	bool waits;

	pthread_mutex_lock(&p->lock);
	waits = !LIST_EMPTY(&p->left);
	pthread_mutex_unlock(&p->lock);
	return waits;
}
