/* SPDX-License-Identifier: BSD-2-Clause */
/* The RPC programs that are served, and connections to other servers. */
#include "daemon/programs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/names/names.h"
#include "daemon/tls_setup.h"
#include "gss/gss.h"
#include "lib/clock.h"
#include "lib/host.h"
#include "nfs2/nfs2_server.h"
#include "nfs3/nfs3_server.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_server.h"
#include "nsm/nsm.h"
#include "transport/tcp/tcp_server.h"

void dialer_init(struct dialer *d)
{
	pthread_mutex_init(&d->lock, NULL);
	d->tcp = NULL;
}

void dialer_fini(struct dialer *d)
{
	pthread_mutex_destroy(&d->lock);
}

/* The lock is held for system calls that do not wait, and keeps the transport alive. */
static int dialer_dial_tcp(void *ctx, const struct rpc_route *route, struct rpc_backchannel **out)
{
	struct dialer *d = ctx;
	int rc = -ENOTCONN;

	pthread_mutex_lock(&d->lock);
	if (d->tcp)
		rc = tcp_server_dial(d->tcp, route, out);
	pthread_mutex_unlock(&d->lock);
	return rc;
}

/* For the programs; d must outlive them. */
static struct rpc_dialer dialer_view(struct dialer *d)
{
	return (struct rpc_dialer){ .dial = dialer_dial_tcp, .ctx = d };
}

void dialer_open(struct dialer *d, struct tcp_server *tcp)
{
	pthread_mutex_lock(&d->lock);
	d->tcp = tcp;
	pthread_mutex_unlock(&d->lock);
}

void dialer_close(struct dialer *d)
{
	dialer_open(d, NULL);
}

/* The grace period is common to the protocols. */
static bool in_grace(void *ctx, enum nfs3_grace what)
{
	const struct programs *p = ctx;

	if (!p->nfs4)
		return (what == NFS3_RECLAIMING || what == NFS3_LOCKS_WAIT) &&
		       rn_now_ns() < p->grace_until_ns;
	switch (what) {
	case NFS3_LOCKS_WAIT:
		return nfs4_blocks_locks(p->nfs4);
	case NFS3_IO_WAITS:
		return nfs4_blocks_io(p->nfs4);
	case NFS3_RECLAIMS_LATER:
		return nfs4_takes_reclaims_later(p->nfs4);
	default: /* NFS3_RECLAIMING */
		return nfs4_takes_reclaim(p->nfs4);
	}
}

static bool hosts_may_reclaim(void *ctx)
{
	const struct programs *p = ctx;

	return p->nfs4 ? nfs4_reclaiming(p->nfs4) : rn_now_ns() < p->grace_until_ns;
}

static bool rebooted(void *ctx, const struct nsm_reboot *r)
{
	const struct programs *p = ctx;

	return nlm_host_rebooted(p->nfs3, r);
}

static const char *idmap_file(const struct cfg_settings *set)
{
	return set->nfs4.idmap_file && set->nfs4.idmap_file[0] ? set->nfs4.idmap_file : NULL;
}

/* Without a key to serve with there is no RPCSEC_GSS, which is an error only if the administrator asks for it. */
static int start_gss(const struct programs_config *cfg, struct programs *p, struct rpc_server *rpc)
{
	const struct cfg_gss *set = &cfg->settings->gss;
	const struct rn_logger *log = &cfg->logs->of[LOG_GSS];
	const struct gss_config gss = {
		.keytab = set->keytab && set->keytab[0] ? set->keytab : NULL,
		.state_dir = cfg->settings->server.state_dir,
		.principal = set->principal,
		.max_contexts = (unsigned)set->max_contexts,
		.budget = cfg->budget,
		.log = log,
	};
	const char *keytab = gss.keytab ? gss.keytab : "the system's keytab";
	char why[GSS_WHY] = "";
	int rc;

	if (set->enabled == CFG_NO)
		return 0;
	rc = gss_new(&gss, &p->gss, why);
	if (rc == -EACCES && set->enabled == CFG_AUTO) {
		rn_info(log, "no Kerberos: %s has no key for %s: %s", keytab, set->principal, why);
		return 0;
	}
	if (rc == -EACCES)
		rn_err(log,
		       "gss.enabled is yes, but %s has no key for %s: %s; put one there, or set "
		       "gss.enabled = auto",
		       keytab, set->principal, why);
	if (rc)
		return rc;
	p->idmap = idmap_new(cfg->askers, idmap_file(cfg->settings));
	if (!p->idmap)
		return -ENOMEM;
	gss_secure(p->gss, rpc);
	p->principals.idmap = p->idmap;
	rpc->identify = principals_identify;
	rpc->identify_ctx = &p->principals;
	return 0;
}

