/* SPDX-License-Identifier: BSD-2-Clause */
/* Joining the cluster: what is checked first, the records of clients that may not reclaim, and how the next program of a run goes on. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/cluster_part_private.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/host.h"
#include "lib/util.h"
#include "transport/rdma/rdma_server.h"

#define VOID_MS 10000u /* time limit for dropping records on disk */

void cluster_part_warn_exported(const struct cluster_part *p)
{
	const char *path = p->settings->cluster.path;
	struct exports_now now;

	exports_now_get(p->server.exports, &now);
	for (unsigned i = 0; i < now.table->n_exports; i++) {
		const char *dir = now.table->exports[i].path;
		const size_t len = strlen(dir);

		if (strncmp(path, dir, len) == 0 &&
		    (path[len] == '/' || path[len] == '\0' || len == 1))
			rn_warn(p->log,
				"cluster.path %s is below the export %s: its clients may read the "
				"key of file handles there; move it",
				path, dir);
	}
	exports_now_put(&now);
}

void cluster_part_tell_records(const struct cluster_part *p, int rc)
{
	rn_err(p->log, "cluster: the records of clients cannot be dropped: %s; free space in %s",
	       rn_error_text(rc), p->settings->server.state_dir);
}

/* Drops the records of clients: no client can reclaim after that. */
static int cluster_part_void_records(struct cluster_part *p)
{
	const uint64_t until = rn_now_ms() + VOID_MS;
	int rc;

	cluster_part_warn_voids(p);
	while ((rc = nfs4_grace_end(p->server.nfs4)) != 0 && rn_now_ms() < until)
		rn_sleep_ms(POLL_MS);
	if (rc)
		cluster_part_tell_records(p, rc);
	return rc;
}

/* Logs each running member whose digests differ from this one's. */
static void cluster_part_log_differences(const struct cluster_part *p,
					 const struct cluster_object *o)
{
	for (unsigned i = 0; i < o->nmembers; i++) {
		const struct cluster_member *m = &o->member[i];
		const unsigned differs = cluster_differences(&m->digest, &p->digest);

		if (m->state != CLUSTER_RUNNING || !differs ||
		    strcmp(m->name, p->settings->cluster.instance) == 0)
			continue;
		rn_err(p->log,
		       "cluster: differs from member %s, which runs:%s%s%s; members need the same "
		       "handle.key in cluster.path, the same exports, and the "
		       "same " CLUSTER_DIGEST_SETTINGS,
		       m->name, differs & CLUSTER_KEY ? " handle key" : "",
		       differs & CLUSTER_EXPORTS ? " exports" : "",
		       differs & CLUSTER_SETTINGS ? " settings" : "");
	}
}

static int cluster_part_refused(const struct cluster_part *p, enum cluster_refusal why,
				const struct cluster_object *o)
{
	rn_err(p->log, "cluster %s: member %s may not join: %s", p->settings->cluster.name,
	       p->settings->cluster.instance, cluster_refusal_text(why));
	if (why == CLUSTER_UNLIKE)
		cluster_part_log_differences(p, o);
	return -EPERM;
}

/* Logs the way out when the shared object is gone or damaged, so that no member knows which locks clients may reclaim. */
static void cluster_part_tell_remedy(const struct cluster_part *p, const char *what)
{
	const struct cfg_cluster *set = &p->settings->cluster;

	if (set->backend == CFG_BACKEND_FILE)
		rn_err(p->log,
		       "%s: stop all members, remove object and beat.* in %s, and start them; "
		       "clients then lose their locks",
		       what, set->path);
	else
		rn_err(p->log,
		       "%s: stop all members, remove it by: rados -p %s rm ringnfs.%s, and the "
		       "same with .beats and .mounts behind the name, and start them; clients then "
		       "lose their locks",
		       what, set->pool, set->name);
}

/* Reads the object before the member joins. If this member has a heartbeat but there is no object, the object was lost. */
static int cluster_part_read(struct cluster_part *p, struct cluster_object *o, uint64_t *version)
{
	struct cluster_beat beat;
	const int rc = cluster_store_read(p->store, o, version);

	if (rc == -EBADMSG) {
		cluster_part_tell_remedy(p, cluster_store_error_text(rc));
	} else if (rc) {
		rn_err(p->log, "the cluster's object cannot be read: %s",
		       cluster_store_error_text(rc));
	} else if (*version == 0 &&
		   p->store->ops->look(p->store, p->settings->cluster.instance, &beat) != -ENOENT) {
		cluster_part_tell_remedy(p, "the cluster's object is gone");
		return -ENOENT;
	}
	return rc;
}

/*
 * Records that the member will not be allowed are dropped before it joins: a crash after the joining would else make them look like those of a
 * member that ran. cfg->starter then says that there are none.
 */
static int cluster_part_prepare(struct cluster_part *p, struct member_cfg *cfg)
{
	struct cluster_starter *starter = &cfg->starter;
	struct cluster_object o;
	struct cluster_self self;
	enum cluster_refusal why;
	uint64_t version;
	int rc = cluster_part_read(p, &o, &version);

	if (rc)
		return rc;
	rc = member_lose_before(cfg, &o);
	if (rc) {
		rn_err(p->log, "cluster.path %s: cannot look for locks in the file runs: %s",
		       p->settings->cluster.path, rn_error_text(rc));
		return rc;
	}
	why = cluster_join(&o, starter, &self);
	if (why != CLUSTER_OK)
		return cluster_part_refused(p, why, &o);
	if (!starter->has_records || cluster_look(&o, starter->name)->needs_grace)
		return 0;
	if (atomic_load(&p->takes_state))
		return -ESTALE;
	starter->has_records = false;
	return cluster_part_void_records(p);
}

