/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/server_private.h"

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
#include "daemon/cluster_takeover.h"
#include "daemon/listeners.h"
#include "daemon/process.h"
#include "daemon/state_dir.h"
#include "daemon/tls_setup.h"
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

#define KEEPER_CLOSES_MS 3000u

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
	int instance, rc = server_load_own(s, &instance);

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

struct server_parts server_parts(struct server *s)
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
	{ "state of the run before", server_load_moved },
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
	{ "UDP", server_start_udp },
	{ "RDMA", server_start_rdma },
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

bool server_silence(struct server *s)
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

void server_quiesce_datagrams(struct server *s)
{
	if (s->udp)
		udp_server_quiesce(s->udp);
	if (s->rdma)
		rr_server_quiesce(s->rdma);
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
	server_quiesce_datagrams(s);
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
