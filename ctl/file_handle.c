/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread looks the path up, so that a file system which does not answer does not hold up the tool. */
#include "ctl/file_handle.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"

#define PATIENCE_SECONDS 5

struct lookup {
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	unsigned refs;
	bool done;
	int rc;
	struct file_handle_text text;
	char path[];
};

/* Takes over the lock and a reference. */
static void file_lookup_put_locked(struct lookup *l)
{
	const bool last = --l->refs == 0;

	pthread_mutex_unlock(&l->lock);
	if (!last)
		return;
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Type and bytes, as in the server's handles. */
static void put_handle(const struct file_handle *h, char *to)
{
	const uint32_t type = htobe32((uint32_t)h->handle_type);
	uint8_t bytes[sizeof(type) + FILE_HANDLE_MAX];
	const size_t n = sizeof(type) + h->handle_bytes;

	memcpy(bytes, &type, sizeof(type));
	memcpy(bytes + sizeof(type), h->f_handle, h->handle_bytes);
	for (size_t i = 0; i < n; i++)
		to += sprintf(to, "%02x", bytes[i]);
}

/* The descriptor keeps handle and device those of one file. */
static int file_handle_look_up(const char *path, struct file_handle_text *out)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + FILE_HANDLE_MAX];
	} k = { .h = { .handle_bytes = FILE_HANDLE_MAX } };
	const int fd = open(path, O_PATH | O_CLOEXEC);
	struct statx sx;
	int mount, rc = 0;

	if (fd < 0)
		return -errno;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &sx) != 0 ||
	    name_to_handle_at(fd, "", &k.h, &mount, AT_EMPTY_PATH) != 0)
		rc = -errno;
	close(fd);
	if (rc)
		return rc;
	put_handle(&k.h, out->handle);
	snprintf(out->device, sizeof(out->device), "%u:%u", sx.stx_dev_major, sx.stx_dev_minor);
	return 0;
}

static void *lookup_main(void *arg)
{
	struct lookup *l = arg;
	struct file_handle_text text;
	const int rc = file_handle_look_up(l->path, &text);

	pthread_mutex_lock(&l->lock);
	l->rc = rc;
	if (!rc)
		l->text = text;
	l->done = true;
	pthread_cond_broadcast(&l->changed);
	file_lookup_put_locked(l);
	return NULL;
}

static struct lookup *lookup_new(const char *path)
{
	struct lookup *l = calloc(1, sizeof(*l) + strlen(path) + 1);
	pthread_condattr_t attr;

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
	memcpy(l->path, path, strlen(path) + 1);
	l->refs = 2;
	return l;
}

int file_handle_of(const char *path, struct file_handle_text *out)
{
	const struct timespec until = rn_after_seconds(PATIENCE_SECONDS);
	struct lookup *l = lookup_new(path);
	pthread_t thread;
	int rc = 0;

	if (!l)
		return -ENOMEM;
	pthread_mutex_lock(&l->lock);
	l->rc = -pthread_create(&thread, NULL, lookup_main, l);
	if (l->rc == 0) {
		pthread_detach(thread);
	} else {
		l->refs--;
		l->done = true;
	}
	while (!l->done && rc == 0)
		rc = -pthread_cond_timedwait(&l->changed, &l->lock, &until);
	if (l->done)
		rc = l->rc;
	if (!rc)
		*out = l->text;
	file_lookup_put_locked(l);
	return rc;
}