/* After Kerberos, which may have made the look-ups of names. */
static int start_tls_users(const struct programs_config *cfg, struct programs *p,
			   struct rpc_server *rpc)
{
	const struct cfg_tls *set = &cfg->settings->tls;
	const struct rn_logger *log = &cfg->logs->of[LOG_DAEMON];

	if (!set->user_map || !set->user_map[0])
		return 0;
	if (!set->certificate[0] || !set->ca[0])
		rn_warn(log, "tls.user_map has no effect: certificates are verified only if "
			     "tls.certificate and tls.ca are set; set them, too");
	if (!p->idmap)
		p->idmap = idmap_new(cfg->askers, idmap_file(cfg->settings));
	if (!p->idmap)
		return -ENOMEM;
	const int rc = tls_users_new(set->user_map, p->idmap, log, &p->tls_users);

	if (rc)
		return rc;
	p->principals.users = p->tls_users;
	rpc->identify = principals_identify;
	rpc->identify_ctx = &p->principals;
	return 0;
}

int programs_reload(struct programs *p)
{
	char why[GSS_WHY] = "";
	int rc = p->gss ? gss_reload(p->gss, why) : 0;

	if (rc)
		rn_warn(&p->logs->of[LOG_GSS],
			"the keytab cannot be read again, the old keys stay in use: %s", why);
	if (p->tls_users && tls_users_reload(p->tls_users, &p->logs->of[LOG_DAEMON]))
		rc = -EINVAL;
	return rc;
}

static void wake_recorded(void *waits)
{
	rpc_wake_all(waits, 1u << RN_WAIT_RECORD);
}

/* The records are read before NFSv4 begins the grace period. */
static int start_nsm(const struct programs_config *cfg, struct programs *p)
{
	const struct cfg_settings *set = cfg->settings;
	const struct cfg_cluster *cluster = &set->cluster;
	struct rpc_address at;
	struct nsm_config nsm = {
		.state_dir = set->server.state_dir,
		.log = &cfg->logs->of[LOG_NFS3],
		.port = (uint16_t)set->nlm.statd_port,
		.continues = cfg->image != NULL,
		.recorded = wake_recorded,
		.recorded_ctx = cfg->waits,
	};
	int rc;

	if (!set->nfs3.enabled || set->nlm.statd == CFG_STATD_OFF)
		return 0;
	if (*cluster->name)
		nsm.name = cluster->instance;
	/* Two members may run on one machine, with one port. */
	if (cluster->address.n == 1) {
		rpc_address_of(&cluster->address.addrs[0], &at);
		nsm.listen = &at;
	}
	rc = nsm_new(&nsm, &p->nsm);
	if (!rc && cfg->image)
		rc = nsm_load(p->nsm, cfg->image);
	if (rc || nsm_former_hosts(p->nsm) == 0)
		return rc;
	p->grace_until_ns = rn_now_ns() + set->nfs4.grace_time * RN_NS_PER_SECOND;
	rn_notice(&cfg->logs->of[LOG_NFS3],
		  "%u NFSv3 clients may have had locks, and are told to reclaim them; new locks "
		  "wait for %" PRIu64 " s",
		  nsm_former_hosts(p->nsm), set->nfs4.grace_time);
	return 0;
}

static void retry_grants(void *ctx)
{
	const struct programs *p = ctx;

	nlm_retry_grants(p->nfs3);
}

int programs_run(struct programs *p)
{
	const struct nsm_hooks hooks = {
		.rebooted = rebooted,
		.in_grace = hosts_may_reclaim,
		.tick = retry_grants,
		.ctx = p,
	};

	return p->nsm ? nsm_start(p->nsm, &hooks) : 0;
}

