/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's part in a cluster, for the files that it is made of. */
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

#define POLL_MS 10u /* between looks at what others change */

struct cluster_part {
	const struct cfg_settings *settings;
	const struct rn_logger *log;
	struct cluster_store *store;
	struct keeper *keeper;
	struct member *member;	  /* NULL: not joined */
	struct cluster_self self; /* once it has joined */
	struct cluster_part_server server;
	struct nfs4_cluster nfs4;
	char major[NFS4_SERVER_ID_MAX + 1];
	/* True if new locks are granted, and if reclaims are taken. Changed by the thread. */
	_Atomic bool grants, reclaims;
	_Atomic bool tells;   /* clients may be told that they must reclaim */
	_Atomic bool leaving; /* the end of the lease is no reason to end the process */
	_Atomic bool moves;   /* the administrator moves the member */
	_Atomic bool moved;   /* it has left, and the process may stop */
	/* The state that the last run has left is being taken, so clients need not reclaim. */
	_Atomic bool takes_state;
	_Atomic bool stop;
	/* The thread's. */
	bool may_reclaim; /* the cluster allows reclaims; they begin when no keeper has the locks of before */
	bool done;    /* the end of reclaims was told */
	int voids_rc; /* of the last try to drop them */
	bool voids;   /* clients may not reclaim any more: their records are to be dropped */
	uint64_t
		leave_by; /* rn_now_ms(): the process ends then, as the member gives up; 0: it does not */
	uint64_t
		move_by; /* the same of a member that is moved; 0: it is not, or the process is about to stop */

	bool is_running; /* it takes part */
	bool rests;	 /* its thread has ended, as the next program is to be run */
	bool resumes;	 /* goes on as the run of the program before in this process */
	struct member_run run;
	struct keeper_earlier earlier; /* keeper of that program */
	pthread_t thread;
	pthread_mutex_t lock; /* a leaf: guards the members below */
	bool has_next;	      /* next is to be told */
	struct cluster_digest digest, next;
	struct member_view seen; /* as of the last turn */
	bool lists_mounts;	 /* exports have changed */
	bool has_clients;	 /* clients are to be told to the store */
	uint64_t client[CLUSTER_MOUNTS_MAX];
	unsigned nclients;

	struct cluster_conns *conns;	 /* or NULL; noted by the ticker */
	int runs;			 /* descriptor for looks at others' runs; -1: none */
	struct cluster_runs_asked asked; /* those looks */
	struct cluster_mounts mounts;	 /* the ticker's, once there is one */
	struct ticker *mounts_ticker;
};

void cluster_part_rest(unsigned ms);
/* True as long as this server's clients may reclaim, or what they had is being taken for them. */
bool cluster_part_is_reclaiming(const struct cluster_part *p);
void cluster_part_warn_voids(const struct cluster_part *p);
/* What the cluster asks of the member; on its thread. */
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
