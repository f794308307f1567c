/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/limits.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin/admin.h"
#include "daemon/memory_need.h"
#include "daemon/workers.h"
#include "rpc/client.h"

#define WANT_FILES 1048576u
#define CACHE_WANT 65536u

/* Descriptors that come and go, or that are opened after all but the transports has started. */
#define FOR_NAMES 40u	  /* threads of daemon/askers.c, rpcbind, messages, reloads */
#define FOR_LISTENERS 16u /* with the one each keeps for refusing; RDMA's event channels */
/* connections, those that are being closed, and the files of /proc and /sys that are read */
#define FOR_METRICS (ADMIN_TCP_CONNS_MAX + ADMIN_TCP_BACKLOG + 4)
#define FOR_CONTROL (ADMIN_CONNS_MAX + ADMIN_BACKLOG + 1)
#define FOR_WORKER 2u /* mount table, a sync of the log */
#define FOR_LOOP 8u   /* RDMA devices' completion channels */
#define REQUESTS_OF_WORKER 32u
#define FOR_REQUEST 4u /* descriptors that a request may hold beside the cache's */

/* With fewer the daemon refuses to start. */
#define LEAST_CACHE 32u
#define LEAST_REQUESTS 24u
#define LEAST_CONNECTIONS 4u
#define LEAST (LEAST_CACHE + LEAST_REQUESTS + LEAST_CONNECTIONS)
#define LEAST_OPEN 20u /* descriptors needed before the first worker, event thread and export */
#define OPEN_OF_WORKER 2u
#define OPEN_OF_LOOP 5u

/* Parts of what is beyond the least: for workers that are started on demand, and for exports. A
 * reload holds the old and the new ones, three descriptors each; a submount takes two. What needs
 * more is refused, and takes nothing from connections and files. */
#define MORE_WORKERS_PART 8u
#define SPARE_PART 8u
#define SPARE_MOST 16384u
#define HELPERS_MAX 3

/* Leases of delegated files: as many as clients may have delegations, a part of what is left. */
#define LEASES_MOST 131072u
#define LEASES_OF_MIB 4u
#define LEASES_PART 4u

/* Pipes, of 1 MiB and two descriptors each: at most, and one for so many bytes and descriptors. */
#define PIPES_MOST 64u
#define PIPE_MEMORY (16u << 20)
#define PIPE_FILES 64u

/* The kernel's ceiling (fs.nr_open) may be lower than the limit asked for; root may go up to it. */
static rlim_t raise_files(const struct rn_logger *log)
{
	struct rlimit r = { 0 };

	for (rlim_t want = WANT_FILES; want >= 4096; want /= 2) {
		struct rlimit try = { .rlim_cur = want, .rlim_max = want };

		getrlimit(RLIMIT_NOFILE, &r);
		if (r.rlim_cur >= want)
			return r.rlim_cur;
		if (r.rlim_max >= want)
			try.rlim_max = r.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &try) == 0)
			return want;
	}
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	getrlimit(RLIMIT_NOFILE, &r);
	rn_warn(log, "only %llu descriptors allowed: raise LimitNOFILE for more connections",
		(unsigned long long)r.rlim_cur);
	return r.rlim_cur;
}

/* Memory regions of software iWARP count against this even for root, and rings where they are not
 * privileged. */
static void raise_memlock(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &all); /* limits_warn_memlock warns where RDMA is served */
}

void limits_warn_memlock(const struct rn_logger *log)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
		rn_warn(log,
			"locked memory is limited to %llu bytes: RDMA may run out of it; raise "
			"LimitMEMLOCK",
			(unsigned long long)r.rlim_cur);
}

static unsigned limits_min(uint64_t a, uint64_t b)
{
	return (unsigned)(a < b ? a : b);
}

