/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/cluster_part_private.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "daemon/cluster_state.h"
#include "daemon/process.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/host.h"
#include "lib/util.h"
#include "vfs/lock.h"

#define LEAVE_MS 6000u /* time limit for the others to stop granting locks when this member stops */
#define TAKE_MS 10000u /* time limit until a moved run's locks may be taken again */
#define SLICE_MS 100u  /* between looks at what this server does, while the thread waits */
#define REMOVE_TRIES 16u
#define RUN_LOOKS 10u /* tries for an answer about a run, before the thread does other work */
#define RUN_LOOK_MS 5u

static bool cluster_part_blocks(void *part)
{
	const struct cluster_part *p = part;

	return !atomic_load(&p->grants);
}

static bool cluster_part_takes(void *part)
{
	const struct cluster_part *p = part;

	return atomic_load(&p->reclaims);
}

bool cluster_part_may_lock(void *part, bool reclaim)
{
	struct cluster_part *p = part;

	return atomic_load(reclaim ? &p->reclaims : &p->grants) && member_may_answer(p->member);
}

bool cluster_part_may_answer(void *part)
{
	struct cluster_part *p = part;

	if (member_may_answer(p->member))
		return true;
	/* The thread may hang in the store, or not have run yet since the process was stopped. */
	if (!atomic_exchange(&p->leaving, true)) {
		rn_err(p->log,
		       "cluster: member %s was too slow for the others, who may act for it: ends "
		       "without an answer",
		       p->settings->cluster.instance);
		process_leave(EX_TEMPFAIL);
	}
	return false;
}

void cluster_part_lost(void *part, const char *path)
{
	struct cluster_part *p = part;

	if (atomic_exchange(&p->leaving, true))
		return;
	rn_err(p->log,
	       "cluster: the file system of %s has given this machine's client up: member %s ends "
	       "without an answer; unmount and mount it again, then start the member. Its clients "
	       "may have lost their locks to others",
	       path, p->settings->cluster.instance);
	keeper_run_has_lost(p->keeper);
	process_leave(EX_TEMPFAIL);
}

_Static_assert(sizeof(((struct nfs4_member *)0)->name) == CLUSTER_NAME_SIZE, "a member's name");
_Static_assert(CFG_MEMBER_ADDRS == CLUSTER_ADDRESSES, "a member's addresses in the settings");
_Static_assert(NFS4_MEMBER_ADDRESSES == CLUSTER_ADDRESSES, "a member's addresses");

static unsigned cluster_part_members(void *part, struct nfs4_member *out, unsigned max)
{
	struct cluster_part *p = part;
	unsigned n = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->seen.object.nmembers && n < max; i++) {
		const struct cluster_member *m = &p->seen.object.member[i];

		if (m->state != CLUSTER_RUNNING)
			continue;
		memcpy(out[n].name, m->name, sizeof(out[n].name));
		out[n].own = strcmp(m->name, p->settings->cluster.instance) == 0;
		out[n].run = m->incarnation;
		memcpy(out[n].address, m->place.address, sizeof(out[n].address));
		out[n].naddresses = m->place.naddresses;
		out[n].tcp_port = m->place.tcp_port;
		out[n].rdma_port = m->place.rdma_port;
		n++;
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}

const struct nfs4_cluster *cluster_part_of_nfs4(const struct cluster_part *p)
{
	return p ? &p->nfs4 : NULL;
}

struct cluster_store_cfg cluster_part_store_cfg(const struct cfg_settings *settings)
{
	const struct cfg_cluster *set = &settings->cluster;

	return (struct cluster_store_cfg){
		.path = set->path,
		.cluster = set->name,
		.pool = set->pool,
		.ceph_conf = set->ceph_conf,
		.ceph_user = set->ceph_user,
		.ceph_fs = set->ceph_fs,
		.dead_ms = (uint32_t)set->dead_time * 1000,
		.is_rados = set->backend == CFG_BACKEND_RADOS,
	};
}

static int cluster_part_start_keeper(struct cluster_part *p)
{
	const struct keeper_cfg cfg = {
		.member = p->settings->cluster.instance,
		.store = cluster_part_store_cfg(p->settings),
		.state_dir = p->settings->server.state_dir,
		.log = p->log,
	};

	return keeper_start(&cfg, &p->keeper);
}

