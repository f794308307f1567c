/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster as this member sees it. */
#include "daemon/cluster_part.h"
#include "daemon/metrics/collect.h"
#include "lib/clock.h"
#include "lib/util.h"

static void put_cluster_value(struct metrics *m, const struct metrics_family *f, uint64_t value)
{
	metrics_family(m, f);
	metrics_value(m, value, NULL);
}

static void put_cluster_time(struct metrics *m, const struct metrics_family *f, uint64_t ms)
{
	metrics_family(m, f);
	metrics_nano(m, ms * RN_NS_PER_MS, NULL);
}

static void put_cluster_grace(struct metrics *m, const struct cluster_part_view *v)
{
	static const struct metrics_family epoch = {
		"ringnfs_cluster_epoch", METRICS_GAUGE, NULL,
		"Number of the cluster's epoch, which each grace period raises."
	};
	static const struct metrics_family age = {
		"ringnfs_cluster_grace_seconds", METRICS_GAUGE, "seconds",
		"Time that the cluster's grace period has lasted, as this member has seen it; 0: "
		"there is none."
	};

	put_cluster_value(m, &epoch, v->seen.object.epoch);
	put_cluster_time(m, &age, v->grace_ms);
}

static void put_cluster_members(struct metrics *m, const struct cluster_part_view *v)
{
	static const struct metrics_family running = {
		"ringnfs_cluster_member_running", METRICS_GAUGE, NULL,
		"1 if the member runs; 0 if it has left, or is dead."
	};
	static const struct metrics_family enforcing = {
		"ringnfs_cluster_member_enforcing", METRICS_GAUGE, NULL,
		"1 if the member grants no new locks until the grace period ends."
	};
	static const struct metrics_family needs = {
		"ringnfs_cluster_member_needs_grace", METRICS_GAUGE, NULL,
		"1 if clients of the member may reclaim, now or after its next start."
	};
	static const struct metrics_family lost = {
		"ringnfs_cluster_member_lost_locks", METRICS_GAUGE, NULL,
		"1 if clients of the member may not reclaim, as the file system has dropped its "
		"locks while others granted theirs; until it has been started again."
	};
	const struct cluster_object *o = &v->seen.object;

	metrics_family(m, &running);
	for (unsigned i = 0; i < o->nmembers; i++)
		metrics_value(m, o->member[i].state == CLUSTER_RUNNING, "member", o->member[i].name,
			      NULL);
	metrics_family(m, &enforcing);
	for (unsigned i = 0; i < o->nmembers; i++)
		metrics_value(m, o->member[i].enforcing, "member", o->member[i].name, NULL);
	metrics_family(m, &needs);
	for (unsigned i = 0; i < o->nmembers; i++)
		metrics_value(m, o->member[i].needs_grace, "member", o->member[i].name, NULL);
	metrics_family(m, &lost);
	for (unsigned i = 0; i < o->nmembers; i++)
		metrics_value(m, o->member[i].lost, "member", o->member[i].name, NULL);
}

/* Reports every reason for which a grace period may wait, with 0 for those that do not hold: an alert cannot see a series that is absent. */
static void put_cluster_waits(struct metrics *m, const struct cluster_object *o)
{
	static const struct metrics_family waits = {
		"ringnfs_cluster_grace_waits", METRICS_GAUGE, NULL,
		"1 if the grace period lasts until that member grants no new locks (enforce), is "
		"started or removed (start), or its clients have reclaimed (reclaim)."
	};
	static const struct {
		enum cluster_wait wait;
		const char *name;
	} reasons[] = {
		{ CLUSTER_WAITS_ENFORCE, "enforce" },
		{ CLUSTER_WAITS_START, "start" },
		{ CLUSTER_WAITS_RECLAIM, "reclaim" },
	};

	metrics_family(m, &waits);
	for (unsigned i = 0; i < o->nmembers; i++)
		for (unsigned k = 0; k < rn_array_size(reasons); k++)
			metrics_value(m, cluster_waits_for(o, &o->member[i]) == reasons[k].wait,
				      "member", o->member[i].name, "reason", reasons[k].name, NULL);
}

static void put_cluster_times(struct metrics *m, const struct cluster_part_view *v)
{
	static const struct metrics_family beat = { "ringnfs_cluster_heartbeat_age_seconds",
						    METRICS_GAUGE, "seconds",
						    "Time since the heartbeat of a running member "
						    "was last seen to move; of this member's "
						    "own, since one reached the store." };
	static const struct metrics_family lease = {
		"ringnfs_cluster_lease_left_seconds", METRICS_GAUGE, "seconds",
		"Time that this member may still answer clients without another heartbeat."
	};
	static const struct metrics_family dead = {
		"ringnfs_cluster_dead_time_seconds", METRICS_GAUGE, "seconds",
		"Time without a heartbeat after which a member is dead to the others."
	};
	const struct cluster_object *o = &v->seen.object;

	metrics_family(m, &beat);
	for (unsigned i = 0; i < o->nmembers; i++)
		if (o->member[i].state == CLUSTER_RUNNING && v->seen.beat_ms[i])
			metrics_nano(m, v->beat_age_ms[i] * RN_NS_PER_MS, "member",
				     o->member[i].name, NULL);
	put_cluster_time(m, &lease, v->lease_left_ms);
	put_cluster_time(m, &dead, o->dead_ms);
}

static void put_cluster_counts(struct metrics *m, const struct member_view *seen)
{
	static const struct metrics_family evicted = {
		"ringnfs_cluster_evictions", METRICS_COUNTER, NULL,
		"File system clients of dead members that this member had dropped."
	};
	static const struct metrics_family refused = {
		"ringnfs_cluster_refused_transitions", METRICS_COUNTER, NULL,
		"Changes of the cluster's object that its rules refused to this member."
	};
	static const struct metrics_family failed = {
		"ringnfs_cluster_store_failures", METRICS_COUNTER, NULL,
		"Calls to the cluster's store, and looks for locks of its members, that have "
		"failed."
	};
	static const char *const calls[MEMBER_CALLS] = {
		[MEMBER_READ] = "read", [MEMBER_BEAT] = "heartbeat", [MEMBER_LOOK] = "look",
		[MEMBER_SWAP] = "swap", [MEMBER_EVICT] = "evict",    [MEMBER_STANDS] = "locks",
	};

	put_cluster_value(m, &evicted, seen->evicted);
	put_cluster_value(m, &refused, seen->refused);
	metrics_family(m, &failed);
	for (unsigned i = 0; i < MEMBER_CALLS; i++)
		metrics_value(m, seen->failed[i], "call", calls[i], NULL);
}

void metrics_cluster(struct metrics *m, const struct metrics_sources *from)
{
	struct cluster_part_view v;

	if (!from->cluster)
		return;
	cluster_part_look(from->cluster, &v);
	put_cluster_grace(m, &v);
	put_cluster_members(m, &v);
	put_cluster_waits(m, &v.seen.object);
	put_cluster_times(m, &v);
	put_cluster_counts(m, &v.seen);
}
