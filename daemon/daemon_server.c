/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/daemon_server.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>

#include "config.h"
#include "daemon/admin/control.h"
#include "daemon/cluster_part.h"
#include "daemon/cluster_takeover.h"
#include "daemon/counters/counters.h"
#include "daemon/counters/daemon_trace.h"
#include "daemon/counters/numbers.h"
#include "daemon/daemon_drain.h"
#include "daemon/daemon_instance.h"
#include "daemon/daemon_register.h"
#include "daemon/exports/export_set.h"
#include "daemon/limits.h"
#include "daemon/listeners.h"
#include "daemon/names/names.h"
#include "daemon/process.h"
#include "daemon/programs.h"
#include "daemon/server_parts.h"
#include "daemon/service_manager.h"
#include "daemon/state_dir.h"
#include "daemon/tasks.h"
#include "daemon/ticker.h"
#include "daemon/tls_setup.h"
#include "daemon/workers/admission.h"
#include "daemon/workers/fs_queues.h"
#include "daemon/workers/workers.h"
#include "gss/gss.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/log_ids.h"
#include "lib/pipe.h"
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs4/nfs4_server.h"
#include "nsm/nsm.h"
#include "rpc/client.h"
#include "rpc/conns.h"
#include "transport/rdma/rdma_server.h"
#include "transport/tcp/tcp_server.h"
#include "transport/udp/udp_server.h"
#include "vfs/vfs_image.h"
#include "vfs/vfs.h"
#include "vfs/vfs_worker.h"

#define LOOPS_MAX 8
#define KEEPER_CLOSES_MS 3000u
#define RECORD_SLACK (64u << 10) /* bytes of RPC header, credential and arguments beside the data */

/* In the order of their start. */
struct server {
	const struct cfg_settings *settings;
	struct logs *logs;
	const struct rn_logger *log; /* of the daemon itself */
	struct instance *instance;
	struct cluster_part *cluster; /* NULL: the server is alone */
	struct tasks *tasks;	      /* work that the control socket leaves to the main thread */
	struct control *control;      /* NULL: the settings want none */
	struct limits limits;
	struct rn_budget budget;
	struct rn_payload_pool *pool;
	struct rn_pipe_pool *pipes; /* of NFS over TCP; or NULL */
	struct rpc_waits *waits;
	struct askers *askers;
	struct fs_queues *fs_queues;
	struct ticker *files_ticker, *clients_ticker;
	struct vfs *vfs;
	struct exports *exports;
	struct drain *drain;
	struct admission *admission;
	struct dialer dialer;
	struct programs programs;
	pthread_mutex_t clients_lock; /* outermost lock: one thread at a time ends clients' state */
	struct counters counters;
	struct numbers_former *former; /* what programs before this one have counted; or NULL */
	struct trace trace;
	struct rpc_server rpc;
	struct rpc_clients *clients;
	struct workers *workers;
	struct ev_loop *loops[LOOPS_MAX];
	unsigned nloops;
	struct tcp_server *tcp;
	struct udp_server *udp;
	struct tls *tls; /* NULL: TLS is not offered */
	struct rr_server *rdma;
	struct rr_left rdma_left; /* connections of the program before, while the server starts */
	struct registration_ports ports;
	struct registration *registration;
	_Atomic bool registered; /* with rpcbind, or not to be */
	struct service_manager *manager;
	struct image_reader *
		image; /* of the program or the run before this one, while the server starts; or NULL */
	struct image_reader *moved; /* that of the run before; or NULL */
	uint64_t former_conn;	    /* the last connection's id of the program before this one */
	struct start_report report;
};

/* The server's own section of the image. */
#define SERVER_SECTION "server"

struct saved_server {
	uint32_t count;
	uint64_t
		begun_ns; /* CLOCK_MONOTONIC: when the program before this one took no more calls */
	struct image_bytes version, why;
	int instance; /* descriptor of the lock */
	uint64_t begun_wall_ns, last_conn;
};
static const struct image_field saved_server_fields[] = {
	IMAGE_NUMBER(1, struct saved_server, begun_ns),
	IMAGE_BYTES(2, struct saved_server, version),
	IMAGE_BYTES(3, struct saved_server, why),
	IMAGE_FD(4, struct saved_server, instance),
	IMAGE_NUMBER(5, struct saved_server, count),
	IMAGE_NUMBER(6, struct saved_server, begun_wall_ns),
	IMAGE_NUMBER(7, struct saved_server, last_conn),
};
static const struct image_kind saved_server_kind = { 1, rn_array_size(saved_server_fields),
						     saved_server_fields };

static void image_text(char *to, size_t size, const struct image_bytes *from)
{
	snprintf(to, size, "%.*s", (int)from->len, from->at ? (const char *)from->at : "");
}

/* Takes the server's own state from the image that the program before this one has handed over. */
static int start_from_image(struct server *s, int *instance)
{
	struct saved_server saved = { .instance = -1 };
	struct image_at at;

	*instance = -1;
	if (!s->image)
		return 0;
	if (!image_enter(s->image, SERVER_SECTION, &at) ||
	    image_get(&at, &saved_server_kind, &saved) < 0)
		return -EPROTO;
	*instance = saved.instance;
	s->report.begun_ns = saved.begun_ns;
	s->report.count = saved.count + 1;
	s->former_conn = saved.last_conn;
	image_text(s->report.version, sizeof(s->report.version), &saved.version);
	image_text(s->report.why, sizeof(s->report.why), &saved.why);
	s->report.how = saved.why.at ? START_LISTENERS : START_WHOLE;
	return 0;
}