int cluster_part_check(const struct cfg_settings *settings, const struct rn_logger *log)
{
	const char *path = settings->cluster.path;
	int rc;

	if (!*settings->cluster.name)
		return 0;
	rc = state_dir_check(path, log);
	/* A directory that is missing is not made: perhaps the cluster file system is not mounted. */
	if (!rc && access(path, F_OK) < 0)
		rc = -errno;
	if (rc)
		rn_err(log,
		       "cluster.path %s: %s; it must be a directory on the mounted cluster file "
		       "system, of mode 0700",
		       path, rn_error_text(rc));
	return rc;
}

#define CLUSTER_SECTION "cluster"

struct saved_member {
	struct image_bytes name;
	struct member_run run;
	struct keeper_earlier keeper;
};
static const struct image_field saved_member_fields[] = {
	IMAGE_BYTES(1, struct saved_member, name),
	IMAGE_NUMBER(2, struct saved_member, run.incarnation),
	IMAGE_NUMBER(3, struct saved_member, run.beats),
	IMAGE_FD(4, struct saved_member, keeper.wake),
	IMAGE_FD(5, struct saved_member, keeper.pidfd),
};
static const struct image_kind saved_member_kind = { 1, rn_array_size(saved_member_fields),
						     saved_member_fields };

bool cluster_part_has_saved(struct image_reader *image)
{
	struct image_at at;

	return image_enter(image, CLUSTER_SECTION, &at);
}

/* Reads from the image which run this process is. */
static int cluster_part_load(struct cluster_part *p, struct image_reader *image)
{
	struct saved_member s = { .keeper = { -1, -1 } };
	const char *name = p->settings->cluster.instance;
	struct image_at at;

	if (!image_enter(image, CLUSTER_SECTION, &at) ||
	    image_get(&at, &saved_member_kind, &s) < 0 || s.keeper.wake < 0 || s.keeper.pidfd < 0)
		return -EPROTO;
	p->run = s.run;
	p->earlier = s.keeper;
	p->resumes = true;
	if (s.name.len == strlen(name) && memcmp(s.name.at, name, s.name.len) == 0)
		return 0;
	rn_err(p->log, "cluster.instance is another one than before");
	return -ESTALE;
}

static int cluster_part_open(struct cluster_part *p)
{
	const struct cluster_store_cfg cfg = cluster_part_store_cfg(p->settings);
	int rc = cluster_part_check(p->settings, p->log);

	/* The keeper starts first, since a store may start threads. */
	if (!rc)
		rc = cluster_part_start_keeper(p);
	if (rc)
		return rc;
	p->runs = cluster_runs_open(p->settings->cluster.path);
	if (p->runs < 0)
		rn_err(p->log, "cluster.path %s: cannot open the file runs: %s",
		       p->settings->cluster.path, rn_error_text(p->runs));
	return p->runs < 0 ? p->runs : cluster_store_open(&cfg, p->log, &p->store);
}

int cluster_part_new(const struct cfg_settings *settings, struct image_reader *image,
		     const struct rn_logger *log, struct cluster_part **out)
{
	const struct cfg_cluster *set = &settings->cluster;
	struct cluster_part *p;

	*out = NULL;
	if (!*set->name)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->settings = settings;
	p->log = log;
	snprintf(p->major, sizeof(p->major), "%s/%s", set->name, set->instance);
	p->nfs4 = (struct nfs4_cluster){
		.blocks_locks = cluster_part_blocks,
		.takes_reclaims = cluster_part_takes,
		.members = cluster_part_members,
		.ctx = p,
		.scope = set->name,
		.major = p->major,
		.layouts = set->pnfs,
		.data_io = (uint32_t)settings->nfs3.max_io,
	};
	p->runs = -1;
	pthread_mutex_init(&p->lock, NULL);
	cluster_runs_init(&p->asked);
	*out = p; /* the caller frees it after an error, too */
	const int rc = image ? cluster_part_load(p, image) : 0;

	return rc ? rc : cluster_part_open(p);
}

