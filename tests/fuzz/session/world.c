/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/world.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conf/settings.h"
#include "daemon/daemon_server.h"
#include "lib/util.h"
#include "tests/fuzz/gss/realm.h"
#include "tests/fuzz/session/ask.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/disk.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/leases.h"
#include "tests/fuzz/session/mounts.h"
#include "tests/fuzz/session/rdma_client.h"
#include "tests/fuzz/session/sealed.h"
#include "tests/fuzz/session/tls_client.h"
#include "tests/fuzz/session/tree.h"
#include "tests/fuzz/session/udp_client.h"

#define SESSIONS_PER_SERVER 2000
#define SESSIONS_PER_CHECK 64
/* Little memory, so that calls wait for it: 80 requests and their heads are made at the start, some is set aside for Kerberos, and
 * an eighth is for state of NFSv4 clients. A record in many fragments must still fit, and a slab for data. */
#define MEMORY (74u << 20)
#define FD_COUNTS 5u
#define FEWER_MS 1000 /* for which fewer descriptors than at the start are no chance */
#define A_DAY 86400u
#define LEASE 10u /* seconds: also the time for which a file is not delegated after a recall */
#define FILE_SIZE_LIMIT (64u << 20)

/* The "held:" line that SIGUSR1 makes the daemon log: name=number, in any order. */
struct held {
	char line[1024];
};

/* Counters that must be 0 without connections. */
static const char *const transient[] = {
	"tcp_connections",   "rdma_connections",      "requests",
	"payload_buffers",   "payload_bytes",	      "queue_pairs",
	"completion_queues", "rdma_connection_bytes", "drc_running",
};

static struct {
	struct cfg_settings settings;
	struct logs logs;
	struct server *server;
	unsigned sessions; /* run on this server */
	/*
	 * descriptors open after the first session was prepared, without those of nodes and workers
	 */
	unsigned fds;
	bool loud;
	bool skipped;  /* the session has let leases run out */
	bool narrowed; /* the session has removed hosts from the exports */
	/* recalls, long copies and datagrams before this session */
	unsigned long recalled, copied, datagrams;
	_Atomic unsigned jams; /* told by the log, and not by ss_world_was_jammed yet */
	/* destination of the "held:" line while this thread logs counters, else NULL */
	struct held *holding;
} world;

static _Thread_local bool is_driver;

/* Value of a counter; -1 if the line has none of that name. */
static long long held_value(const struct held *h, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = h->line; (p = strstr(p, name)); p += len)
		if (p[-1] == ' ' && p[len] == '=')
			return strtoll(p + len + 1, NULL, 10);
	return -1;
}

static void log_line(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	char line[sizeof(world.holding->line)];

	(void)ctx;
	vsnprintf(line, sizeof(line), fmt, ap);
	if (is_driver && world.holding && !strncmp(line, "held:", 5))
		memcpy(world.holding->line, line, sizeof(line));
	if (strstr(line, "records wait for each other's memory"))
		atomic_fetch_add(&world.jams, 1);
	if (world.loud)
		fprintf(stderr, "<%d> %s\n", level, line);
}

bool ss_world_was_jammed(void)
{
	unsigned jams = atomic_load(&world.jams);

	while (jams > 0 && !atomic_compare_exchange_weak(&world.jams, &jams, jams - 1))
		;
	return jams > 0;
}

static struct held ask_held(void)
{
	struct held h = { .line = "" };

	world.holding = &h;
	server_log_counters(world.server, RN_NOTICE);
	world.holding = NULL;
	return h;
}

/*
 * Pipes are not counted: sanitizers start a symbolizer at any time, and the server leaks no pipes.
 */
static unsigned count_fds(bool show)
{
	char path[64], to[256];
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	for (struct dirent *de; d && (de = readdir(d));) {
		snprintf(path, sizeof(path), "/proc/self/fd/%.20s", de->d_name);
		ssize_t len = readlink(path, to, sizeof(to));
		if (len < 5 || memcmp(to, "pipe:", 5) != 0)
			n++;
		if (show && len > 0)
			fprintf(stderr, "  %s %.*s\n", path, (int)len, to);
	}
	if (d)
		closedir(d);
	return n;
}