/* The image if it has the state of the program or the run before, or NULL. */
static struct image_reader *state_of_image(const struct server *s)
{
	return s->report.how == START_WHOLE || s->moved ? s->image : NULL;
}

/* First of all: a second daemon must not touch the files of the first. */
static int start_state(struct server *s)
{
	const char *dir = s->settings->server.state_dir;
	const bool in_cluster = *s->settings->cluster.name;
	int instance, rc = start_from_image(s, &instance);

	if (instance >= 0)
		return instance_adopt(instance, s->log, &s->instance);
	if (!rc && in_cluster)
		cluster_await_state_dir(s->settings, s->log);
	if (!rc)
		rc = state_dir_make(dir, s->log);
	/* The keeper of a member that was killed gives the directory back in a moment. */
	return rc ? rc
		  : instance_take(dir, in_cluster ? KEEPER_CLOSES_MS : 0, s->log, &s->instance);
}

/* Before other threads start and the key of handles is read, as the keeper has a copy of all that is there. */
static int start_cluster(struct server *s)
{
	return cluster_part_new(s->settings, state_of_image(s), s->log, &s->cluster);
}

/* The state that the run before has left elsewhere. The keeper's copy of the memory has nothing of it. */
static int start_from_moved(struct server *s)
{
	struct saved_server saved = { .instance = -1 };
	struct image_at at;

	if (!s->cluster || s->image)
		return 0;
	cluster_part_take_state(s->cluster, &s->moved);
	if (!s->moved)
		return 0;
	s->image = s->moved;
	s->report.how = START_MOVED;
	if (!image_enter(s->image, SERVER_SECTION, &at) ||
	    image_get(&at, &saved_server_kind, &saved) < 0)
		return -EPROTO;
	s->report.begun_ns = saved.begun_wall_ns;
	image_text(s->report.version, sizeof(s->report.version), &saved.version);
	return 0;
}

static int start_moved_files(struct server *s)
{
	return s->moved ? vfs_load_moved(s->vfs, s->moved) : 0;
}

/* Locks clients' files again before the server listens, so that nobody gets one of these locks first. */
static int start_moved_locks(struct server *s)
{
	int rc;

	if (!s->moved)
		return 0;
	rc = cluster_part_await_locks(s->cluster);
	if (!rc)
		rc = vfs_lock_moved(s->vfs);
	if (!rc)
		cluster_part_has_state(s->cluster);
	return rc;
}

static int start_secret(struct server *s, uint8_t secret[STATE_SECRET_SIZE])
{
	return s->cluster ? cluster_part_secret(s->cluster, secret)
			  : state_dir_secret(s->settings->server.state_dir, "new", secret, s->log);
}

static int start_control(struct server *s)
{
	s->tasks = tasks_new();
	return s->tasks ? control_new(s->settings, &s->logs->of[LOG_ADMIN], &s->control) : -ENOMEM;
}

static void wake_held(void *waits)
{
	rpc_wake_all(waits, 1u << RN_WAIT_STATE);
}

static int start_vfs(struct server *s)
{
	struct vfs_config cfg = {
		.pool = s->pool,
		.budget = &s->budget,
		.helpers = s->limits.helpers,
		.log = &s->logs->of[LOG_VFS],
		.max_fds = s->limits.files / 4, /* until start_descriptors */
		.deleg_quiet_seconds = (unsigned)s->settings->nfs4.lease_time,
		.deleg_ended = wake_held,
		.deleg_ended_ctx = s->waits,
		.moved = counters_moved,
		.moved_ctx = &s->counters,
		.may_lock = s->cluster ? cluster_part_may_lock : NULL,
		.may_lock_ctx = s->cluster,
		.lost = s->cluster ? cluster_part_lost : NULL,
		.lost_ctx = s->cluster,
		.shared = s->cluster != NULL,
		.handle_mac = s->settings->vfs.handle_mac,
	};
	int rc = start_secret(s, cfg.secret);

	if (!rc)
		rc = counters_init(&s->counters, &s->rpc);
	if (rc)
		return rc;
	if (getrandom(&cfg.write_verifier, sizeof(cfg.write_verifier), 0) < 0)
		return -errno;
	rc = vfs_new(&cfg, &s->vfs);
	explicit_bzero(cfg.secret, sizeof(cfg.secret));
	return rc || !state_of_image(s) || s->moved ? rc : vfs_load(s->vfs, s->image);
}

static int start_exports(struct server *s)
{
	struct exports_config cfg = {
		.vfs = s->vfs,
		.io_mode =
			s->settings->vfs.io_mode == CFG_IO_DIRECT ? VFS_IO_DIRECT : VFS_IO_BUFFERED,
		.load = { .file = s->settings->server.exports_file,
			  .dir = s->settings->server.exports_dir,
			  .strict = s->settings->server.strict_exports,
			  .check_paths = true,
			  .shared = s->cluster != NULL },
		.askers = s->askers,
		.drain = s->drain = drain_new(),
		.fs_queues = s->fs_queues,
		.log = s->log,
	};

	int rc = !s->drain ? -ENOMEM : exports_new(&cfg, &s->exports);

	if (rc)
		return rc;
	const struct admission_config admission = {
		.exports = s->exports,
		.log = s->log,
		.lease_seconds = (unsigned)s->settings->nfs4.lease_time,
	};

	s->admission = admission_new(&admission);
	if (!s->admission)
		return -ENOMEM;
	s->rpc.admission = admission_of;
	s->rpc.admission_ctx = s->admission;
	return 0;
}

