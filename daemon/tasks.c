/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/tasks.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

struct task {
	STAILQ_ENTRY(task) link;
	void (*run)(void *job, bool cancelled);
	void *job;
};

STAILQ_HEAD(task_list, task);

/* Tasks that may wait, by rank: readers cannot take root's places. */
static const unsigned places[TASK_RANKS] = { [TASK_OF_ROOT] = 16, [TASK_OF_READER] = 4 };

struct tasks {
	pthread_mutex_t lock; /* guards tasks and n */
	struct task_list tasks[TASK_RANKS];
	unsigned n[TASK_RANKS];
	int fd; /* counts the tasks that wait */
};

struct tasks *tasks_new(void)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (t->fd < 0) {
		free(t);
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	for (unsigned i = 0; i < TASK_RANKS; i++)
		STAILQ_INIT(&t->tasks[i]);
	return t;
}

int tasks_fd(const struct tasks *t)
{
	return t->fd;
}

bool tasks_add(struct tasks *t, enum task_rank rank, void (*run)(void *job, bool cancelled),
	       void *job)
{
	struct task *task = malloc(sizeof(*task));

	if (!task)
		return false;
	*task = (struct task){ .run = run, .job = job };
	pthread_mutex_lock(&t->lock);
	const bool room = t->n[rank] < places[rank];

	if (room) {
		STAILQ_INSERT_TAIL(&t->tasks[rank], task, link);
		t->n[rank]++;
		eventfd_write(t->fd, 1);
	}
	pthread_mutex_unlock(&t->lock);
	if (!room)
		free(task);
	return room;
}

/* The oldest of the first rank that has any; NULL: none waits. */
static struct task *tasks_take_first(struct tasks *t)
{
	struct task *task = NULL;

	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < TASK_RANKS && !task; i++) {
		task = STAILQ_FIRST(&t->tasks[i]);
		if (task) {
			STAILQ_REMOVE_HEAD(&t->tasks[i], link);
			t->n[i]--;
		}
	}
	pthread_mutex_unlock(&t->lock);
	return task;
}

static bool run_first(struct tasks *t, bool cancelled)
{
	struct task *task = tasks_take_first(t);

	if (!task)
		return false;
	task->run(task->job, cancelled);
	free(task);
	return true;
}

void tasks_run_one(struct tasks *t)
{
	eventfd_t n;

	eventfd_read(t->fd, &n);
	run_first(t, false);
}

void tasks_free(struct tasks *t)
{
	if (!t)
		return;
	while (run_first(t, true))
		;
	pthread_mutex_destroy(&t->lock);
	close(t->fd);
	free(t);
}
