/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that the thread of the control socket leaves to the main thread, as it may wait for file systems:
 * reloads of the exports, and questions about them. One task runs at a time, root's before those of readers,
 * and each rank in the order of arrival. Between two tasks the main thread looks for signals.
 */
#ifndef RN_DAEMON_TASKS_H
#define RN_DAEMON_TASKS_H

#include <stdbool.h>

struct tasks;

enum task_rank { TASK_OF_ROOT, TASK_OF_READER, TASK_RANKS };

struct tasks *tasks_new(void); /* NULL: no memory, or no descriptor */
/* Calls the tasks that are left with cancelled. NULL is allowed. */
void tasks_free(struct tasks *t);

/* For poll(2): readable if there is a task. */
int tasks_fd(const struct tasks *t);
/* Has run(job, false) called by tasks_run_one(). False: too many of that rank wait, or no memory, and run is not
 * called. */
bool tasks_add(struct tasks *t, enum task_rank rank, void (*run)(void *job, bool cancelled),
	       void *job);
/* Runs the first task, if there is one; for the main thread. */
void tasks_run_one(struct tasks *t);

#endif