static void server_observe_call(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns,
				bool error)
{
	struct server *s = ctx;

	counters_observe(&s->counters, req, elapsed_ns, error);
	usage_observe(req, elapsed_ns, error);
	workers_observe(s->workers, req);
	if (trace_is_on(&s->trace))
		trace_record(&s->trace, req, elapsed_ns, error);
}

static void background(void *ctx, struct rpc_request *req, uint32_t export_id)
{
	struct server *s = ctx;

	workers_background(s->workers, req, export_id);
}

static int start_monitor(struct server *s)
{
	return programs_run(&s->programs);
}

static int start_programs(struct server *s)
{
	const struct programs_config cfg = {
		.settings = s->settings,
		.logs = s->logs,
		.vfs = s->vfs,
		.exports = exports_view(s->exports),
		.pool = s->pool,
		.budget = &s->budget,
		.counters = &s->counters,
		.askers = s->askers,
		.dialer = &s->dialer,
		.waits = s->waits,
		.clients = s->clients,
		.cluster = cluster_part_of_nfs4(s->cluster),
		.image = state_of_image(s),
	};

	if (s->cluster) {
		s->rpc.may_answer = cluster_part_may_answer;
		s->rpc.may_answer_ctx = s->cluster;
	}
	s->rpc.observe = server_observe_call;
	s->rpc.observe_ctx = s;
	s->rpc.ended = workers_ended;
	s->rpc.waits = s->waits;
	s->rpc.background = background;
	s->rpc.background_ctx = s;
	int rc = programs_start(&cfg, &s->programs, &s->rpc);

	if (!rc && state_of_image(s))
		rc = counters_load(&s->counters, s->image);
	if (!rc && state_of_image(s))
		rc = numbers_load(s->image, &s->former);
	vfs_load_end(s->vfs);
	s->ports.nfs2 = s->programs.nfs2;
	s->ports.nfs3 = s->programs.nfs3 != NULL;
	s->ports.nfs4 = s->programs.nfs4 != NULL;
	s->ports.rquota = s->programs.rquota;
	s->ports.nsm = s->programs.nsm ? nsm_port(s->programs.nsm) : 0;
	return rc;
}

static int start_workers(struct server *s)
{
	struct workers_config cfg = {
		.count = s->limits.threads,
		.fs_queues = s->fs_queues,
		.ring_entries = (unsigned)s->settings->vfs.ring_entries,
		.vfs = s->vfs,
		.server = &s->rpc,
		.budget = &s->budget,
		.log = s->log,
	};

	int rc = vfs_flusher_start(s->vfs);

	if (rc == 0)
		rc = vfs_leases_start(s->vfs);
	return rc ? rc : workers_start(&cfg, &s->workers);
}

static int start_loops(struct server *s)
{
	for (unsigned i = 0; i < s->limits.loops && i < LOOPS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "event-%u", i);
		int rc = workers_loop(s->workers, name, &s->loops[i]);
		if (rc)
			return rc;
		s->nloops++;
	}
	return 0;
}

/* Each function finds calls of its own version only. */
static size_t bulk_offset(const uint8_t *head, size_t len)
{
	size_t at = nfs3_bulk_offset(head, len);

	return at ? at : nfs4_bulk_offset(head, len);
}

static int server_start_tcp(struct server *s)
{
	const struct cfg_tcp *t = &s->settings->tcp;
	struct tcp_config cfg = {
		.loops = s->loops,
		.nloops = s->nloops,
		.executor = workers_executor(s->workers),
		.clients = s->clients,
		.pool = s->pool,
		.budget = &s->budget,
		.log = &s->logs->of[LOG_TCP],
		.max_record = (uint32_t)t->max_record,
		.max_connections = (unsigned)t->max_connections,
		.max_requests = (unsigned)t->max_requests,
		.idle_seconds = (unsigned)t->idle_timeout,
		.stall_seconds = (unsigned)t->stall_timeout,
		.bulk_offset = bulk_offset,
		.admission = admission_of,
		.admission_ctx = s->admission,
	};

	if (!t->enabled)
		return 0;
	if (cfg.max_connections > s->limits.connections) {
		cfg.max_connections = s->limits.connections;
		rn_notice(s->log,
			  "descriptors suffice for %u TCP connections only: raise LimitNOFILE",
			  cfg.max_connections);
	}
	int rc = tls_setup(&s->settings->tls, &s->budget, s->log, &s->tls);
	if (rc)
		return rc;
	cfg.tls = s->tls;
	rc = tcp_server_new(&cfg, &s->tcp);
	if (rc)
		return rc;
	dialer_open(&s->dialer, s->tcp);
	return 0;
}

