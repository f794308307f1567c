/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/cluster_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/clock.h"

#define RUNS_FILE "runs"

int cluster_runs_open(const char *dir)
{
	char path[PATH_MAX];
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/" RUNS_FILE, dir) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

static struct flock cluster_runs_byte(short type, uint64_t run)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)run, .l_len = 1
	};
}

int cluster_runs_hold(int fd, uint64_t run)
{
	struct flock fl = cluster_runs_byte(F_RDLCK, run);

	return fcntl(fd, F_OFD_SETLK, &fl) < 0 ? -errno : 0;
}

void cluster_runs_drop(int fd)
{
	fcntl(fd, F_OFD_SETLK, &(struct flock){ .l_type = F_UNLCK, .l_whence = SEEK_SET });
}

int cluster_runs_stand(int fd, uint64_t run)
{
	struct flock fl = cluster_runs_byte(F_WRLCK, run);

	if (fcntl(fd, F_OFD_GETLK, &fl) < 0)
		return -errno;
	return fl.l_type != F_UNLCK;
}

void cluster_runs_init(struct cluster_runs_asked *asked)
{
	*asked = (struct cluster_runs_asked){ .look = { { .run = 0 } } };
	pthread_mutex_init(&asked->lock, NULL);
}

void cluster_runs_fini(struct cluster_runs_asked *asked)
{
	pthread_mutex_destroy(&asked->lock);
}

static uint64_t cluster_runs_now(void)
{
	return rn_clock_ns(CLOCK_BOOTTIME) / RN_NS_PER_MS;
}

/* The table's entry for the run; a new one may replace that which was asked for longest ago. Under the lock. */
static struct cluster_run_look *cluster_runs_question(struct cluster_runs_asked *asked,
						      uint64_t run)
{
	struct cluster_run_look *at = &asked->look[0];

	for (unsigned i = 0; i < CLUSTER_MEMBERS; i++) {
		if (asked->look[i].run == run)
			return &asked->look[i];
		if (asked->look[i].asked_ms < at->asked_ms)
			at = &asked->look[i];
	}
	*at = (struct cluster_run_look){ .run = run };
	return at;
}

int cluster_runs_ask(struct cluster_runs_asked *asked, uint64_t run, uint64_t since)
{
	int rc = -EINPROGRESS;

	pthread_mutex_lock(&asked->lock);
	struct cluster_run_look *q = cluster_runs_question(asked, run);

	q->asked_ms = cluster_runs_now();
	if (q->began_ms >= since && q->began_ms > 0)
		rc = q->stands;
	if (rc < 0)
		q->is_due = true;
	pthread_mutex_unlock(&asked->lock);
	return rc;
}

void cluster_runs_answer(struct cluster_runs_asked *asked, int fd)
{
	for (unsigned i = 0; i < CLUSTER_MEMBERS; i++) {
		pthread_mutex_lock(&asked->lock);
		const struct cluster_run_look q = asked->look[i];

		asked->look[i].is_due = false;
		pthread_mutex_unlock(&asked->lock);
		if (!q.is_due)
			continue;
		const uint64_t began = cluster_runs_now();
		const int stands = cluster_runs_stand(fd, q.run);

		pthread_mutex_lock(&asked->lock);
		if (asked->look[i].run == q.run) {
			asked->look[i].stands = stands;
			asked->look[i].began_ms = began;
		}
		pthread_mutex_unlock(&asked->lock);
	}
}
