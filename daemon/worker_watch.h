/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that looks after workers: see daemon/worker_watch.c. */
#ifndef RN_DAEMON_WORKER_WATCH_H
#define RN_DAEMON_WORKER_WATCH_H

struct workers;

int worker_watch_start(struct workers *ws); /* 0 or -errno */
void worker_watch_stop(struct workers *ws);
void worker_watch_wake(struct workers *ws); /* when there is work again */

#endif