/* Nothing but NFSv3 and what belongs to it is served over UDP. */
static int start_udp(struct server *s)
{
	struct udp_config cfg = {
		.loops = s->loops,
		.nloops = s->nloops,
		.executor = workers_executor(s->workers),
		.clients = s->clients,
		.pool = s->pool,
		.budget = &s->budget,
		.log = &s->logs->of[LOG_TCP],
		.bulk_offset = bulk_offset,
		.admission = admission_of,
		.admission_ctx = s->admission,
	};

	if (!s->settings->udp.enabled || !s->programs.nfs3)
		return 0;
	return udp_server_new(&cfg, &s->udp);
}

/* The highest of the versions that are served. */
static uint32_t longest_io(const struct cfg_settings *set)
{
	const uint64_t v3 = set->nfs3.enabled ? set->nfs3.max_io : 0;
	const uint64_t v4 = set->nfs4.enabled ? set->nfs4.max_io : 0;

	return (uint32_t)(v3 > v4 ? v3 : v4);
}

static int start_rdma(struct server *s)
{
	const struct cfg_rdma *r = &s->settings->rdma;
	struct rr_config cfg = {
		.loops = s->loops,
		.nloops = s->nloops,
		.executor = workers_executor(s->workers),
		.clients = s->clients,
		.pool = s->pool,
		.budget = &s->budget,
		.log = &s->logs->of[LOG_RDMA],
		.inline_size = (uint32_t)r->inline_size,
		.credits = (unsigned)r->credits,
		.max_connections = (unsigned)r->max_connections,
		.idle_seconds = (unsigned)r->idle_timeout,
		.stall_seconds = (unsigned)r->stall_timeout,
		.poll_usec = (unsigned)r->poll_usec,
		.max_message = longest_io(s->settings) + RECORD_SLACK,
		.admission = admission_of,
		.admission_ctx = s->admission,
	};

	if (r->enabled == CFG_NO)
		return 0;
	return rr_server_new(&cfg, &s->rdma);
}

static int listen_udp(struct server *s)
{
	const int rc = listeners_udp(s->udp, s->settings, s->log, &s->ports);

	if (!rc || s->settings->udp.nfs)
		return rc;
	/* Clients have TCP for all of it. Served over one family only, UDP would work for some of them. */
	udp_server_free(s->udp);
	s->udp = NULL;
	return 0;
}

static int listen_rdma(struct server *s)
{
	const int rc = listeners_rdma(s->rdma, &s->settings->rdma, s->log, &s->ports);

	if (s->ports.rdma4 || s->ports.rdma6)
		limits_warn_memlock(s->log);
	return rc;
}

/* All transports have taken their memory before: clients, who come at once after a restart, could take it. */
static int server_start_listening(struct server *s)
{
	int rc = 0;

	if (s->tcp)
		rc = listeners_tcp(s->tcp, &s->settings->tcp, s->image, s->log, &s->ports);
	if (!rc && s->udp)
		rc = listen_udp(s);
	if (!rc && s->rdma)
		rc = listen_rdma(s);
	if (!rc)
		cluster_part_listens(s->cluster);
	return rc;
}

/* NFSv3 clients that had locks before the start look the programs up when they are told of it. In a cluster they then find that they may
 * reclaim. */
static void tell_hosts(void *ctx)
{
	const struct server *s = ctx;

	if (s->programs.nsm && s->registered && (!s->cluster || cluster_part_tells(s->cluster)))
		nsm_tell_hosts(s->programs.nsm);
}

static void server_is_registered(void *ctx)
{
	struct server *s = ctx;

	s->registered = true;
	tell_hosts(s);
}

static int server_join_cluster(struct server *s)
{
	const struct cluster_part_server server = {
		.vfs = s->vfs,
		.exports = s->exports,
		.nfs4 = s->programs.nfs4,
		.nsm = s->programs.nsm,
		.conns = rpc_clients_conns(s->clients),
		.tell = tell_hosts,
		.ctx = s,
	};

	return s->cluster ? cluster_part_join(s->cluster, &server) : 0;
}

static int start_registration(struct server *s)
{
	const struct registration_hook hook = { .registered = server_is_registered, .ctx = s };

	if (s->settings->server.rpcbind)
		s->registration = registration_start(&s->ports, &hook, s->log);
	if (!s->registration)
		server_is_registered(s);
	return 0;
}

static int start_calls(struct server *s)
{
	return system_calls_check(s->log);
}

/* Raising limits needs the capability that the second step takes. */
static int start_limits(struct server *s)
{
	int rc = limits_apply(s->settings, s->log, &s->limits);

	return rc ? rc : vfs_thread_obey_limits();
}

static int start_memory(struct server *s)
{
	rn_budget_init(&s->budget, s->limits.memory_max);
	s->pool = rn_payload_pool_new(&s->budget);
	if (!s->pool || rn_payload_set_aside(s->pool))
		return -ENOMEM;
	if (s->settings->tcp.enabled)
		s->pipes = rn_pipe_pool_new(&s->budget, limits_pipes(&s->limits));
	s->rpc.pipes = s->pipes;
	s->clients = rpc_clients_new();
	s->fs_queues = fs_queues_new();
	if (!s->clients || !s->fs_queues)
		return -ENOMEM;
	rpc_conns_begin_after(rpc_clients_conns(s->clients), s->former_conn);
	return 0;
}

