/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/daemon_drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

struct drain {
	pthread_mutex_t lock; /* a leaf; guards the members below */
	bool all;
	unsigned n;
	char *path[DRAIN_PATHS_MAX];
	uint64_t since_ns; /* beginning of the first that is not over */
};

struct drain *drain_new(void)
{
	struct drain *d = calloc(1, sizeof(*d));

	if (d)
		pthread_mutex_init(&d->lock, NULL);
	return d;
}

/* Under the lock. */
static void forget_all(struct drain *d)
{
	while (d->n > 0)
		free(d->path[--d->n]);
	d->all = false;
}

void drain_free(struct drain *d)
{
	if (!d)
		return;
	forget_all(d);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* Under the lock. The number of the path, or n. */
static unsigned drain_find_path(const struct drain *d, const char *path)
{
	unsigned i = 0;

	while (i < d->n && strcmp(d->path[i], path) != 0)
		i++;
	return i;
}

/* Under the lock. */
static int drain_add_path(struct drain *d, const char *path)
{
	if (d->all || (path && drain_find_path(d, path) < d->n))
		return -EALREADY;
	if (path && d->n == DRAIN_PATHS_MAX)
		return -ENOSPC;
	if (d->n == 0)
		d->since_ns = rn_now_ns();
	if (!path) {
		d->all = true;
		return 0;
	}
	d->path[d->n] = strdup(path);
	return d->path[d->n++] ? 0 : (d->n--, -ENOMEM);
}

int drain_begin(struct drain *d, const char *path)
{
	pthread_mutex_lock(&d->lock);
	const int rc = drain_add_path(d, path);

	pthread_mutex_unlock(&d->lock);
	return rc;
}

/* Under the lock. */
static int drain_end_path(struct drain *d, const char *path)
{
	const unsigned at = path ? drain_find_path(d, path) : 0;

	if (!path) {
		const bool any = d->all || d->n > 0;

		forget_all(d);
		return any ? 0 : -ENOENT;
	}
	if (d->all)
		return -EBUSY;
	if (at == d->n)
		return -ENOENT;
	free(d->path[at]);
	d->path[at] = d->path[--d->n];
	return 0;
}

int drain_end(struct drain *d, const char *path)
{
	pthread_mutex_lock(&d->lock);
	const int rc = drain_end_path(d, path);

	pthread_mutex_unlock(&d->lock);
	return rc;
}

bool drain_covers(struct drain *d, const char *path)
{
	pthread_mutex_lock(&d->lock);
	const bool covers = d->all || drain_find_path(d, path) < d->n;

	pthread_mutex_unlock(&d->lock);
	return covers;
}

bool drain_is_all(struct drain *d)
{
	pthread_mutex_lock(&d->lock);
	const bool all = d->all;

	pthread_mutex_unlock(&d->lock);
	return all;
}

bool drain_each(struct drain *d, void (*each)(void *arg, const char *path), void *arg,
		uint64_t *since_ns)
{
	pthread_mutex_lock(&d->lock);
	const bool any = d->all || d->n > 0;

	*since_ns = d->since_ns;
	for (unsigned i = 0; i < d->n; i++)
		each(arg, d->path[i]);
	pthread_mutex_unlock(&d->lock);
	return any;
}