void cluster_part_free(struct cluster_part *p)
{
	if (!p)
		return;
	/* Clients' locks, if there were any, were closed when the others allowed it. */
	keeper_dismiss(p->keeper);
	if (p->member && !p->resumes)
		p->store->ops->use(p->store, &p->self, NULL, 0);
	member_free(p->member);
	cluster_conns_free(p->conns);
	cluster_mounts_free(&p->mounts);
	if (p->runs >= 0)
		close(p->runs);
	if (p->store)
		p->store->ops->close(p->store);
	pthread_mutex_destroy(&p->lock);
	cluster_runs_fini(&p->asked);
	free(p);
}

int cluster_part_secret(struct cluster_part *p, uint8_t secret[STATE_SECRET_SIZE])
{
	const struct cfg_cluster *set = &p->settings->cluster;
	const int rc = state_dir_secret(set->path, set->instance, secret, p->log);

	if (!rc)
		cluster_digest_key(secret, p->digest.key);
	return rc;
}

/* ---- the state that a run leaves when the member is moved ---- */

static int cluster_part_state_of(const struct cluster_part *p, uint64_t incarnation,
				 struct cluster_state_of *out)
{
	const struct cfg_cluster *set = &p->settings->cluster;

	*out = (struct cluster_state_of){ .dir = p->settings->server.state_dir,
					  .member = p->major,
					  .incarnation = incarnation };
	return state_dir_secret(set->path, set->instance, out->secret, p->log);
}

/* Number of the last run if it has left, and its clients' locks were not granted to others; else 0. */
static uint64_t cluster_part_last_run(const struct cluster_object *o, const char *name)
{
	const struct cluster_member *row = cluster_look(o, name);

	return row && row->state == CLUSTER_STOPPED && row->needs_grace ? row->incarnation : 0;
}

void cluster_part_take_state(struct cluster_part *p, struct image_reader **out)
{
	struct cluster_state_of of;
	enum image_fault fault = IMAGE_DAMAGED;
	struct cluster_object o;
	uint64_t version;
	int rc;

	*out = NULL;
	/* If the object cannot be read, joining will fail, and log why. */
	if (cluster_store_read(p->store, &o, &version) != 0 ||
	    cluster_part_state_of(p, cluster_part_last_run(&o, p->settings->cluster.instance),
				  &of) != 0)
		return;
	rc = cluster_state_take(&of, out, &fault);
	explicit_bzero(&of.secret, sizeof(of.secret));
	atomic_store(&p->takes_state, rc == 0);
	if (rc && rc != -ENOENT)
		rn_warn(p->log,
			"cluster: the state that member %s has left in %s cannot be used: %s; "
			"clients reclaim what they had",
			p->settings->cluster.instance, of.dir,
			rc == -ESTALE	 ? "it is not that of the last run"
			: rc == -EBADMSG ? "it is damaged"
			: rc == -EPROTO	 ? image_fault_text(fault)
					 : rn_error_text(rc));
}

int cluster_part_await_locks(const struct cluster_part *p)
{
	const uint64_t until = rn_now_ms() + TAKE_MS;

	while (!atomic_load(&p->reclaims) && !atomic_load(&p->leaving) && rn_now_ms() < until)
		rn_sleep_ms(POLL_MS);
	return atomic_load(&p->reclaims) && !atomic_load(&p->leaving) ? 0 : -ETIME;
}

void cluster_part_has_state(struct cluster_part *p)
{
	atomic_store(&p->takes_state, false);
}

bool cluster_part_moves(const struct cluster_part *p)
{
	return p && atomic_load(&p->moved);
}

int cluster_part_leave_state(const struct cluster_part *p, struct image_writer *w)
{
	struct cluster_state_of of;
	int fd, rc = image_seal(w, &fd);

	if (!rc)
		rc = cluster_part_state_of(p, p->self.incarnation, &of);
	if (rc)
		return rc;
	rc = cluster_state_write(&of, fd);
	explicit_bzero(&of.secret, sizeof(of.secret));
	return rc;
}

/* ---- calls of the member, on the thread ---- */

bool cluster_part_is_reclaiming(const struct cluster_part *p)
{
	return atomic_load(&p->takes_state) || nfs4_reclaiming(p->server.nfs4);
}

