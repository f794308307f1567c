/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening the fabric: the directory, a slot in it, the socket at which peers connect.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/softverbs/cm_hooks.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"
#include "tools/softverbs/link.h"
#include "tools/softverbs/sv_device.h"

#define BACKLOG 256

struct sv_fabric sv_fabric = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.pulled = PTHREAD_COND_INITIALIZER,
};

void sv_lock(void)
{
	pthread_mutex_lock(&sv_fabric.lock);
}

void sv_unlock(void)
{
	pthread_mutex_unlock(&sv_fabric.lock);
}

const char *sv_env(const char *name, const char *otherwise)
{
	const char *s = getenv(name);

	return s && *s ? s : otherwise;
}

/* The default path is in a directory where any user may create entries, so check that this user
 * owns it. */
static int choose_dir(struct sv_fabric *f)
{
	const char *given = sv_env("SOFTVERBS_DIR", NULL);
	struct stat st;
	int n;

	if (given)
		n = snprintf(f->dir, sizeof(f->dir), "%s", given);
	else
		n = snprintf(f->dir, sizeof(f->dir), "/tmp/softverbs-%u", (unsigned)geteuid());
	if (n >= (int)sizeof(f->dir))
		return -ENAMETOOLONG;
	if (mkdir(f->dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (stat(f->dir, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return given || st.st_uid == geteuid() ? 0 : -EPERM;
}

/* Locked by open file description: the lock ends with the process, since children of a fork() close
 * theirs. */
static int try_slot(struct sv_fabric *f, unsigned slot)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/slot.%u", f->dir, slot);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int err = -errno;
		close(fd);
		return err;
	}
	/* Process id, for administrators and tests that look for a process's slot. */
	if (ftruncate(fd, 0) == 0)
		dprintf(fd, "%d %s\n", (int)getpid(), f->name);
	f->slot = slot;
	f->slot_fd = fd;
	return 0;
}

static int fabric_take_slot(struct sv_fabric *f)
{
	for (unsigned i = 0; i < SV_SLOTS; i++) {
		int err = try_slot(f, i);
		if (err != -EWOULDBLOCK)
			return err;
	}
	return -EUSERS;
}

static int listen_at_slot(struct sv_fabric *f)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	int n = snprintf(sun.sun_path, sizeof(sun.sun_path), "%.90s/slot.%u.sock", f->dir, f->slot);
	if (strlen(f->dir) > 90 || n >= (int)sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	unlink(sun.sun_path);
	f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->listen_fd < 0 || bind(f->listen_fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	    listen(f->listen_fd, BACKLOG) < 0)
		return -errno;
	f->listen_watch = (struct sv_watch){ .fd = f->listen_fd, .fn = sv_link_accept };
	return sv_watch_add(&f->listen_watch, EPOLLIN);
}

static void before_fork(void)
{
	sv_lock();
}

static void after_fork(void)
{
	sv_unlock();
}

/* A child of fork() has no engine thread and no part of the parent's connections, so it starts with
 * an empty fabric. */
static void in_child(void)
{
	struct sv_fabric *f = &sv_fabric;

	if (f->open) {
		sv_cm_forget();
		sv_links_forget();
		sv_engine_forget(&f->engine);
		close(f->faults->ctl_fd);
		close(f->listen_fd);
		close(f->slot_fd);
		f->open = false;
	}
	sv_unlock();
}

static void register_fork_handlers(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static int open_now(struct sv_fabric *f)
{
	snprintf(f->name, sizeof(f->name), "%s", sv_env("SOFTVERBS_NAME", ""));
	f->nonce = sv_now() ^ (uint64_t)getpid() << 32;
	f->qps.next = (uint32_t)(f->nonce >> 4) % SV_QPS;
	f->slot_fd = f->listen_fd = -1;
	TAILQ_INIT(&f->reordered);
	/* Some security modules let peers read this process's memory only after this call. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	int err = choose_dir(f);
	if (!err)
		err = fabric_take_slot(f);
	if (!err)
		err = sv_devices_init();
	if (!err)
		err = sv_engine_start(&f->engine);
	if (!err)
		err = listen_at_slot(f);
	if (!err)
		err = sv_faults_init();
	return err;
}

int sv_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sv_fabric *f = &sv_fabric;

	sv_lock();
	if (!f->open && !f->error) {
		f->error = open_now(f);
		f->open = !f->error;
		if (f->error)
			fprintf(stderr, "softverbs: cannot open the fabric in %s: %s\n", f->dir,
				strerror(-f->error));
	}
	int err = f->error;
	sv_unlock();
	if (!err)
		pthread_once(&once, register_fork_handlers);
	return err;
}