size_t limits_ram(void)
{
	return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

static unsigned processors(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus < 1 ? 1 : (unsigned)cpus;
}

unsigned limits_loops(void)
{
	return limits_min(processors(), RPC_LOOPS_MAX);
}

/* Descriptors for everything but the cache and connections; open: descriptors in use already. */
static unsigned fixed_files(const struct cfg_settings *s, const struct limits *l, unsigned open)
{
	const char *control = s->server.control_socket;

	return open + FOR_NAMES + FOR_LISTENERS + (control && *control ? FOR_CONTROL : 0) +
	       (s->metrics.listen.n ? FOR_METRICS : 0) + l->threads * FOR_WORKER +
	       l->loops * FOR_LOOP;
}

static int enough_files(const struct limits *l, unsigned fixed, const struct rn_logger *log)
{
	if (l->files >= fixed + LEAST)
		return 0;
	rn_err(log,
	       "%u descriptors are allowed, and at least %u are needed: %u for exports, workers, "
	       "listeners, the control socket and name look-ups, %u for files, %u for connections; "
	       "raise LimitNOFILE, "
	       "or lower server.threads",
	       l->files, fixed + LEAST, fixed, LEAST_CACHE + LEAST_REQUESTS, LEAST_CONNECTIONS);
	return -EMFILE;
}

static unsigned count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* A lease keeps an inode in the kernel's memory, so nfsd, too, gives no more delegations. */
static unsigned lease_files(const struct cfg_settings *s, const struct limits *l, unsigned rest)
{
	uint64_t most = (uint64_t)l->ram_mib * LEASES_OF_MIB;

	if (s->server.max_fds)
		most = s->server.max_fds / LEASES_PART;
	return limits_min(limits_min(LEASES_MOST, most),
			  (rest - LEAST_CACHE - LEAST_REQUESTS) / LEASES_PART);
}

int limits_divide(const struct cfg_settings *s, const struct rn_logger *log, struct limits *l)
{
	unsigned fixed = fixed_files(s, l, count_open()), left, rest, requests;
	int rc = enough_files(l, fixed, log);

	if (rc)
		return rc;
	left = l->files - fixed;
	l->more_workers = limits_min(WORKERS_MORE, (left - LEAST) / MORE_WORKERS_PART /
							   (OPEN_OF_WORKER + FOR_WORKER));
	l->spare = limits_min(SPARE_MOST, (left - LEAST) / SPARE_PART);
	left -= l->more_workers * (OPEN_OF_WORKER + FOR_WORKER) + l->spare;
	l->connections = limits_min(s->tcp.enabled ? s->tcp.max_connections : 0,
				    (left - LEAST) / 4 * 3 + LEAST_CONNECTIONS);
	rest = left - l->connections;
	l->leases = lease_files(s, l, rest);
	rest -= l->leases;
	requests = limits_min(rest / 2, l->threads * REQUESTS_OF_WORKER * FOR_REQUEST);
	l->cache_fds =
		limits_min(s->server.max_fds ? s->server.max_fds : CACHE_WANT, rest - requests);
	l->cache_fds_most = l->cache_fds + requests;
	return 0;
}

unsigned limits_pipes(const struct limits *l)
{
	return limits_min(PIPES_MOST,
			  limits_min(l->memory_max / PIPE_MEMORY, l->files / PIPE_FILES));
}

int limits_apply(const struct cfg_settings *s, const struct rn_logger *log, struct limits *out)
{
	const size_t ram = limits_ram();
	const unsigned cpus = processors();

	out->files = (unsigned)raise_files(log);
	raise_memlock();
	out->memory_max = memory_need_budget(s, ram);
	out->ram_mib = (unsigned)(ram >> 20);
	/* A few more than processors, since a worker may wait in a metadata call of a slow disk. */
	out->threads = s->server.threads ? (unsigned)s->server.threads
					 : (cpus < 4 ? 4u : (cpus > 256 ? 256u : cpus));
	/* One listing uses as many processors at most; some are left to others. */
	out->helpers = cpus > HELPERS_MAX ? HELPERS_MAX : cpus - 1;
	out->loops = limits_loops();
	return enough_files(
		out,
		fixed_files(s, out,
			    LEAST_OPEN + out->threads * OPEN_OF_WORKER + out->loops * OPEN_OF_LOOP),
		log);
}
