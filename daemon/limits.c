/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/limits.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define WANT_FILES 1048576u
#define CACHE_FILES_LEAST 1024u /* what connections leave to the node cache, which gives way */
#define RESERVE_FILES 256u	/* rings, event threads, listeners, logs, name look-ups */

/* The kernel's ceiling (fs.nr_open) may be lower than what we want; root may go up to it. */
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
	rn_warn(log, "only %llu descriptors allowed: raise LimitNOFILE for more connections",
		(unsigned long long)r.rlim_cur);
	return r.rlim_cur;
}

/* Memory regions of software iWARP count against this even for root, and rings where they are not
 * privileged. */
static void raise_memlock(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &all); /* limits_warn_memlock tells, to those whom it concerns */
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

static size_t quarter_of_ram(void)
{
	size_t ram = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

	return ram / 4 < (64u << 20) ? 64u << 20 : ram / 4;
}

void limits_apply(const struct cfg_settings *s, const struct rn_logger *log, struct limits *out)
{
	rlim_t files = raise_files(log);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	raise_memlock();
	if (cpus < 1)
		cpus = 1;
	out->memory_max = s->server.memory_max ? (size_t)s->server.memory_max : quarter_of_ram();
	/* A worker may sit in a metadata call of a slow disk: a few more than processors. */
	out->threads = s->server.threads ? (unsigned)s->server.threads
					 : (cpus < 4 ? 4u : (cpus > 256 ? 256u : (unsigned)cpus));
	out->loops = cpus < 8 ? 1u : (cpus < 64 ? (unsigned)cpus / 8 : 8u);
	/* Half of the descriptors at most go to the cache; the rest is for connections. */
	rlim_t room = files > 2 * RESERVE_FILES ? (files - RESERVE_FILES) / 2 : RESERVE_FILES / 2;
	rlim_t want = s->server.max_fds ? s->server.max_fds : 65536;
	out->cache_fds = (unsigned)(want < room ? want : room);
	rlim_t kept = RESERVE_FILES +
		      (out->cache_fds < CACHE_FILES_LEAST ? out->cache_fds : CACHE_FILES_LEAST);
	out->connections = (unsigned)(files > 2 * kept ? files - kept : files / 2);
}