static void count_lost(void *ctx, const struct vfs_exports_lost *lost, struct exports_revoked *out)
{
	struct server *s = ctx;

	pthread_mutex_lock(&s->clients_lock);
	exports_count_holders(s->programs.nfs4, s->programs.nfs3, lost, out);
	pthread_mutex_unlock(&s->clients_lock);
}

/*
 * Ends the state that clients hold below exports that are gone. The new exports are in force.
 * The hook `revoke` of exports: called in a reload, and by the thread that follows mounts, which must not meet the clock of
 * leases.
 */
static void revoke_lost(void *ctx, const struct vfs_exports_lost *lost)
{
	struct server *s = ctx;
	uint64_t opens = 0, lockers = 0;
	int rc = 0;

	pthread_mutex_lock(&s->clients_lock);
	if (s->programs.nfs4) {
		rc = nfs4_exports_changed(s->programs.nfs4);
		opens = nfs4_revoke_exports(s->programs.nfs4, lost);
	}
	if (s->programs.nfs3)
		lockers = nlm_revoke_exports(s->programs.nfs3, lost);
	pthread_mutex_unlock(&s->clients_lock);
	if (rc)
		rn_err(s->log, "NFSv4 clients still see the old exports: %s", strerror(-rc));
	if (opens || lockers)
		rn_log_event(s->log, RN_NOTICE, &(struct rn_log_event){ .id = RN_ID_STATE_REVOKED },
			     "exports are gone: revoked %" PRIu64
			     " opens of NFSv4 and the locks of %" PRIu64 " lock owners of NFSv3",
			     opens, lockers);
}

static int start_mount_watch(struct server *s)
{
	const struct exports_hooks hooks = { .count = count_lost, .revoke = revoke_lost, .ctx = s };

	return exports_watch(s->exports, &hooks);
}

static void wake_named(void *waits)
{
	rpc_wake_all(waits, 1u << RN_WAIT_NAME | 1u << RN_WAIT_USER);
}

static int start_askers(struct server *s)
{
	struct askers_config cfg = { .answered = wake_named, .log = s->log };
	int rc = rpc_waits_new(s->log, &s->waits);

	if (rc)
		return rc;
	cfg.ctx = s->waits;
	s->askers = askers_new(&cfg);
	return s->askers ? 0 : -ENOMEM;
}

static int start_descriptors(struct server *s)
{
	int rc = limits_divide(s->settings, s->log, &s->limits);

	if (rc)
		return rc;
	vfs_set_fds(s->vfs, s->limits.cache_fds, s->limits.cache_fds_most, s->limits.leases);
	workers_limit(s->workers, s->limits.more_workers);
	return 0;
}

static struct server_parts server_parts(struct server *s)
{
	return (struct server_parts){
		.budget = &s->budget,
		.pool = s->pool,
		.pipes = s->pipes,
		.vfs = s->vfs,
		.workers = s->workers,
		.drc = s->programs.drc,
		.gss = s->programs.gss,
		.nfs4 = s->programs.nfs4,
		.nsm = s->programs.nsm,
		.nfs4_memory = &s->programs.nfs4_memory,
		.tcp = s->tcp,
		.udp = s->udp,
		.rdma = s->rdma,
		.former = s->former,
	};
}

static int reload(void *ctx, struct exports_outcome *out);

/* The handlers read what the others have started. */
static int start_answers(struct server *s)
{
	const struct control_sources sources = {
		.settings = s->settings,
		.logs = s->logs,
		.limits = &s->limits,
		.parts = server_parts(s),
		.counters = &s->counters,
		.clients = s->clients,
		.rpc = &s->rpc,
		.trace = &s->trace,
		.nfs3 = s->programs.nfs3,
		.view = exports_view(s->exports),
		.clients_lock = &s->clients_lock,
		.askers = s->askers,
		.exports = s->exports,
		.cluster = s->cluster,
		.drain = s->drain,
		.tls_users = s->programs.tls_users,
		.tasks = s->tasks,
		.reload = reload,
		.reload_ctx = s,
		.ports = s->ports,
		.loops = s->loops,
		.event_threads = s->nloops,
		.report = &s->report,
	};

	return control_start(s->control, &sources);
}

/* The last step: clients go on from here. */
static int start_connections(struct server *s)
{
	if (!s->image)
		return 0;
	int rc = s->tcp ? tcp_server_load(s->tcp, s->image) : 0;

	if (!rc)
		rc = rr_left_take(&s->rdma_left, s->image);
	const char *unread = image_unread(s->image);

	if (!rc && unread)
		rn_err(s->log, "the image has a part '%s', which is not served any more", unread);
	return rc ? rc : unread ? -EPROTO : 0;
}

/* Says how the start went on from the program before this one. */
static void server_report_start(struct server *s)
{
	struct start_report *r = &s->report;

	if (r->how == START_FRESH)
		return;
	const uint64_t now = r->how == START_MOVED ? rn_wall_ns() : rn_now_ns();
	const uint64_t ms = now > r->begun_ns ? (now - r->begun_ns) / RN_NS_PER_MS : 0;

	atomic_store(&r->ms, ms);
	if (r->how == START_MOVED)
		rn_notice(
			s->log,
			"goes on as the member that was moved here: nobody has to reclaim; clients "
			"waited for %" PRIu64 " ms",
			ms);
	else if (r->how == START_WHOLE)
		rn_notice(s->log, "goes on from ringnfsd %s: calls waited for %" PRIu64 " ms",
			  r->version, ms);
	else
		rn_notice(s->log,
			  "an ordinary start after ringnfsd %s, whose state could not be handed "
			  "over: %s",
			  r->version, r->why);
}

