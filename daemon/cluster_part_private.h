/* SPDX-License-Identifier: BSD-2-Clause */
/* struct cluster_part and functions that its files share (daemon/cluster_part.c, daemon/cluster_join.c). */
#ifndef RN_DAEMON_CLUSTER_PART_PRIVATE_H
#define RN_DAEMON_CLUSTER_PART_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/cluster_conns.h"
#include "daemon/cluster_mounts.h"
#include "daemon/cluster_part.h"
#include "daemon/cluster_runs.h"
#include "daemon/keeper.h"
#include "daemon/ticker.h"

#define POLL_MS 10u /* between checks whether another thread or member has done its part */

struct cluster_part {
	const struct cfg_settings *settings;
	const struct rn_logger *log;
	struct cluster_store *store;
	struct keeper *keeper;
	struct member *member;	  /* NULL: not joined */
	struct cluster_self self; /* set when the member joins */
	struct cluster_part_server server;
	struct nfs4_cluster nfs4;
	char major[NFS4_SERVER_ID_MAX + 1];
	/* True if new locks are granted, and if reclaims are taken. The cluster's thread sets them. */
	_Atomic bool grants, reclaims;
	_Atomic bool tells;   /* clients may be told that they must reclaim */
	_Atomic bool leaving; /* the end of the lease is no reason to end the process */
	_Atomic bool moves;   /* the administrator moves the member */
	_Atomic bool moved;   /* the member has left for a move, and the process may stop */
	/* The state that the last run has left is being taken, so clients need not reclaim. */
	_Atomic bool takes_state;
	_Atomic bool stop;
	/* Used by the cluster's thread alone, up to move_by. */
	bool may_reclaim; /* the cluster allows reclaims, which begin when no keeper has the last run's locks */
	bool done;    /* the other members know that this one takes no more reclaims */
	int voids_rc; /* result of the last try to drop records */
	bool voids;   /* records are to be dropped, as clients may not reclaim any more */
	uint64_t
		leave_by; /* rn_now_ms() at which a member that gives up ends its process; 0: it does not give up */
	uint64_t
		move_by; /* the same for a member that is moved; 0: it is not moved, or the process stops already */

	bool is_running; /* the member has joined, and its thread was started */
	bool rests;	 /* the thread has ended, as the next program is to be run */
	bool resumes;	 /* this program goes on as the run of the one before */
	struct member_run run;
	struct keeper_earlier earlier; /* keeper of the program before */
	pthread_t thread;
	pthread_mutex_t lock; /* a leaf: guards the members below */
	bool has_next;	      /* `next` is to be told to the cluster */
	struct cluster_digest digest, next;
	struct member_view seen; /* the cluster at the thread's last turn */
	bool lists_mounts;	 /* exports have changed, so mounts are to be listed */
	bool has_clients;	 /* `client` is to be told to the store */
	uint64_t client[CLUSTER_MOUNTS_MAX];
	unsigned nclients;

	struct cluster_conns *conns;	 /* or NULL; written by the thread "mounts" */
	int runs;			 /* descriptor for looks at others' runs; -1: none */
	struct cluster_runs_asked asked; /* questions for those looks */
	struct cluster_mounts mounts;	 /* used by mounts_ticker alone once it runs */
	struct ticker *mounts_ticker;
};

/* True as long as this server's clients may reclaim, or what they had is being taken for them. */
bool cluster_part_is_reclaiming(const struct cluster_part *p);
/* Logs that this server's clients lose their locks. */
void cluster_part_warn_voids(const struct cluster_part *p);
/* Functions that the member's state machine calls (cluster/member.h), on the cluster's thread. */
extern const struct member_calls cluster_part_calls;

/* daemon/cluster_join.c */

/* Joins, or goes on as the run of the program before. 0 or -errno, logged. */
int cluster_part_start_member(struct cluster_part *p);
/* Clients who are root could read the key of handles, and change the object: warns if an export has them. */
void cluster_part_warn_exported(const struct cluster_part *p);
/* Logs that the records of clients cannot be dropped. */
void cluster_part_tell_records(const struct cluster_part *p, int rc);
/* Has the store know through which clients of CephFS this run has its files. 0 or -errno, logged. */
int cluster_part_use_clients(struct cluster_part *p, const uint64_t *clients, unsigned n);

#endif
