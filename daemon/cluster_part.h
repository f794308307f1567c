/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's part in the cluster that [cluster] of ringnfs.conf names: its thread, which takes part in the common grace period
 * (cluster/member.h), and the checks that the rest of the server makes before it locks, lets a client reclaim, or answers.
 *
 * Without that section there is no part: struct cluster_part * is NULL, and the checks are left out.
 */
#ifndef RN_DAEMON_CLUSTER_PART_H
#define RN_DAEMON_CLUSTER_PART_H

#include "cluster/member.h"
#include "conf/settings.h"
#include "daemon/exports/export_set.h"
#include "daemon/state_dir.h"
#include "lib/image.h"
#include "lib/log.h"
#include "nfs4/nfs4_server.h"
#include "nsm/nsm.h"
#include "vfs/vfs.h"

struct cluster_part;

/* The store of the cluster that the settings name, which must outlive it. */
struct cluster_store_cfg cluster_part_store_cfg(const struct cfg_settings *settings);

/* If the settings name a cluster: checks that its directory exists, and that no other user may write to it. 0 or -errno, logged. */
int cluster_part_check(const struct cfg_settings *settings, const struct rn_logger *log);

/* Opens that directory, and starts the keeper (daemon/keeper.h), so before other threads and before secrets are read. *out is
 * NULL if the server is alone. image: of the program before this one, as whose run this one goes on; or NULL. 0 or -errno, logged. */
int cluster_part_new(const struct cfg_settings *settings, struct image_reader *image,
		     const struct rn_logger *log, struct cluster_part **out);
/* Frees the part when no thread uses it any more and clients' files are closed. NULL is allowed. */
void cluster_part_free(struct cluster_part *p);

/*
 * Takes the state that this member's last run has left because it was moved (daemon/cluster_state.h), unless others may have been granted what its
 * clients had. *out is NULL if there is none; why one cannot be used is in the log. The caller frees it. After that the member joins as one whose
 * clients reclaim, until cluster_part_has_state().
 */
void cluster_part_take_state(struct cluster_part *p, struct image_reader **out);
/* The member has joined: waits until no member grants new locks and no keeper has those of the last run, so that they may be locked again. 0, or -ETIME:
 * that takes too long. */
int cluster_part_await_locks(const struct cluster_part *p);
/* That state is complete, and its locks are taken: clients need not reclaim. */
void cluster_part_has_state(struct cluster_part *p);

/* The key of file handles, which all members have. 0 or -errno, logged. */
int cluster_part_secret(struct cluster_part *p, uint8_t secret[STATE_SECRET_SIZE]);
/* vfs_config.may_lock. */
bool cluster_part_may_lock(void *part, bool reclaim);
/* rpc_server.may_answer. Ends the process if the member was too slow. */
bool cluster_part_may_answer(void *part);
/* vfs_config.lost. Ends the process. */
void cluster_part_lost(void *part, const char *path);
/* For nfs4_config.cluster; valid as long as the part. */
const struct nfs4_cluster *cluster_part_of_nfs4(const struct cluster_part *p);

/* Borrowed pointers, which outlive cluster_part_leave(). */
struct cluster_part_server {
	struct vfs *vfs;
	struct exports *exports;
	struct nfs4_server *nfs4;
	struct nsm *nsm; /* or NULL */
	struct rpc_conns *conns;
	/* Called when clients may be told that they must reclaim (cluster_part_tells()); on the cluster's thread. */
	void (*tell)(void *ctx);
	void *ctx;
};

/* Joins the cluster, drops records whose locks others may have been granted, and starts the thread. The exports are in force, records
 * were read, and no call was answered. 0 or -errno, logged. */
int cluster_part_join(struct cluster_part *p, const struct cluster_part_server *server);
/* This program has taken over the state of the one before, and answers calls: the keeper of the one before is dismissed. */
void cluster_part_goes_on(struct cluster_part *p);
/* Ends the process if it cannot go on as the run of the program before: an orderly end would unlock what the keeper has locked. NULL is allowed. */
void cluster_part_cannot_go_on(const struct cluster_part *p);

/* NULL, or why the next program in this process cannot go on as this run. */
const char *cluster_part_may_save(const struct cluster_part *p);
/* True if the image was written by a member of a cluster. */
bool cluster_part_has_saved(struct image_reader *image);
/* Adds the member's run and its keeper to the image. No call is under way, and none comes before cluster_part_leave(). NULL is allowed. */
void cluster_part_save(struct cluster_part *p, struct image_writer *w);

/* Called when the member has joined and listens: clients that wait for the last run are told that their connections are gone. NULL is allowed. */
void cluster_part_listens(struct cluster_part *p);
/* True if clients may be told that they must reclaim. */
bool cluster_part_tells(const struct cluster_part *p);
/* Called after the exports were read again. */
void cluster_part_reloaded(struct cluster_part *p);
/*
 * The server stops: no new locks are granted any more. Returns when the others grant none either, so that those that clients have may be closed; the
 * thread has ended then. If that takes longer than some seconds, the process ends here. Does nothing if the server has not joined. NULL is allowed.
 */
void cluster_part_leave(struct cluster_part *p);

/*
 * The member is to be started elsewhere: it leaves while calls are answered, and when no other member grants locks, the process is sent SIGTERM.
 * If they do for longer than it takes to declare one dead, the process ends at once. Any thread; does not wait.
 */
void cluster_part_move(struct cluster_part *p);
/* True if the member is moved, and no other member grants locks: it may leave its state. NULL is allowed. */
bool cluster_part_moves(const struct cluster_part *p);
/* Leaves the image in the state directory, for this member's next run. No call is answered any more. 0 or -errno. */
int cluster_part_leave_state(const struct cluster_part *p, struct image_writer *w);

/* The cluster as it was at the last turn of the thread, with ages as of now. */
struct cluster_part_view {
	const char *cluster, *instance; /* borrowed from the settings */
	bool grants;			/* new locks are granted */
	struct member_view seen;	/* without members before the first turn */
	uint64_t lease_left_ms;
	uint64_t grace_ms; /* age of the grace, as this member saw it; 0: none */
	uint64_t beat_age_ms[CLUSTER_MEMBERS]; /* of the heartbeats of seen.object.member */
};
void cluster_part_look(struct cluster_part *p, struct cluster_part_view *out);
/* The administrator gives up a member that does not run (cluster_remove()). -EPERM: refused, *why says why; others: the store failed.
 * Any thread; waits for the file system. */
int cluster_part_remove(const struct cluster_part *p, const char *name, enum cluster_refusal *why);

/*
 * Digests of what members must have in common (daemon/cluster_digest.c). Nobody finds the key by its digest, which all who may read the
 * cluster's directory can read. That of the exports is of their paths, clients and options in their order, without files, lines and comments:
 * 0 or -ENOMEM.
 */
void cluster_digest_key(const uint8_t key[STATE_SECRET_SIZE], uint8_t out[CLUSTER_DIGEST_SIZE]);
int cluster_digest_exports(struct exports *exports, uint8_t out[CLUSTER_DIGEST_SIZE]);
void cluster_digest_settings(const struct cfg_settings *set, uint8_t out[CLUSTER_DIGEST_SIZE]);
/* Names of the settings in the digest, for messages. */
#define CLUSTER_DIGEST_SETTINGS                                                                    \
	"cluster.name, nfs2.enabled, nfs3.enabled, nfs4.minor_min, nfs4.minor_max, "               \
	"nfs4.lease_time, nfs4.grace_time, nlm.statd, vfs.handle_mac"

#endif