static void cluster_part_place(const struct cluster_part *p, struct cluster_place *place)
{
	const struct cfg_settings *set = p->settings;
	const struct cfg_addrs *addrs = &set->cluster.address;

	memset(place, 0, sizeof(*place));
	place->naddresses = addrs->n;
	for (unsigned i = 0; i < place->naddresses; i++)
		rn_address_map((const struct sockaddr *)&addrs->addrs[i], place->address[i]);
	if (set->tcp.enabled)
		place->tcp_port = (uint16_t)set->tcp.port;
	if (set->rdma.enabled != CFG_NO && rr_device_is_there())
		place->rdma_port = (uint16_t)set->rdma.port;
}

int cluster_part_use_clients(struct cluster_part *p, const uint64_t *clients, unsigned n)
{
	const int rc = p->store->ops->use(p->store, &p->self, clients, n);

	if (rc == -EBUSY)
		rn_err(p->log, "cluster: another member has its files through the same mount of "
			       "CephFS; each member needs a mount of its own");
	else if (rc == -ESHUTDOWN)
		rn_err(p->log,
		       "cluster: this machine's client of the file system is being "
		       "evicted, as it was that of a dead member; unmount and mount it again");
	else if (rc)
		rn_err(p->log,
		       "cluster: the store cannot be told of this machine's client of the file "
		       "system: %s",
		       cluster_store_error_text(rc));
	return rc;
}

/* Once the store knows the clients, nobody evicts them; they must not have been evicted before. */
static int cluster_part_use_mounts(struct cluster_part *p)
{
	uint64_t clients[CLUSTER_MOUNTS_MAX];
	const unsigned n = cluster_mounts_clients(&p->mounts, clients);
	int rc = cluster_part_use_clients(p, clients, n);

	if (!rc && cluster_mounts_lost(&p->mounts))
		rc = -ESHUTDOWN;
	if (!rc && n == 0 && p->settings->cluster.backend == CFG_BACKEND_RADOS)
		rn_warn(p->log, "cluster: nothing here is on a CephFS that tells its client: when "
				"this machine dies, its locks stay until the file system itself "
				"gives it up");
	return rc;
}

/* Goes on as the run of the program before. The first step, before calls are taken, grants locks again unless there is a grace. */
static int cluster_part_resume(struct cluster_part *p, const struct member_cfg *cfg)
{
	int rc = member_resume(cfg, &p->run, &p->member);

	if (rc) {
		rn_err(p->log, "cluster %s: cannot go on as member %s: %s",
		       p->settings->cluster.name, cfg->starter.name,
		       rc == -ESTALE
			       ? "the others have given it up, or cluster.address, the ports, the "
				 "handle key or settings that members have in common differ now"
			       : cluster_store_error_text(rc));
		return rc;
	}
	p->done = true;
	atomic_store(&p->tells, true);
	snprintf(p->self.name, sizeof(p->self.name), "%s", cfg->starter.name);
	p->self.incarnation = p->run.incarnation;
	member_set_digest(p->member, &p->digest);
	rc = keeper_run_is(p->keeper, p->self.incarnation);
	if (!rc)
		rc = cluster_part_use_mounts(p);
	if (!rc)
		(void)member_step(p->member);
	return rc;
}

int cluster_part_start_member(struct cluster_part *p)
{
	struct member_cfg cfg = {
		.starter = { .name = p->settings->cluster.instance,
			     .digest = p->digest,
			     .has_records = cluster_part_is_reclaiming(p),
			     .dead_ms = (uint32_t)p->settings->cluster.dead_time * 1000 },
		.store = p->store,
		.calls = &cluster_part_calls,
		.ctx = p,
		.log = p->log,
	};
	struct cluster_object o;
	enum cluster_refusal why;
	uint64_t version;
	int rc;

	cluster_part_place(p, &cfg.starter.place);
	if (p->resumes)
		return cluster_part_resume(p, &cfg);
	rc = cluster_part_prepare(p, &cfg);

	if (rc)
		return rc;
	const uint64_t until = rn_now_ms() + cfg.starter.dead_ms;

	/* Another member may be slow with a change, as on a busy disk. */
	do
		rc = member_start(&cfg, &p->member, &why);
	while (rc == -ETIMEDOUT && rn_now_ms() < until);
	if (rc == -EPERM && why != CLUSTER_OK && cluster_store_read(p->store, &o, &version) == 0)
		return cluster_part_refused(p, why, &o);
	if (rc) {
		rn_err(p->log, "cluster %s: cannot join: %s", p->settings->cluster.name,
		       cluster_store_error_text(rc));
		return rc;
	}
	snprintf(p->self.name, sizeof(p->self.name), "%s", cfg.starter.name);
	p->self.incarnation = cluster_look(member_object(p->member), cfg.starter.name)->incarnation;
	rc = keeper_run_is(p->keeper, p->self.incarnation);
	if (!rc)
		rc = cluster_part_use_mounts(p);
	if (rc)
		return rc;
	atomic_store(&p->tells, !member_has_reclaims(p->member));
	/* The administrator may have removed the member since the records were checked. */
	if (!cfg.starter.has_records || member_has_reclaims(p->member))
		return 0;
	return atomic_load(&p->takes_state) ? -ESTALE : cluster_part_void_records(p);
}