/* Descriptors beside those of the node cache and of workers, whose numbers may grow. */
static unsigned other_fds(const struct held *h, bool show)
{
	return count_fds(show) - (unsigned)held_value(h, "node_fds") -
	       (unsigned)held_value(h, "worker_fds");
}

/* The least of several counts: threads that look up names have files open for a moment. */
static unsigned lasting_fds(const struct held *h)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	unsigned least = other_fds(h, world.loud);

	for (unsigned i = 0; i < FD_COUNTS; i++) {
		nanosleep(&pause, NULL);
		least = rn_min(least, other_fds(h, false));
	}
	return least;
}

static uint16_t free_port(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&sa, len) == 0 &&
		  getsockname(fd, (struct sockaddr *)&sa, &len) == 0;

	if (fd >= 0)
		close(fd);
	return ok ? ntohs(sa.sin_port) : 0;
}

static bool set_up(struct ss_world *w)
{
	const char *certificate, *key, *ca;
	char text[2048];
	struct cfg_diags diags;

	ss_tls_start(&certificate, &key, &ca);

	w->port = free_port();
	snprintf(text, sizeof(text),
		 "[server]\nthreads = 4\nmemory_max = 64M\nmax_fds = 128\nstate_dir = " SS_BASE
		 "/state\nexports_file = " SS_BASE "/exports\nexports_dir = " SS_BASE
		 "/none\nrpcbind = no\nlog_level = debug\ncontrol_socket =\n"
		 "[tcp]\nport = %u\nlisten = 127.0.0.1\nmount_port = 0\nmax_requests = 64\n"
		 "idle_timeout = 0\nmax_record = 1088K\n"
		 "[rdma]\nenabled = auto\nport = %u\nlisten = 127.0.0.1\ncredits = "
		 "16\nidle_timeout = 0\n"
		 "[nfs2]\nenabled = yes\n[udp]\nnfs = yes\n"
		 "[nfs3]\ndrc_size = 512\ndrc_memory = 1M\n"
		 "[nfs4]\nposix_acls = yes\nidmap = numbers\nidmap_file = " SS_IDMAP_FILE "\n"
		 "[vfs]\nring_entries = 64\n"
		 "[gss]\nenabled = yes\nprincipal = " REALM_SERVICE "\nmax_contexts = 64\n"
		 "[tls]\ncertificate = %s\nkey = %s\nca = %s\n",
		 w->port, w->port, certificate, key, ca);
	cfg_diags_init(&diags);
	bool ok = cfg_set_defaults(&world.settings) == 0 &&
		  cfg_parse(&world.settings, "fuzz", text, strlen(text), &diags) == 0 &&
		  cfg_check(&world.settings, "fuzz", &diags) == 0;
	/* Below the settings' minimum, so that one session can use it up. */
	world.settings.server.memory_max = MEMORY;
	/* The keytab is in memory, which is no path. */
	free(world.settings.gss.keytab);
	world.settings.gss.keytab = strdup(REALM_KEYTAB);
	world.settings.nfs4.lease_time = LEASE;
	if (!ok)
		cfg_diags_print(&diags, stderr);
	cfg_diags_free(&diags);
	return ok;
}

/* State of NFSv4 clients that keeps nodes. */
static bool has_state(const struct held *h)
{
	return held_value(h, "nfs4_opens") > 0 || held_value(h, "nfs4_delegations") > 0 ||
	       held_value(h, "nfs4_copies") > 0;
}

bool ss_world_has_delegations(void)
{
	const struct held h = ask_held();

	return held_value(&h, "nfs4_delegations") > 0;
}

/* Name of the first transient counter that is not 0. Files open by NFSv4 clients or locked by NLM
 * outlive connections. */