static const struct {
	const char *name;
	int (*start)(struct server *s);
} steps[] = {
	{ "system calls", start_calls },
	{ "limits", start_limits },
	{ "state directory", start_state },
	{ "cluster", start_cluster },
	{ "state of the run before", start_from_moved },
	{ "control socket", start_control },
	{ "memory", start_memory },
	{ "threads for name services", start_askers },
	{ "file system layer", start_vfs },
	{ "exports", start_exports },
	{ "files of the run before", start_moved_files },
	{ "programs", start_programs },
	{ "workers", start_workers },
	{ "event threads", start_loops },
	{ "descriptors", start_descriptors },
	{ "status monitor", start_monitor },
	{ "joining the cluster", server_join_cluster },
	{ "locks of the run before", start_moved_locks },
	{ "TCP", server_start_tcp },
	{ "UDP", start_udp },
	{ "RDMA", start_rdma },
	{ "listeners", server_start_listening },
	{ "mount table", start_mount_watch },
	{ "rpcbind", start_registration },
	{ "answers on the control socket", start_answers },
	{ "connections", start_connections },
};

static void server_end_image(struct server *s)
{
	image_reader_free(s->moved);
	s->image = s->moved = NULL;
}

/* Logs why the server does not start; the result of server_start(). Once the server listens, it is not for the state that it fails. */
static int server_cannot_start(const struct server *s, const char *step, int rc)
{
	if (s->moved && !s->tcp && !s->udp && !s->rdma) {
		rn_warn(s->log,
			"the state that this member has left when it was moved cannot be used: %s: "
			"%s; it starts without, and clients reclaim what they had",
			step, rn_error_text(rc));
		return -ERESTART;
	}
	rn_err(s->log, "cannot start: %s: %s", step, strerror(-rc));
	cluster_part_cannot_go_on(s->cluster);
	return rc;
}

int server_start(const struct cfg_settings *settings, struct logs *logs, struct image_reader *image,
		 struct server **out)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->settings = settings;
	s->logs = logs;
	s->image = image;
	s->log = &logs->of[LOG_DAEMON];
	pthread_mutex_init(&s->clients_lock, NULL);
	trace_init(&s->trace);
	dialer_init(&s->dialer);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int rc = steps[i].start(s);

		if (rc) {
			rc = server_cannot_start(s, steps[i].name, rc);
			if (!server_stop(s))
				process_leave(EX_UNAVAILABLE);
			return rc;
		}
	}
	server_end_image(s);
	cluster_part_goes_on(s->cluster);
	exports_log(s->exports);
	programs_log_exports(&s->programs);
	server_report_start(s);
	rr_left_end(&s->rdma_left);
	*out = s;
	return 0;
}

#define ALL_WAITS UINT_MAX

/* From here no call waits for a name service: the answers would come too late. True: calls waited for something else, too, and go on to
 * be answered. Those that wait for a record wait on: it is being written. */
static bool stop_asking(struct server *s)
{
	const bool waited = s->waits && rpc_waits_count(s->waits) > 0;

	if (s->askers)
		askers_close(s->askers);
	gss_close(s->programs.gss);
	rpc_waits_close(s->waits, ALL_WAITS & ~(1u << RN_WAIT_RECORD));
	return waited;
}

#define ANSWERS_MS 1000u
#define SLOW_CLIENTS_MS 200u

/* Nothing is read any more: waits until all calls are answered, but not for those that take long. */
static void await_answers(struct server *s)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };
	struct tcp_stats tcp = { .requests_busy = 0 };
	struct rr_stats rdma = { .requests_busy = 0 };

	for (unsigned ms = 0; ms < ANSWERS_MS; ms++) {
		if (s->tcp)
			tcp_server_stats(s->tcp, &tcp);
		if (s->rdma)
			rr_server_stats(s->rdma, &rdma);
		if (tcp.requests_busy + rdma.requests_busy == 0)
			return;
		nanosleep(&pause, NULL);
	}
}

/* No request is left. False: a thread is still in a name service, which keeps the tables that it uses. */
static bool free_askers(struct server *s)
{
	if (!s->askers || askers_free(s->askers))
		return true;
	s->programs.groups = NULL;
	s->programs.idmap = NULL;
	return false;
}

/* Ends what begins work by itself. True: calls waited for something, and go on to be answered. Nothing happens the second time. */
static bool server_silence(struct server *s)
{
	service_manager_stop(s->manager);
	s->manager = NULL;
	control_stop(s->control);
	s->control = NULL;
	tasks_free(s->tasks);
	s->tasks = NULL;
	if (s->exports)
		exports_unwatch(s->exports);
	ticker_stop(s->clients_ticker);
	ticker_stop(s->files_ticker);
	s->clients_ticker = s->files_ticker = NULL;
	const bool waited = stop_asking(s);

	if (s->programs.nfs3)
		nlm_stop_grants(s->programs.nfs3);
	dialer_close(&s->dialer);
	return waited;
}

static void quiesce_datagrams(struct server *s)
{
	if (s->udp)
		udp_server_quiesce(s->udp);
	if (s->rdma)
		rr_server_quiesce(s->rdma);
}