static int start_nfs3(const struct programs_config *cfg, struct programs *p, struct rpc_server *rpc)
{
	const struct cfg_nfs3 *set = &cfg->settings->nfs3;
	struct nfs3_config nfs3 = {
		.vfs = cfg->vfs,
		.exports = cfg->exports,
		.log = &cfg->logs->of[LOG_NFS3],
		.pool = cfg->pool,
		.max_io = (uint32_t)set->max_io,
	};

	if (!set->enabled)
		return 0;
	nfs3.packed_handles = cfg->settings->nfs2.enabled;
	nfs3.in_grace = in_grace;
	nfs3.grace_ctx = p;
	nfs3.nsm = p->nsm;
	nfs3.rpc = rpc;
	nfs3.clients = cfg->clients;
	nfs3.manage_gids = set->manage_gids;
	nfs3.lookup_groups = p->groups ? groups_lookup : NULL;
	nfs3.lookup_ctx = p->groups;
	return nfs3_server_new(&nfs3, &p->nfs3);
}

static int start_idmap(const struct programs_config *cfg, struct programs *p,
		       struct nfs4_idmap *out)
{
	if (!p->idmap)
		p->idmap = idmap_new(cfg->askers, idmap_file(cfg->settings));
	if (!p->idmap)
		return -ENOMEM;
	idmap_view(p->idmap, out);
	if (cfg->settings->nfs4.idmap != CFG_IDMAP_NAMES)
		return 0;
	out->names_always = true;
	if (idmap_start(p->idmap) < 0)
		rn_warn(&cfg->logs->of[LOG_NFS4],
			"nfs4.idmap is names, but libnfsidmap cannot map names: owners are "
			"shown as numbers; see idmapd.conf(5)");
	return 0;
}

static int start_nfs4(const struct programs_config *cfg, struct programs *p, struct rpc_server *rpc)
{
	const struct cfg_nfs4 *set = &cfg->settings->nfs4;
	struct nfs4_config nfs4 = {
		.vfs = cfg->vfs,
		.exports = cfg->exports,
		.pool = cfg->pool,
		.budget = &p->nfs4_memory,
		.waits = cfg->waits,
		.log = &cfg->logs->of[LOG_NFS4],
		.max_io = (uint32_t)set->max_io,
		.minor_min = (unsigned)set->minor_min,
		.minor_max = (unsigned)set->minor_max,
		.lease_seconds = (unsigned)set->lease_time,
		.grace_seconds = (unsigned)set->grace_time,
		.image = cfg->image,
		.rpc = rpc,
		.clients = cfg->clients,
		.other_clients = p->nsm ? nsm_former_hosts(p->nsm) : 0,
		.max_sessions = (unsigned)set->max_sessions,
		/* Other members cannot recall them. */
		.delegations = set->delegations && !cfg->cluster,
		.cluster = cfg->cluster,
		.posix_acls = set->posix_acls,
		.state_dir = cfg->settings->server.state_dir,
		.observe_op = counters_observe_op,
		.observe_ctx = cfg->counters,
		.dialer = dialer_view(cfg->dialer),
		.copy_servers = p->copy_servers,
		/* They would come over TCP. */
		.ncopy_servers = cfg->settings->tcp.enabled ? set->copy_servers.n : 0,
		.tcp_port = (uint16_t)cfg->settings->tcp.port,
	};
	int rc = 0;

	if (!set->enabled)
		return 0;
	for (unsigned i = 0; i < set->copy_servers.n; i++)
		rn_address_as_ipv6(&set->copy_servers.addrs[i], &p->copy_servers[i]);
	if (!rn_budget_take(cfg->budget, cfg->budget->max / PROGRAMS_NFS4_SHARE))
		return -ENOMEM;
	rn_budget_init(&p->nfs4_memory, cfg->budget->max / PROGRAMS_NFS4_SHARE);
	p->budget = cfg->budget;
	nfs4.manage_gids = set->manage_gids;
	nfs4.lookup_groups = p->groups ? groups_lookup : NULL;
	nfs4.lookup_ctx = p->groups;
	if (set->idmap != CFG_IDMAP_NUMBERS)
		rc = start_idmap(cfg, p, &nfs4.idmap);
	return rc ? rc : nfs4_server_new(&nfs4, &p->nfs4);
}

/* Adds version 2 to NFSACL. */
static void add_acl_of_nfs2(struct programs *p, struct rpc_program *acl)
{
	nfsacl2_version(p->nfs3, &p->acl_versions[0]);
	p->acl_versions[1] = acl->versions[0];
	acl->versions = p->acl_versions;
	acl->nversions = 2;
}

/* Fills rpc's table of programs: NFS with its versions in ascending order, then those that exist
 * for NFSv3 only. */