/* True if clients may want to reclaim after the next start. */
static bool cluster_part_has_holders(const struct cluster_part *p)
{
	struct nfs4_held held;
	struct nsm_stats nsm = { 0 };

	nfs4_held(p->server.nfs4, &held);
	if (p->server.nsm)
		nsm_stats(p->server.nsm, &nsm);
	return cluster_part_is_reclaiming(p) || held.opens > 0 || nsm.with_locks > 0;
}

/* Copies the member's view for other threads. Called on the cluster's thread. */
static void cluster_part_see(struct cluster_part *p)
{
	pthread_mutex_lock(&p->lock);
	member_look(p->member, &p->seen);
	pthread_mutex_unlock(&p->lock);
}

void cluster_part_warn_voids(const struct cluster_part *p)
{
	rn_warn(p->log,
		"cluster: this server's clients lose their locks of before: it has left the "
		"cluster, or was removed, or the file system has dropped them, and others may have "
		"been granted them");
}

/* Stops or resumes granting locks. The view is renewed first, so that `cluster status` shows the reason before a client has to wait. */
static void cluster_part_enforce(void *ctx, bool on)
{
	struct cluster_part *p = ctx;

	cluster_part_see(p);
	atomic_store(&p->grants, !on);
	if (on)
		vfs_lock_settle(p->server.vfs, false);
	rn_notice(p->log, "cluster: %s",
		  on ? "new locks wait, as clients of a member may reclaim theirs"
		     : "new locks are granted");
}

static void cluster_part_reclaim_allowed(void *ctx, uint64_t epoch)
{
	struct cluster_part *p = ctx;

	(void)epoch;
	p->may_reclaim = true;
}

static int cluster_part_stands(void *ctx, uint64_t run, uint64_t since)
{
	struct cluster_part *p = ctx;
	int rc;

	if (since == 0)
		return cluster_runs_stand(p->runs, run);
	rc = cluster_runs_ask(&p->asked, run, since);
	if (rc < 0)
		ticker_hurry(p->mounts_ticker);
	for (unsigned i = 0; i < RUN_LOOKS && rc == -EINPROGRESS; i++) {
		rn_sleep_ms(RUN_LOOK_MS);
		rc = cluster_runs_ask(&p->asked, run, since);
	}
	return rc;
}

static void cluster_part_reclaims_lost(void *ctx)
{
	struct cluster_part *p = ctx;

	cluster_part_warn_voids(p);
	p->voids = true;
}

/* Ends the process at once: the kernel closes the connections, and nothing that was acknowledged depends on an orderly end. */
static void cluster_part_fenced(void *ctx, const char *reason)
{
	(void)ctx;
	(void)reason; /* the member has logged it */
	process_leave(EX_TEMPFAIL);
}

/* The member leaves, and the process ends, to be started again. */
static void cluster_part_give_up(struct cluster_part *p)
{
	p->leave_by = rn_now_ms() + LEAVE_MS;
	member_leave(p->member, cluster_part_has_holders(p));
}

static void cluster_part_apart(void *ctx)
{
	struct cluster_part *p = ctx;

	if (!atomic_exchange(&p->leaving, true))
		cluster_part_give_up(p);
}

const struct member_calls cluster_part_calls = {
	.enforce = cluster_part_enforce,
	.reclaim_allowed = cluster_part_reclaim_allowed,
	.stands = cluster_part_stands,
	.reclaims_lost = cluster_part_reclaims_lost,
	.fenced = cluster_part_fenced,
	.apart = cluster_part_apart,
};

/* ---- the thread ---- */

/* Tells the cluster what a reload has changed: digests, and clients of the file system. */
static void cluster_part_take_reload(struct cluster_part *p)
{
	uint64_t client[CLUSTER_MOUNTS_MAX];
	unsigned nclients;
	bool has_clients;

	pthread_mutex_lock(&p->lock);
	if (p->has_next)
		p->digest = p->next;
	p->has_next = false;
	const struct cluster_digest digest = p->digest;

	has_clients = p->has_clients;
	nclients = p->nclients;
	memcpy(client, p->client, sizeof(client));
	p->has_clients = false;
	pthread_mutex_unlock(&p->lock);
	member_set_digest(p->member, &digest);
	if (has_clients && cluster_part_use_clients(p, client, nclients) != 0) {
		pthread_mutex_lock(&p->lock);
		p->has_clients = true; /* tries again at the next turn */
		pthread_mutex_unlock(&p->lock);
	}
}