static bool datagrams_under_way(const struct server *s)
{
	struct udp_stats udp = { .requests_busy = 0 };

	if (s->udp)
		udp_server_stats(s->udp, &udp);
	return udp.requests_busy > 0;
}

/* Waits until no call is under way. False: some take too long. A moment only is waited for clients that send a call or take a reply slowly, whose
 * connections end then; for records, without which calls are told to come again; and for what clients say to a lock that they have got, or they
 * are told of it twice. */
static bool come_to_rest(struct server *s)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };

	for (unsigned ms = 0; ms < ANSWERS_MS; ms++) {
		const bool slow = (s->tcp && tcp_server_busy(s->tcp) > 0) ||
				  (s->programs.nfs3 && nlm_grants_under_way(s->programs.nfs3) > 0);

		if (ms == SLOW_CLIENTS_MS)
			rpc_waits_close(s->waits, ALL_WAITS);
		if (rpc_conns_under_way(rpc_clients_conns(s->clients)) == 0 &&
		    !datagrams_under_way(s) && (!slow || ms >= SLOW_CLIENTS_MS))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static void server_save_own(const struct server *s, const char *why, int instance,
			    uint64_t begun_ns, struct image_writer *w)
{
	struct saved_server saved = {
		.begun_ns = begun_ns,
		.begun_wall_ns = rn_wall_ns() - (rn_now_ns() - begun_ns),
		.count = s->report.count,
		.version = { (const uint8_t *)PACKAGE_VERSION, sizeof(PACKAGE_VERSION) - 1 },
		.instance = instance,
		.last_conn = rpc_conns_last_id(rpc_clients_conns(s->clients)),
	};

	if (why)
		saved.why = (struct image_bytes){ (const uint8_t *)why, (uint32_t)strlen(why) };
	image_begin(w, SERVER_SECTION);
	image_put(w, &saved_server_kind, &saved);
}

/* Takes no new calls, and waits for those under way. NULL, or why the state cannot be handed over. */
static const char *server_rest(struct server *s)
{
	server_silence(s);
	if (s->tcp)
		tcp_server_finish(s->tcp);
	quiesce_datagrams(s);
	if (!come_to_rest(s))
		return "calls under way did not end in a second";
	nsm_stop(s->programs.nsm);
	if (!nsm_free_rebooted(s->programs.nsm))
		return "locks of clients that have rebooted are not free yet";
	return NULL;
}

const char *server_save(struct server *s, struct image_writer *w)
{
	const char *why = cluster_part_may_save(s->cluster);

	if (why)
		return why;
	if (s->programs.nfs4 && !nfs4_rest_copies(s->programs.nfs4))
		return "pieces of copies did not end in time";

	const uint64_t begun_ns = rn_now_ns();

	why = server_rest(s);
	if (why)
		return why;
	server_save_own(s, NULL, instance_fd(s->instance), begun_ns, w);

	const struct server_parts parts = server_parts(s);

	counters_save(&s->counters, w);
	numbers_save(&parts, w);
	if (s->tcp)
		tcp_server_save(s->tcp, w);
	if (s->rdma)
		rr_server_save(s->rdma, w);
	why = vfs_save(s->vfs, w);
	if (!why)
		why = programs_save(&s->programs, w);
	if (why)
		return why;
	cluster_part_save(s->cluster, w);
	/* execve(2) would leave the sockets open in a keeper, and their ports taken. */
	udp_server_free(s->udp);
	s->udp = NULL;
	return NULL;
}

/* Writes what is of use on another machine, into a file there. NULL, or why not. */
static const char *leave_state(struct server *s, struct image_writer *w)
{
	const uint64_t begun_ns = rn_now_ns();
	const char *why = server_rest(s);

	if (why)
		return why;
	server_save_own(s, NULL, -1, begun_ns, w);
	why = vfs_save(s->vfs, w);
	if (!why)
		why = programs_save(&s->programs, w);
	const int rc = why ? 0 : cluster_part_leave_state(s->cluster, w);

	return rc ? rn_error_text(rc) : why;
}

void server_leave_state(struct server *s)
{
	struct image_writer *w;
	const char *why;
	int rc;

	if (!cluster_part_moves(s->cluster))
		return;
	rc = image_write(&w);
	if (!rc) {
		image_for_elsewhere(w);
		why = leave_state(s, w);
		image_writer_free(w);
	} else {
		why = rn_error_text(rc);
	}
	if (why)
		rn_warn(s->log,
			"the member is moved without its state: %s; clients reclaim what they had",
			why);
	else
		rn_notice(s->log,
			  "the member is moved with its state, which is in %s: nobody has "
			  "to reclaim",
			  s->settings->server.state_dir);
}

void server_save_listeners(struct server *s, const char *why, struct image_writer *w)
{
	server_save_own(s, why, -1, rn_now_ns(), w);
	if (s->tcp)
		tcp_server_save_listeners(s->tcp, w);
}

bool server_stop(struct server *s)
{
	bool all;

	cluster_part_leave(s->cluster); /* as long as calls are answered */
	if (s->programs.nfs4)
		nfs4_stop_copies(s->programs.nfs4);
	const bool waited = server_silence(s);

	rpc_waits_close(s->waits, ALL_WAITS);
	registration_stop(s->registration);
	if (s->tcp)
		tcp_server_quiesce(s->tcp);
	quiesce_datagrams(s);
	if (waited)
		await_answers(s);
	nsm_stop(s->programs.nsm);
	if (s->tcp)
		tcp_server_free(s->tcp);
	udp_server_free(s->udp);
	tls_free(s->tls);
	if (s->rdma)
		rr_server_free(s->rdma);
	rr_left_end(&s->rdma_left);
	if (s->workers)
		workers_unwatch(s->workers);
	for (unsigned i = 0; i < s->nloops; i++)
		ev_loop_free(s->loops[i]);
	if (s->workers)
		workers_stop(s->workers);
	if (s->vfs) {
		vfs_leases_stop(s->vfs);
		vfs_flusher_stop(s->vfs);
	}
	all = free_askers(s);
	all &= programs_stop(&s->programs);
	admission_free(s->admission);
	if (s->exports)
		exports_free(s->exports);
	drain_free(s->drain);
	if (s->vfs)
		vfs_free(s->vfs);
	rpc_waits_free(s->waits); /* the end of a delegation wakes calls */
	workers_free(s->workers);
	rpc_clients_free(s->clients);
	fs_queues_free(s->fs_queues);
	pthread_mutex_destroy(&s->clients_lock);
	trace_fini(&s->trace);
	dialer_fini(&s->dialer);
	rn_pipe_pool_free(s->pipes);
	if (s->pool)
		rn_payload_pool_free(s->pool);
	counters_fini(&s->counters);
	free(s->former);
	cluster_part_free(s->cluster);
	instance_release(s->instance);
	server_end_image(s);
	free(s);
	return all;
}

void server_restart_refused(struct server *s)
{
	atomic_fetch_add(&s->report.refused, 1);
}

static int reload(void *ctx, struct exports_outcome *out)
{
	static const struct rn_log_event refused = { .id = RN_ID_RELOAD_REFUSED };
	struct server *s = ctx;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(rn_now_ns() / 1000));
	instance_reload_begins(s->instance);
	int rc = exports_reload(s->exports, out);
	if (s->cluster)
		cluster_part_reloaded(s->cluster);
	programs_reload(&s->programs);
	tls_setup_reload(s->tls, s->log);
	registration_look(s->registration);
	instance_reload_ended(s->instance, rc);
	sd_notify(0, "READY=1");
	if (rc) {
		rn_log_event(s->log, RN_ERROR, &refused,
			     "reload failed, the old exports stay in force");
	} else {
		exports_log(s->exports);
		programs_log_exports(&s->programs);
	}
	return rc;
}