static void fill_tables(struct programs *p, struct rpc_server *rpc, bool udp_nfs)
{
	struct rpc_program *nfs = &rpc->programs[0];
	unsigned n = 0;

	*nfs = (struct rpc_program){ .prog = NFS_PROGRAM, .name = "nfs" };
	rpc->nprograms = 1;
	if (p->nfs3) {
		nfs3_program(p->nfs3, nfs, &rpc->programs[1]);
		nlm_program(p->nfs3, &rpc->programs[2]);
		nfsacl_program(p->nfs3, &rpc->programs[3]);
		rpc->programs[3].streams_from = udp_nfs ? 0 : 1;
		rpc->nprograms = 4;
		if (p->rquota)
			rquota_program(p->nfs3, &rpc->programs[rpc->nprograms++]);
		if (p->nfs2) {
			nfs2_version(p->nfs3, &p->versions[n++]);
			add_acl_of_nfs2(p, &rpc->programs[3]);
		}
		p->versions[n++] = nfs->versions[0];
	}
	if (p->nsm) {
		/* The status monitor has a UDP socket of its own. */
		nsm_program(p->nsm, &rpc->programs[rpc->nprograms]);
		rpc->programs[rpc->nprograms++].streams_from = 1;
	}
	if (p->nfs4)
		nfs4_version(p->nfs4, &p->versions[n++]);
	nfs->versions = p->versions;
	nfs->nversions = n;
	/* NFSv4 needs congestion control (RFC 7530 section 3.1, RFC 8881 section 2.9.1). */
	nfs->streams_from = udp_nfs ? NFS4_VERSION : 1;
}

int programs_start(const struct programs_config *cfg, struct programs *p, struct rpc_server *rpc)
{
	const struct cfg_settings *set = cfg->settings;
	int rc;

	p->logs = cfg->logs;
	rc = start_gss(cfg, p, rpc);
	if (!rc && cfg->image)
		rc = gss_load(p->gss, cfg->image);
	if (!rc)
		rc = start_tls_users(cfg, p, rpc);
	if (rc)
		return rc;
	if (p->gss || p->tls_users || set->nfs3.manage_gids || set->nfs4.manage_gids) {
		p->groups = groups_new(cfg->askers);
		if (!p->groups)
			return -ENOMEM;
	}
	p->drc = drc_new(set->nfs3.drc_size, set->nfs3.drc_memory);
	if (!p->drc)
		return -ENOMEM;
	if (cfg->image)
		rc = drc_load(p->drc, cfg->image);
	if (rc)
		return rc;
	p->rquota = set->nfs3.enabled && set->nfs3.rquota;
	p->nfs2 = set->nfs3.enabled && set->nfs2.enabled;
	rc = start_nsm(cfg, p);
	if (!rc)
		rc = start_nfs3(cfg, p, rpc);
	if (!rc && cfg->image && p->nfs3)
		rc = nlm_load(p->nfs3, cfg->image);
	if (!rc)
		rc = start_nfs4(cfg, p, rpc);
	if (rc)
		return rc;
	fill_tables(p, rpc, set->udp.nfs);
	rpc->drc = p->drc;
	rpc->pool = cfg->pool;
	return 0;
}

void programs_log_exports(const struct programs *p)
{
	if (p->nfs2)
		nfs2_log_unserved(p->nfs3, &p->logs->of[LOG_NFS2]);
}

bool programs_stop(struct programs *p)
{
	bool all;

	nsm_stop(p->nsm);
	if (p->drc)
		drc_free(p->drc);
	if (p->nfs4)
		nfs4_server_free(p->nfs4);
	if (p->nfs3)
		nfs3_server_free(p->nfs3);
	nsm_free(p->nsm);
	if (p->budget)
		rn_budget_give(p->budget, p->nfs4_memory.max);
	all = gss_free(p->gss);
	groups_free(p->groups);
	tls_users_free(p->tls_users);
	idmap_free(p->idmap);
	return all;
}

const char *programs_save(struct programs *p, struct image_writer *w)
{
	if (!p->nfs4 && in_grace(p, NFS3_RECLAIMING))
		return "the grace period is not over";
	if (p->nsm)
		nsm_save(p->nsm, w);
	if (p->nfs3)
		nlm_save(p->nfs3, w);
	/* Clients make new contexts by themselves: keys need not lie in a file. */
	if (p->gss && !image_is_for_elsewhere(w))
		gss_save(p->gss, w);
	if (p->drc)
		drc_save(p->drc, w);
	return p->nfs4 ? nfs4_save(p->nfs4, w) : NULL;
}