/* Begins to take reclaims. A keeper of an earlier run still has the same locks until it sees in the object that it may release them. */
static void cluster_part_begin_reclaims(struct cluster_part *p)
{
	if (!p->may_reclaim || p->done || p->reclaims || keeper_of_earlier_run(p->keeper) != 0)
		return;
	if (atomic_load(&p->takes_state)) {
		atomic_store(&p->reclaims, true); /* cluster_part_await_locks() waits for this */
		return;
	}
	rn_notice(p->log, "cluster: no member grants new locks: clients may reclaim theirs");
	atomic_store(&p->reclaims, true);
	atomic_store(&p->tells, true);
	p->server.tell(p->server.ctx);
}

/* Has the member leave if its keeper has ended, as a crash would drop the locks then. Ends the process once it has left. */
static void cluster_part_watch_keeper(struct cluster_part *p)
{
	if (!p->leave_by && !keeper_lives(p->keeper) && !atomic_exchange(&p->leaving, true)) {
		rn_err(p->log,
		       "cluster: the process that keeps the locks of member %s over a crash has "
		       "ended: the member leaves the cluster, and has to be started again",
		       p->settings->cluster.instance);
		cluster_part_give_up(p);
	}
	if (p->leave_by && (member_may_close(p->member) || rn_now_ms() >= p->leave_by))
		process_leave(EX_TEMPFAIL);
}

/* A member that is moved leaves while calls are answered. The process stops in order when the others grant no locks. */
static void cluster_part_watch_move(struct cluster_part *p)
{
	if (p->moves && !atomic_exchange(&p->leaving, true)) {
		p->move_by = rn_now_ms() + member_object(p->member)->dead_ms + LEAVE_MS;
		member_leave(p->member, cluster_part_has_holders(p));
	}
	if (!p->move_by)
		return;
	if (member_may_close(p->member)) {
		p->move_by = 0;
		atomic_store(&p->moved, true);
		kill(getpid(), SIGTERM);
	} else if (rn_now_ms() >= p->move_by) {
		rn_err(p->log,
		       "cluster: other members still grant locks: the keeper has those of member "
		       "%s until they do not",
		       p->settings->cluster.instance);
		process_leave(EX_OK); /* the member is not to be started here again */
	}
}

void cluster_part_move(struct cluster_part *p)
{
	atomic_store(&p->moves, true);
}

/* Drops the records of clients that may not reclaim; tried again at each turn until it succeeds. */
static void cluster_part_drop_records(struct cluster_part *p)
{
	int rc;

	if (!p->voids)
		return;
	rc = nfs4_grace_end(p->server.nfs4);
	p->voids = rc != 0;
	if (rc && rc != p->voids_rc)
		cluster_part_tell_records(p, rc);
	p->voids_rc = rc;
}

/* Tells the other members when this one's clients have reclaimed. Waits for calls that still reclaim. */
static void cluster_part_end_reclaims(struct cluster_part *p)
{
	if (p->done || cluster_part_is_reclaiming(p))
		return;
	p->done = true;
	atomic_store(&p->reclaims, false);
	vfs_lock_settle(p->server.vfs, true);
	member_reclaimed(p->member);
	/* Clients that were not told in time learn that their locks are lost. */
	if (!atomic_exchange(&p->tells, true))
		p->server.tell(p->server.ctx);
}

/* True if the next turn is due at once. Does what cannot wait for it. was_leaving: p->leaving at the last turn. */
static bool cluster_part_has_news(struct cluster_part *p, bool was_leaving)
{
	cluster_part_watch_keeper(p);
	cluster_part_watch_move(p);
	cluster_part_begin_reclaims(p);
	return p->stop || p->leaving != was_leaving || (!p->done && !cluster_part_is_reclaiming(p));
}

