/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that the thread of the control socket leaves to the main thread, as it may wait for file systems:
 * reloads of the exports, and questions about them. One task runs at a time, in the order of arrival.
 */
#ifndef RN_DAEMON_TASKS_H
#define RN_DAEMON_TASKS_H

#include <stdbool.h>

struct tasks;

struct tasks *tasks_new(void); /* NULL: no memory, or no descriptor */
/* Calls the tasks that are left with cancelled. NULL is allowed. */
void tasks_free(struct tasks *t);

/* For poll(2): readable if there is a task. */
int tasks_fd(const struct tasks *t);
/* Has run(job, false) called by tasks_run(). False: too many wait, or no memory, and run is not called. */
bool tasks_add(struct tasks *t, void (*run)(void *job, bool cancelled), void *job);
/* Runs the tasks that are there; for the main thread. */
void tasks_run(struct tasks *t);

#endif