int server_reload(struct server *s)
{
	return reload(s, NULL);
}

int server_tasks_fd(const struct server *s)
{
	return tasks_fd(s->tasks);
}

void server_run_task(struct server *s)
{
	tasks_run_one(s->tasks);
}

/* Tells rpcbind of a device that has come after the start. */
static void look_for_rdma(struct server *s)
{
	if (!s->rdma || !listeners_rdma_came(s->rdma, &s->settings->rdma, &s->ports))
		return;
	rn_notice(s->log, "NFS on RDMA port %" PRIu64 ", by a device that has come",
		  s->settings->rdma.port);
	limits_warn_memlock(s->log);
	if (s->registration)
		registration_rdma(s->registration, &s->ports);
}

static void tick_files(void *ctx)
{
	struct server *s = ctx;

	look_for_rdma(s);
	vfs_reap(s->vfs);
}

static void tick_clients(void *ctx)
{
	struct server *s = ctx;

	trace_tick(&s->trace);
	/* A revocation that holds the lock for longer than a second delays the clock of leases. */
	if (s->programs.nfs4 && pthread_mutex_trylock(&s->clients_lock) == 0) {
		nfs4_tick(s->programs.nfs4);
		pthread_mutex_unlock(&s->clients_lock);
	}
}

void server_tick(struct server *s)
{
	tick_files(s);
	tick_clients(s);
}

void server_skip_lease_time(struct server *s, unsigned seconds)
{
	if (s->programs.nfs4)
		nfs4_skip_lease_time(s->programs.nfs4, seconds);
	if (s->programs.gss)
		gss_skip_time(s->programs.gss, seconds);
}

static int start_manager(struct server *s)
{
	const struct service_manager_config cfg = {
		.loops = s->loops,
		.nloops = s->nloops,
		.parts = server_parts(s),
		.clients = s->clients,
		.log = s->log,
	};

	return service_manager_start(&cfg, &s->manager);
}

int server_tick_by_itself(struct server *s)
{
	int rc = ticker_start("files", tick_files, s, &s->files_ticker);

	if (!rc)
		rc = ticker_start("leases", tick_clients, s, &s->clients_ticker);
	return rc ? rc : start_manager(s);
}

static void log_loops(struct server *s, enum rn_level level)
{
	for (unsigned i = 0; i < s->nloops; i++) {
		struct ev_loop_stats st;

		ev_loop_stats(s->loops[i], &st);
		rn_log(s->log, level,
		       "event thread %u: %u connections, busy for %u ms of the last second", i,
		       st.connections, st.busy_ms);
	}
}

void server_log_counters(struct server *s, enum rn_level level)
{
	counters_log(&s->counters, s->log, level);
	log_loops(s, level);
	const struct server_parts parts = server_parts(s);

	numbers_log(&parts, s->log, level);
}