/* Waits for ms milliseconds, or until the object changes or the next turn is due. */
static void cluster_part_wait(struct cluster_part *p, unsigned ms, bool was_leaving)
{
	const uint64_t until = rn_now_ms() + ms;
	uint64_t now = rn_now_ms();

	while (now < until && !cluster_part_has_news(p, was_leaving)) {
		const uint64_t slice = rn_min(SLICE_MS, until - now), began = now;

		member_wait(p->member, (unsigned)slice);
		now = rn_now_ms();
		if (now < began + slice)
			return; /* the object has changed */
	}
}

/* The tick of the thread "mounts", which may wait for file systems. */
static void cluster_part_look_at_mounts(void *ctx)
{
	struct cluster_part *p = ctx;
	struct cluster_mounts next;
	const char *lost;
	bool changed;

	cluster_runs_answer(&p->asked, p->runs);
	pthread_mutex_lock(&p->lock);
	changed = p->lists_mounts;
	p->lists_mounts = false;
	pthread_mutex_unlock(&p->lock);
	if (changed && cluster_mounts_list(p->settings, p->server.exports, &next, p->log) == 0) {
		cluster_mounts_free(&p->mounts);
		p->mounts = next;
		pthread_mutex_lock(&p->lock);
		p->nclients = cluster_mounts_clients(&p->mounts, p->client);
		p->has_clients = true;
		pthread_mutex_unlock(&p->lock);
	}
	cluster_conns_note(p->conns);
	lost = cluster_mounts_lost(&p->mounts);
	if (lost)
		cluster_part_lost(p, lost);
}

static void *cluster_part_main(void *arg)
{
	struct cluster_part *p = arg;

	while (!p->stop) {
		cluster_part_take_reload(p);
		cluster_part_drop_records(p);
		cluster_part_end_reclaims(p);
		const bool leaving = p->leaving;
		const unsigned ms = member_step(p->member);

		cluster_part_see(p);
		cluster_part_wait(p, ms, leaving);
	}
	return NULL;
}

static int cluster_part_run(struct cluster_part *p)
{
	const int rc = -pthread_create(&p->thread, NULL, cluster_part_main, p);

	if (!rc)
		pthread_setname_np(p->thread, "cluster");
	return rc;
}

int cluster_part_join(struct cluster_part *p, const struct cluster_part_server *server)
{
	int rc;

	p->server = *server;
	cluster_digest_settings(p->settings, p->digest.settings);
	rc = cluster_digest_exports(server->exports, p->digest.exports);
	if (!rc)
		rc = cluster_mounts_list(p->settings, server->exports, &p->mounts, p->log);
	if (!rc)
		rc = cluster_part_start_member(p);
	if (!rc) {
		cluster_part_see(p); /* layouts name the members as data servers */
		rc = cluster_conns_new(p->settings, server->conns, p->resumes, p->log, &p->conns);
	}
	if (!rc)
		rc = ticker_start("mounts", cluster_part_look_at_mounts, p, &p->mounts_ticker);
	if (!rc)
		rc = cluster_part_run(p);
	if (rc)
		return rc;
	p->is_running = true;
	cluster_part_warn_exported(p);
	rn_notice(p->log, "cluster %s: %s member %s (experimental); no delegations are given",
		  p->settings->cluster.name, p->resumes ? "goes on as" : "joined as",
		  p->settings->cluster.instance);
	return 0;
}

void cluster_part_goes_on(struct cluster_part *p)
{
	if (!p || !p->resumes)
		return;
	keeper_end_earlier(&p->earlier);
	p->resumes = false;
}

void cluster_part_cannot_go_on(const struct cluster_part *p)
{
	if (!p || !p->resumes)
		return;
	rn_err(p->log,
	       "cluster: member %s ends, and has to be started again; its keeper has the "
	       "locks of its clients",
	       p->settings->cluster.instance);
	process_leave(EX_UNAVAILABLE);
}

const char *cluster_part_may_save(const struct cluster_part *p)
{
	if (!p)
		return NULL;
	if (atomic_load(&p->leaving) || atomic_load(&p->moves))
		return "the member leaves its cluster";
	return atomic_load(&p->grants) ? NULL : "the cluster's grace period is not over";
}