static const char *still_held(const struct held *h)
{
	if (!has_state(h) && held_value(h, "file_fds") <= 0 &&
	    held_value(h, "files_unmirrored") <= 0 && held_value(h, "nodes_in_use") != 0)
		return "nodes_in_use";
	for (size_t i = 0; i < rn_array_size(transient); i++)
		if (held_value(h, transient[i]) != 0)
			return transient[i];
	return NULL;
}

/* Waits, because the server closes its ends of connections asynchronously. */
static struct held wait_all_given_back(void)
{
	int64_t until = ss_now_ms() + SS_HANG_MS;
	struct timespec pause = { .tv_nsec = 50000 };
	const char *what;
	struct held h;

	while (h = ask_held(), (what = still_held(&h))) {
		if (ss_now_ms() > until)
			ss_finding("%s is not given back: %s", what, h.line);
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 5000000)
			pause.tv_nsec *= 2;
	}
	return h;
}

/* Makes a first connection, which allocates objects that the server keeps for good. */
static void warm_up(struct ss_world *w)
{
	static struct ss_rdma first;

	if (!w->rdma)
		return;
	int err = ss_rdma_open(&first, w->port, 0, &w->values);
	if (err)
		ss_finding("the first connection by RDMA: %s", strerror(-err));
	ss_rdma_close(&first, false);
}

static void start_server(struct ss_world *w)
{
	for (unsigned try = 0; try < 20; try++) {
		if (!set_up(w))
			break;
		if (server_start(&world.settings, &world.logs, NULL, &world.server) == 0) {
			ss_ask_handles(w->port, &w->values);
			warm_up(w);
			world.sessions = 0;
			return;
		}
		cfg_free(&world.settings);
	}
	fprintf(stderr, "the server does not start (SESSION_LOG=1 shows its log)\n");
	exit(1);
}

static bool have_rdma(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	return n > 0;
}

const char *ss_world_start(struct ss_world *w)
{
	struct rlimit limit = { FILE_SIZE_LIMIT, FILE_SIZE_LIMIT };
	const char *why = ss_tree_mount();

	if (why)
		return why;
	is_driver = true;
	ss_errors_spare_me();
	ss_leases_start();
	ss_gss_start();
	why = ss_disk_start();
	if (why)
		fprintf(stderr, "skip: no disk fails: %s\n", why);
	world.loud = getenv("SESSION_LOG") != NULL;
	logs_init(&world.logs, &(struct rn_logger){ .level = RN_DEBUG, .write = log_line });
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	setenv("SOFTVERBS_DIR", SS_BASE "/fabric", 1);
	w->rdma = have_rdma();
	start_server(w);
	return NULL;
}

/* A plugin of libnfsidmap forgets its map when it starts once more. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libnfsidmap/static.so\n";
}

/* Once it is unloaded, LeakSanitizer does not know its name. */
static int keep_plugin(struct dl_phdr_info *info, size_t size, void *ctx)
{
	static const char name[] = "/static.so";
	const size_t len = strlen(info->dlpi_name);

	(void)size;
	(void)ctx;
	if (len >= sizeof(name) && !strcmp(info->dlpi_name + len + 1 - sizeof(name), name))
		(void)dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_NODELETE | RTLD_LAZY);
	return 0;
}

void ss_world_stop(void)
{
	if (!world.server)
		return;
	dl_iterate_phdr(keep_plugin, NULL);
	server_stop(world.server);
	world.server = NULL;
	cfg_free(&world.settings);
}

/* Defined in builds with LeakSanitizer. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void replace_server(struct ss_world *w)
{
	ss_disk_forget_verifier();
	ss_world_stop();
	if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
		ss_finding("a server that was stopped left memory behind");
	start_server(w);
}

void ss_world_prepare(struct ss_world *w)
{
	bool changed = ss_mounts_end();

	if (changed || world.narrowed)
		ss_world_hosts(0);
	changed |= ss_tree_reset(ss_counted(SS_N_RECALLED) != world.recalled);
	world.recalled = ss_counted(SS_N_RECALLED);
	if (world.sessions == SESSIONS_PER_SERVER)
		replace_server(w);
	else if (changed)
		ss_ask_handles(w->port, &w->values);
	w->values.exclusive = ss_tree_exclusive();
	if (world.sessions % 4 == 0)
		ss_disk_check_verifier(w->port, &w->values.fh[SS_FH_FILE]);
	/* Counted here and not when the server starts, because libFuzzer opens files before the
	 * first session. */
	if (world.sessions++ == 0) {
		struct held h = wait_all_given_back();

		world.fds = lasting_fds(&h);
	}
}

