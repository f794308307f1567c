/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks by which a member finds out whether the file system still has the locks of another member's run.
 *
 * Each run, and its keeper after it (daemon/keeper.h), has one byte of the file "runs" in the directory of the cluster locked, that with its
 * number, as long as it has clients' locks. Whatever else drops those, the eviction of the machine's client or the kill of both processes, drops this
 * one with them.
 *
 * Nobody opens the file for writing, and it has no data: what a dead machine's client of CephFS has in memory of it keeps nobody waiting.
 */
#ifndef RN_DAEMON_CLUSTER_RUNS_H
#define RN_DAEMON_CLUSTER_RUNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/cluster_object.h"

/* Opens the file in the cluster's directory, and makes it if it is missing. The descriptor, or -errno. */
int cluster_runs_open(const char *dir);
/* Takes a shared lock on the run's byte. 0 or -errno. */
int cluster_runs_hold(int fd, uint64_t run);
/* Unlocks all bytes that the descriptor has locked. */
void cluster_runs_drop(int fd);
/* 1: another descriptor has the run's byte locked; 0: none has; or -errno. Waits for the file system. */
int cluster_runs_stand(int fd, uint64_t run);

/*
 * Questions of a thread that must not wait for the file system, which another thread answers. The answers are those of cluster_runs_stand(). Times
 * are milliseconds of CLOCK_BOOTTIME.
 */
struct cluster_runs_asked {
	pthread_mutex_t lock; /* a leaf */
	struct cluster_run_look {
		uint64_t run;	   /* 0: free */
		uint64_t asked_ms; /* last */
		uint64_t began_ms; /* when the look began that has the answer; 0: there is none */
		int stands;	   /* the answer */
		bool is_due;	   /* to be looked at */
	} look[CLUSTER_MEMBERS];
};
void cluster_runs_init(struct cluster_runs_asked *asked);
void cluster_runs_fini(struct cluster_runs_asked *asked);
/* Answer of a look that began at `since` or later. -EINPROGRESS: there is none yet, and one is asked for. An error is asked for again, too. A full
 * table forgets the run that was asked for longest ago. Does not wait. */
int cluster_runs_ask(struct cluster_runs_asked *asked, uint64_t run, uint64_t since);
/* Answers all that is asked for, by fd. Waits for the file system. */
void cluster_runs_answer(struct cluster_runs_asked *asked, int fd);

#endif
