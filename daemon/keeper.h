/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a process beside the daemon of a cluster's member, which keeps the locks of its files when the daemon crashes.
 *
 * The kernel frees the locks (F_OFD_SETLK) of a dead process at once, and clients of other members would get them before the cluster's
 * grace period begins. The keeper shares the daemon's table of descriptors (CLONE_FILES), so what the daemon has open stays open as long as
 * either of them lives. When the daemon has died, the keeper closes all but the files that clients may have locked, and ends
 * when cluster_may_release() says that those may be released. doc/design/keeper.md says what it keeps, and why.
 *
 * Only a cluster's member has one. Functions return 0 or -errno, and are called from the daemon's main thread.
 */
#ifndef RN_DAEMON_KEEPER_H
#define RN_DAEMON_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/cluster_store.h"
#include "lib/log.h"

struct keeper_cfg {
	const char *member; /* name in the cluster */
	struct cluster_store_cfg store;
	const char *state_dir; /* of this member; need not exist yet */
	const struct rn_logger *log;
};

struct keeper;

/*
 * Starts the process. To be called before there are other threads and before secrets are read, as the keeper has a copy of the memory as it is
 * now. Returns when the keeper has read the object with the little rights that it has, or could not; logs why.
 */
int keeper_start(const struct keeper_cfg *cfg, struct keeper **out);

/* The daemon has joined the cluster as that run, and grants no locks yet. The state directory is there, and its lock taken. A daemon
 * that dies before this has nothing kept. The byte of that run is locked from now on (daemon/cluster_runs.h). */
int keeper_run_is(struct keeper *k, uint64_t incarnation);
/* The locks of this run are gone, perhaps not all by the file system of the cluster's directory: others see it by that byte. */
void keeper_run_has_lost(const struct keeper *k);

/*
 * 1: a keeper of an earlier run of this member, on any machine, still has its locks; 0: none has. Until then clients cannot reclaim, as their
 * own locks of before are in the way. To be asked, after keeper_run_is(), before reclaims are taken.
 */
int keeper_of_earlier_run(const struct keeper *k);

/* A descriptor that is readable when the keeper has ended, and whether it lives. A member without its keeper is unsafe: it has to leave the cluster. */
int keeper_fd(const struct keeper *k);
bool keeper_lives(const struct keeper *k);

/*
 * Ends the keeper, so that the daemon's end closes its files as ever. For a daemon whose locks may be released (member_may_close()), or
 * that has granted none. A daemon that ends without this call leaves its locks to the keeper. NULL: there is none.
 */
void keeper_dismiss(struct keeper *k);

/*
 * From one program of the daemon to the next, in the same process (daemon/hand_over.h). execve(2) leaves the table of descriptors to the keeper,
 * and gives the next program a copy. So each program has a keeper of its own, and the one before keeps the locks until keeper_end_earlier().
 * keeper_earlier's descriptors: of the eventfd that dismisses it, and of its process.
 */
struct keeper_earlier {
	int wake, pidfd;
};
/* The keeper's descriptors, which stay its own. */
struct keeper_earlier keeper_for_next(const struct keeper *k);
/* Dismisses the keeper of the program before, and closes the descriptors: this one has all locks, and has told its own keeper which run it is. */
void keeper_end_earlier(const struct keeper_earlier *e);

#endif