static void check_fds(struct held h)
{
	int64_t until = ss_now_ms() + SS_HANG_MS;
	const struct timespec pause = { .tv_nsec = 1000000 };
	unsigned fds;

	while ((fds = other_fds(&h, false)) != world.fds) {
		/* A thread that looked up a name had one more open at the start than the server needs. */
		if (fds < world.fds && ss_now_ms() > until - SS_HANG_MS + FEWER_MS) {
			world.fds = fds;
			break;
		}
		if (ss_now_ms() > until) {
			count_fds(true);
			ss_finding("%u descriptors are open beside the cached and those of "
				   "workers, %u were at the start: %s",
				   fds, world.fds, h.line);
		}
		nanosleep(&pause, NULL);
		server_tick(world.server); /* closes idle descriptors */
		h = ask_held();
	}
}

/* Lets leases and courtesy run out if the session has skipped time; or has made long copies, which
 * would fill up the tree's file system as long as they are open. */
static void expire_all(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t until = ss_now_ms() + SS_HANG_MS;
	struct held h;

	/* Contexts of this session are old ones for the next, and go first. */
	if (ss_gss_was_used()) {
		server_skip_lease_time(world.server, A_DAY + 1);
		world.skipped = true;
	}
	if (!world.skipped && ss_counted(SS_N_COPYING) == world.copied)
		return;
	world.skipped = false;
	world.copied = ss_counted(SS_N_COPYING);
	h = ask_held();
	if (has_state(&h))
		ss_count(SS_N_COURTESY);
	for (; has_state(&h); h = ask_held()) {
		if (ss_now_ms() > until)
			ss_finding("state of clients without a lease stay: %s", h.line);
		server_skip_lease_time(world.server, A_DAY + 1);
		server_tick(world.server);
		nanosleep(&pause, NULL);
	}
}

void ss_world_check(struct ss_world *w)
{
	const char *changed = ss_tree_changed_read_only();

	if (changed)
		ss_finding("%s, which is exported read-only, has changed", changed);
	ss_ask_alive(w->port);
	if (ss_counted(SS_N_DATAGRAMS) != world.datagrams)
		ss_udp_ask_alive(w->port);
	world.datagrams = ss_counted(SS_N_DATAGRAMS);
	expire_all();
	struct held h = wait_all_given_back();
	if (world.sessions % SESSIONS_PER_CHECK == 0)
		check_fds(h);
}

void ss_world_admin(unsigned what)
{
	switch (what % 3) {
	case 0:
		server_reload(world.server);
		break;
	case 1:
		server_log_counters(world.server, RN_DEBUG);
		break;
	default:
		server_tick(world.server);
	}
}

void ss_world_skip_time(unsigned how)
{
	static const unsigned seconds[] = { 1,		LEASE / 2,     LEASE - 1,
					    LEASE + 1,	2 * LEASE + 1, 5 * LEASE,
					    40 * LEASE, A_DAY + 1 };

	world.skipped = true;
	ss_count(SS_N_TIME_SKIPPED);
	server_skip_lease_time(world.server, seconds[how % rn_array_size(seconds)]);
	ss_gss_time(seconds[how % rn_array_size(seconds)]);
	for (unsigned n = how >> 3 & 3; n; n--)
		server_tick(world.server);
}

void ss_world_hosts(unsigned variant)
{
	world.narrowed = variant != 0;
	if (variant)
		ss_count(SS_N_FORMER);
	ss_tree_exports(variant);
	server_reload(world.server);
}