/* Waits for the thread, as the store must not be left in the middle of a change. */
void cluster_part_save(struct cluster_part *p, struct image_writer *w)
{
	if (!p)
		return;
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	p->rests = true;
	const struct saved_member s = {
		.name = { (const uint8_t *)p->self.name, (uint32_t)strlen(p->self.name) },
		.run = member_run(p->member),
		.keeper = keeper_for_next(p->keeper),
	};

	image_begin(w, CLUSTER_SECTION);
	image_put(w, &saved_member_kind, &s);
}

void cluster_part_listens(struct cluster_part *p)
{
	if (p)
		cluster_conns_end_former(p->conns);
}

bool cluster_part_tells(const struct cluster_part *p)
{
	return atomic_load(&p->tells);
}

void cluster_part_reloaded(struct cluster_part *p)
{
	struct cluster_digest digest;

	pthread_mutex_lock(&p->lock);
	p->lists_mounts = true;
	digest = p->has_next ? p->next : p->digest;
	pthread_mutex_unlock(&p->lock);
	cluster_part_warn_exported(p);
	if (cluster_digest_exports(p->server.exports, digest.exports) != 0)
		return;
	pthread_mutex_lock(&p->lock);
	p->next = digest;
	p->has_next = true;
	pthread_mutex_unlock(&p->lock);
}

static void cluster_part_stop_looking(struct cluster_part *p)
{
	ticker_stop(p->mounts_ticker);
	p->mounts_ticker = NULL;
}

void cluster_part_leave(struct cluster_part *p)
{
	const uint64_t until = rn_now_ms() + LEAVE_MS;

	if (!p)
		return;
	if (!p->is_running) {
		cluster_part_stop_looking(p);
		return;
	}
	member_leave(p->member, cluster_part_has_holders(p));
	atomic_store(&p->leaving, true);
	if (p->rests) {
		atomic_store(&p->stop, false);
		if (cluster_part_run(p) != 0)
			process_leave(EX_TEMPFAIL);
		p->rests = false;
	}
	while (!member_may_close(p->member) && rn_now_ms() < until)
		rn_sleep_ms(POLL_MS);
	if (!member_may_close(p->member)) {
		/* An orderly end would unlock what clients have locked. */
		rn_warn(p->log,
			"cluster: other members still grant locks after %u s: the keeper has those "
			"of member %s until they do not",
			LEAVE_MS / 1000, p->settings->cluster.instance);
		process_leave(EX_TEMPFAIL);
	}
	rn_notice(p->log, "cluster: member %s has left", p->settings->cluster.instance);
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	cluster_part_stop_looking(p);
	p->is_running = false;
}

void cluster_part_look(struct cluster_part *p, struct cluster_part_view *out)
{
	*out = (struct cluster_part_view){ .cluster = p->settings->cluster.name,
					   .instance = p->settings->cluster.instance,
					   .grants = atomic_load(&p->grants) };
	pthread_mutex_lock(&p->lock);
	out->seen = p->seen;
	pthread_mutex_unlock(&p->lock);
	const uint64_t now = rn_clock_ns(CLOCK_BOOTTIME) / RN_NS_PER_MS;

	if (out->seen.lease_until_ms > now)
		out->lease_left_ms = out->seen.lease_until_ms - now;
	if (out->seen.grace_ms)
		out->grace_ms = now - out->seen.grace_ms + 1;
	for (unsigned i = 0; i < out->seen.object.nmembers; i++)
		out->beat_age_ms[i] = now - out->seen.beat_ms[i];
}

int cluster_part_remove(const struct cluster_part *p, const char *name, enum cluster_refusal *why)
{
	struct cluster_store *store; /* a store of its own, as only one thread uses one */
	struct cluster_object o;
	uint64_t version;
	const struct cluster_store_cfg cfg = cluster_part_store_cfg(p->settings);
	int rc = cluster_store_open(&cfg, p->log, &store);

	if (rc)
		return rc;
	rc = -RN_ECHANGED;
	for (unsigned i = 0; i < REMOVE_TRIES && rc == -RN_ECHANGED; i++) {
		rc = cluster_store_read(store, &o, &version);
		if (rc)
			break;
		*why = cluster_remove(&o, name);
		rc = *why == CLUSTER_OK ? cluster_store_swap(store, version, &o) : -EPERM;
	}
	store->ops->close(store);
	return rc;
}
