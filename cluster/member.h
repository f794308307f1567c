/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One member of a cluster: its heartbeat, its view of the others, and its part in the grace (cluster/cluster_object.h).
 *
 * The server drives it by a timer: member_start(), then member_step() as often as it asks for, from one thread. A step
 * blocks as long as the store does. It calls the server back to enforce the grace, to take reclaims, and to fall silent.
 *
 * The lease: a member may answer for four fifths of dead_ms after it began a heartbeat that reached the store and after which the object
 * still showed it as running. Others declare it dead when they have seen its heartbeat stand still for dead_ms. So it is silent before
 * they do, without any clocks in common. A lease that is over does not come back; the server has to be started anew.
 */
#ifndef RN_CLUSTER_MEMBER_H
#define RN_CLUSTER_MEMBER_H

#include "cluster/cluster_store.h"
#include "lib/log.h"

#define MEMBER_BEAT_MS                                                                             \
	1000u /* between heartbeats, give or take a quarter; less if dead_ms is short */
#define MEMBER_DEAD_MS                                                                             \
	10000u /* usual dead_ms; more than the store itself may pause when one of its own servers fails */

struct member_calls {
	/* true: when this returns, no new locks are granted, and none is about to be; false: they may be. */
	void (*enforce)(void *ctx, bool on);
	/* Clients may reclaim locks from before that epoch. The server calls member_reclaimed() when they have. */
	void (*reclaim_allowed)(void *ctx, uint64_t epoch);
	/*
	 * Looks whether the locks of that run of any member are in the file system: 1 or 0, as seen by a look that began at that time (now_ms) or later.
	 * -EINPROGRESS: no such look has ended yet; or another error: ask again. since 0: the member has not started, and the call may wait.
	 */
	int (*stands)(void *ctx, uint64_t run, uint64_t since);
	/* Clients may not reclaim any more, as others may have been granted what they had: drop their records. */
	void (*reclaims_lost)(void *ctx);
	/* The server must answer no more calls, and end. Called once. */
	void (*fenced)(void *ctx, const char *reason);
	/* The clock is apart from the others': the server must call member_leave(), and end. Called once. */
	void (*apart)(void *ctx);
	/* Clocks; NULL: CLOCK_BOOTTIME, which counts time asleep, and CLOCK_REALTIME. */
	uint64_t (*now_ms)(void *ctx);
	uint64_t (*wall_ns)(void *ctx);
};

struct member_cfg {
	struct cluster_starter starter;
	struct cluster_store *store; /* the caller's, open until member_free() */
	const struct member_calls *calls;
	void *ctx;
	const struct rn_logger *log;
};

struct member;

/* Calls to the store, or about locks in the file system, which may fail. */
enum member_call {
	MEMBER_READ,
	MEMBER_BEAT,
	MEMBER_LOOK,
	MEMBER_SWAP,
	MEMBER_EVICT,
	MEMBER_STANDS,
	MEMBER_CALLS
};

/* A member's knowledge of its cluster, for metrics and the control interface. Times are by its clock. */
struct member_view {
	struct cluster_object object; /* the object as it was last read */
	/* By rows of the object: when the heartbeat was last seen to move, or the run became known. This member's own: when it
	 * began a heartbeat that reached the store; 0: none has. */
	uint64_t beat_ms[CLUSTER_MEMBERS];
	uint64_t lease_until_ms;
	uint64_t grace_ms; /* when this member first saw the grace under way */
	uint64_t evicted;  /* file system clients that were evicted */
	uint64_t refused;  /* transitions that were refused */
	uint64_t failed[MEMBER_CALLS];
};

/*
 * Joins the cluster. The caller holds the lock of the state directory and grants no locks yet: the first step says whether it
 * may. -EPERM: refused, *refusal says why; others: the store failed.
 */
int member_start(const struct member_cfg *cfg, struct member **member,
		 enum cluster_refusal *refusal);
void member_free(struct member *m);
/*
 * Marks in the object, which the caller has read, members whose locks the file system has dropped before all members stopped granting
 * (cluster_lose()), as far as one that is to start has to tell: because it may itself have granted them in a run that ended unseen, or because
 * they were its own and others may have. 0, or an error of calls->stands(). member_start() does so, too.
 */
int member_lose_before(const struct member_cfg *cfg, struct cluster_object *o);
/*
 * The caller has stopped granting at that time, and the others rely on it from its next transition on. So it looks first whether what their clients
 * may reclaim is still locked: else it may have granted it. 0, or an error of calls->stands(): nothing has changed.
 */
int member_lose_granted(const struct member_cfg *cfg, struct cluster_object *o,
			const struct cluster_self *by, uint64_t since);
/* Leaves (cluster_leave()), or ends as one that has lost its locks. As above, with -EPERM: refused. */
int member_leave_by(const struct member_cfg *cfg, struct cluster_object *o,
		    const struct cluster_self *self, bool has_records, uint64_t since);
/*
 * Declares that run dead, whose heartbeat has stood still, with what it has lost, and what others have lost that it may have granted. Looks for
 * locks count if they began at that time or later. -EPERM: refused; or an error of calls->stands(): nothing has changed. by: see cluster_declare_dead().
 */
int member_end_run(const struct member_cfg *cfg, struct cluster_object *o,
		   const struct cluster_self *by, const struct cluster_self *run, uint64_t since);

/* A member's run as member_resume() takes it: the number by which the others know it, and of its last heartbeat, as they see a heartbeat by its
 * number's change. */
struct member_run {
	uint64_t incarnation, beats;
};
/* Called after the last step, on the thread that made it. */
struct member_run member_run(const struct member *m);
/*
 * Goes on as a run that a program before this one in the same process was, which has stepped no more since it told *run. The starter's
 * has_records counts not. No locks are granted yet, as after member_start(). -ESTALE: the others have given that run up, or its key, settings or
 * place are others now: the member has to be started anew; others: the store failed.
 */
int member_resume(const struct member_cfg *cfg, const struct member_run *run,
		  struct member **member);

/* True if records of clients from before the start are worth something. False: others may have been granted their locks; drop the records. */
bool member_has_reclaims(const struct member *m);

/* The object as it was read last. From the thread that steps, or before it does, as the next one. */
const struct cluster_object *member_object(const struct member *m);
void member_look(const struct member *m, struct member_view *out);

/* One turn. Returns the milliseconds until the next one. */
unsigned member_step(struct member *m);
/* Waits that long, or until the object has changed. For a thread that does nothing else. */
void member_wait(struct member *m, unsigned ms);

/* Thread-safe, cheap: true while the lease lasts. To be asked before each answer that clients rely on. */
bool member_may_answer(struct member *m);

/* Thread-safe: all clients have reclaimed, or had their time; no reclaims are taken any more, and the records of those that did not come are
 * dropped. The next step tells the others. */
void member_reclaimed(struct member *m);
/* From the thread that steps: exports or settings were read again. */
void member_set_digest(struct member *m, const struct cluster_digest *digest);
/* Thread-safe: the server stops. The next step calls enforce(true) and leaves; has_records: clients reclaim after the next start. */
void member_leave(struct member *m, bool has_records);
/* Thread-safe: true if the member has left, and may close files with clients' locks. */
bool member_may_close(const struct member *m);

#endif
