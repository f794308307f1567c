/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks by which members tell whether the file system still has what a run of another one had locked.
 *
 * Each run, and its keeper after it (daemon/keeper.h), has one byte of the file "runs" in the directory of the cluster locked, that with its
 * number, as long as it has clients' locks. Whatever else drops those, the eviction of the machine's client or the kill of both processes, drops this
 * one with them.
 *
 * Nobody opens the file for writing, and it has no data: what a dead machine's client of CephFS has in memory of it keeps nobody waiting.
 */
#ifndef RN_DAEMON_CLUSTER_RUNS_H
#define RN_DAEMON_CLUSTER_RUNS_H

#include <stdint.h>

/* Opens the file in that directory, and makes it if need be. The descriptor, or -errno. */
int cluster_runs_open(const char *dir);
/* Locks the byte of that run, which others may have locked so, too; 0 or -errno. */
int cluster_runs_hold(int fd, uint64_t run);
/* Unlocks all. */
void cluster_runs_drop(int fd);
/* 1: somebody else than that descriptor has the byte of that run locked; 0: nobody has; or -errno. Waits for the file system. */
int cluster_runs_stand(int fd, uint64_t run);

#endif
