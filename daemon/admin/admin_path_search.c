/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/admin_path_search.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/admin/state_rows.h"
#include "lib/clock.h"

#define ROWS_MAX 5000u
#define SEARCHES_MAX 4u /* at a time */
#define PATIENCE_SECONDS 2

struct path_searchers {
	_Atomic unsigned refs; /* references: one of the control, one of each search */
	_Atomic unsigned running;
};

struct path_search {
	struct path_searchers *all;
	struct vfs_view_search *files;
	json_t *row[ROWS_MAX]; /* borrowed from reply */
	json_t *reply;
	struct admin_later *later;

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	unsigned refs;	  /* of the thread that searches, and of that which answers */
	uint32_t found;	  /* files that were searched for */
	bool done, given; /* the answer was given: nothing more is wanted */
	char *path[ROWS_MAX];
};

struct path_searchers *path_searchers_new(void)
{
	struct path_searchers *all = calloc(1, sizeof(*all));

	if (all)
		atomic_init(&all->refs, 1);
	return all;
}

void path_searchers_free(struct path_searchers *all)
{
	if (all && atomic_fetch_sub(&all->refs, 1) == 1)
		free(all);
}

static struct path_search *search_new(struct path_searchers *all)
{
	struct path_search *s;
	pthread_condattr_t attr;

	if (atomic_fetch_add(&all->running, 1) >= SEARCHES_MAX || !(s = calloc(1, sizeof(*s)))) {
		atomic_fetch_sub(&all->running, 1);
		return NULL;
	}
	atomic_fetch_add(&all->refs, 1);
	s->all = all;
	s->refs = 1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	s->files = vfs_view_search_new();
	if (s->files)
		return s;
	path_search_free(s);
	return NULL;
}

void path_search_free(struct path_search *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->found; i++)
		free(s->path[i]);
	vfs_view_search_free(s->files);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	atomic_fetch_sub(&s->all->running, 1);
	path_searchers_free(s->all);
	free(s);
}

/* Takes over the lock and a reference. */
static void path_search_put_locked(struct path_search *s)
{
	const bool last = --s->refs == 0;

	pthread_mutex_unlock(&s->lock);
	if (last)
		path_search_free(s);
}

void path_search_add(struct path_searchers *all, struct path_search **search, json_t *row,
		     struct vfs_export *exp, const struct vfs_fh *fh)
{
	if (!*search)
		*search = search_new(all);
	if (!*search || vfs_view_search_count((*search)->files) == ROWS_MAX)
		return;
	const int number = vfs_view_search_add((*search)->files, exp, fh);

	if (number >= 0)
		(*search)->row[number] = row;
}

static void *search_main(void *arg)
{
	struct path_search *s = arg;
	const uint32_t n = vfs_view_search_count(s->files);

	for (uint32_t i = 0; i < n; i++) {
		char *path = vfs_view_search_run(s->files, i);

		pthread_mutex_lock(&s->lock);
		s->path[s->found++] = path;
		const bool given = s->given;

		pthread_mutex_unlock(&s->lock);
		if (given)
			break;
	}
	pthread_mutex_lock(&s->lock);
	s->done = true;
	pthread_cond_broadcast(&s->changed);
	path_search_put_locked(s);
	return NULL;
}

static bool path_search_start(struct path_search *s, void *(*run)(void *arg))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, s) != 0)
		return false;
	pthread_detach(thread);
	return true;
}

/* Under the lock. The searcher does not touch rows. */
static void path_search_give(struct path_search *s)
{
	for (uint32_t i = 0; i < s->found; i++) {
		if (s->path[i])
			json_object_set_new(s->row[i], "path", state_path_text(s->path[i]));
	}
	s->given = true;
	admin_reply_json(admin_later_reply(s->later), s->reply);
}

static void *answer_main(void *arg)
{
	const struct timespec until = rn_after_seconds(PATIENCE_SECONDS);
	struct path_search *s = arg;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	s->refs++;
	s->done = !path_search_start(s, search_main);
	s->refs -= s->done;
	while (!s->done && rc == 0)
		rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
	path_search_give(s);
	admin_later_send(s->later);
	path_search_put_locked(s);
	return NULL;
}

void path_search_answer(struct path_search *s, const struct admin_request *req,
			struct admin_reply *r, json_t *reply)
{
	s->reply = reply;
	s->later = admin_later(req);
	if (!s->later) {
		admin_reply_json(r, reply);
		path_search_free(s);
	} else if (!path_search_start(s, answer_main)) {
		pthread_mutex_lock(&s->lock);
		path_search_give(s);
		admin_later_send(s->later);
		path_search_put_locked(s);
	}
}
