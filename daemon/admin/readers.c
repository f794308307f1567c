/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/readers.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (1u << 20) /* bytes of a group's entry */

struct readers {
	pthread_mutex_t lock;
	unsigned refs;		     /* of the control, and of the question */
	struct admin_server *server; /* NULL: forgotten */
	const char *group;
	const struct rn_logger *log;
};

static void readers_put_locked(struct readers *r)
{
	const bool last = --r->refs == 0;

	pthread_mutex_unlock(&r->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* 0, or an errno. *found is false if there is no such group. Waits for name services. */
static int readers_look_up_group(const char *name, gid_t *gid, bool *found)
{
	struct group entry, *group = NULL;
	int err = ERANGE;

	for (size_t size = 1024; err == ERANGE && size <= TEXT_MAX; size *= 4) {
		char *text = malloc(size);

		err = text ? getgrnam_r(name, &entry, text, size, &group) : ENOMEM;
		if (!err && group)
			*gid = group->gr_gid;
		free(text);
	}
	*found = !err && group;
	/* POSIX lets a name service report a missing group by an error, too. */
	return err == ENOENT || err == ESRCH ? 0 : err;
}

static void look_up_and_set(void *job, bool cancelled)
{
	struct readers *r = job;
	bool found = false;
	gid_t gid = 0;
	int err = cancelled ? 0 : readers_look_up_group(r->group, &gid, &found);

	pthread_mutex_lock(&r->lock);
	if (r->server && found)
		err = -admin_set_readers(r->server, gid);
	if (r->server && err)
		rn_warn(r->log, "group %s: %s; only root may use the control socket", r->group,
			strerror(err));
	readers_put_locked(r);
}

struct readers *readers_ask(struct askers *askers, const char *group, struct admin_server *server,
			    const struct rn_logger *log)
{
	struct readers *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct readers){ .refs = 2, .server = server, .group = group, .log = log };
	pthread_mutex_init(&r->lock, NULL);
	if (!askers_ask(askers, ASK_GROUPS, NULL, look_up_and_set, r))
		look_up_and_set(r, true);
	return r;
}

void readers_forget(struct readers *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->server = NULL;
	readers_put_locked(r);
}
