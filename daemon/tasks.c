/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/tasks.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#define TASKS_MAX 16u /* that wait */

struct task {
	STAILQ_ENTRY(task) link;
	void (*run)(void *job, bool cancelled);
	void *job;
};

struct tasks {
	pthread_mutex_t lock; /* guards tasks and n */
	STAILQ_HEAD(, task) tasks;
	unsigned n;
	int fd;
};

struct tasks *tasks_new(void)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->fd < 0) {
		free(t);
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	STAILQ_INIT(&t->tasks);
	return t;
}

int tasks_fd(const struct tasks *t)
{
	return t->fd;
}

bool tasks_add(struct tasks *t, void (*run)(void *job, bool cancelled), void *job)
{
	struct task *task = malloc(sizeof(*task));

	if (!task)
		return false;
	*task = (struct task){ .run = run, .job = job };
	pthread_mutex_lock(&t->lock);
	const bool room = t->n < TASKS_MAX;

	if (room) {
		STAILQ_INSERT_TAIL(&t->tasks, task, link);
		t->n++;
		eventfd_write(t->fd, 1);
	}
	pthread_mutex_unlock(&t->lock);
	if (!room)
		free(task);
	return room;
}

static void run_all(struct tasks *t, bool cancelled)
{
	struct task *task;

	for (;;) {
		pthread_mutex_lock(&t->lock);
		task = STAILQ_FIRST(&t->tasks);
		if (task) {
			STAILQ_REMOVE_HEAD(&t->tasks, link);
			t->n--;
		}
		pthread_mutex_unlock(&t->lock);
		if (!task)
			return;
		task->run(task->job, cancelled);
		free(task);
	}
}

void tasks_run(struct tasks *t)
{
	eventfd_t n;

	eventfd_read(t->fd, &n);
	run_all(t, false);
}

void tasks_free(struct tasks *t)
{
	if (!t)
		return;
	run_all(t, true);
	pthread_mutex_destroy(&t->lock);
	close(t->fd);
	free(t);
}
