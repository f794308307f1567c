/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of memory, descriptors and threads. */
#include "daemon/limits.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin/admin.h"
#include "daemon/programs.h"
#include "daemon/workers/workers.h"
#include "gss/gss.h"
#include "lib/payload.h"
#include "lib/pipe.h"
#include "lib/util.h"
#include "rpc/client.h"
#include "transport/rdma/rdma_server.h"
#include "transport/tcp/tcp_server.h"
#include "transport/tls/tls.h"
#include "transport/udp/udp_server.h"
#include "vfs/vfs.h"

#define MIB ((size_t)1 << 20)
#define LEAST_NEED (64 * MIB) /* of server.memory_max, in conf/settings_schema.c */
#define DATA_PART 16u /* fraction that must be left to data, beside the slabs that are set aside */
#define SYSTEM_KEYTAB "/etc/krb5.keytab"
#define TEXT_MAX 512

/* A part of the budget: its purpose, as messages name it, and its size. */
struct part {
	const char *what;
	const char *key; /* the setting that it comes from; NULL: no single one */
	size_t bytes;
};

#define PARTS_MAX 9

/* With gss.enabled = auto the keytab is not looked into before the start. */
static bool wants_kerberos(const struct cfg_gss *gss)
{
	const bool own = gss->keytab && gss->keytab[0];

	return gss->enabled == CFG_YES ||
	       (gss->enabled == CFG_AUTO && access(own ? gss->keytab : SYSTEM_KEYTAB, F_OK) == 0);
}

static size_t pipes(const struct cfg_settings *s, size_t whole)
{
	const struct limits l = { .memory_max = whole, .files = UINT_MAX };

	return s->tcp.enabled ? (size_t)limits_pipes(&l) * RN_PIPE_SIZE : 0;
}

/* The parts of a budget of `whole` bytes; returns their number. */
static unsigned memory_need_divide(const struct cfg_settings *s, size_t whole,
				   struct part part[PARTS_MAX])
{
	const unsigned conns = (unsigned)s->tcp.max_connections;
	const bool tls = s->tcp.enabled && s->tls.certificate && s->tls.certificate[0];
	unsigned n = 0;

	/* A slab more, as heads of replies do not fill the last one of theirs. */
	part[n++] =
		(struct part){ "data", NULL, RN_PAYLOAD_ASIDE + RN_SLAB_SIZE + whole / DATA_PART };
	part[n++] = (struct part){ "caches", NULL, vfs_memory(whole) + pipes(s, whole) };
	if (s->tcp.enabled)
		part[n++] = (struct part){ "TCP", "tcp.max_connections",
					   tcp_server_memory(conns, limits_loops(), whole) };
	if (s->udp.enabled && s->nfs3.enabled)
		part[n++] = (struct part){ "UDP", "udp.enabled", udp_server_memory() };
	if (s->rdma.enabled != CFG_NO)
		part[n++] = (struct part){ "RDMA", "rdma.enabled",
					   rr_server_memory(whole, s->rdma.enabled == CFG_YES) };
	if (s->nfs4.enabled)
		part[n++] = (struct part){ "state of NFSv4", "nfs4.enabled",
					   whole / PROGRAMS_NFS4_SHARE };
	if (wants_kerberos(&s->gss))
		part[n++] = (struct part){ "Kerberos", "gss.enabled",
					   gss_memory(whole, (unsigned)s->gss.max_contexts) };
	if (tls)
		part[n++] = (struct part){ "TLS", "tls.certificate", whole / TLS_PART };
	return n;
}

static size_t total(const struct cfg_settings *s, size_t whole)
{
	struct part part[PARTS_MAX];
	size_t bytes = 0;

	for (unsigned i = memory_need_divide(s, whole, part); i > 0; i--)
		bytes += part[i - 1].bytes;
	return bytes;
}

/* Most parts are fractions of the whole, and less than one together; so an end is found. */
size_t memory_need_least(const struct cfg_settings *s)
{
	size_t whole = LEAST_NEED;

	while (total(s, whole) > whole)
		whole += MIB;
	return whole;
}

size_t memory_need_budget(const struct cfg_settings *s, size_t ram)
{
	if (s->server.memory_max)
		return (size_t)s->server.memory_max;
	const size_t need = memory_need_least(s);

	return need <= ram / 2 ? rn_max(need, ram / 4) : rn_max(ram / 4, LEAST_NEED);
}

/* The parts of the least budget, as "1M for data, 2M for TCP (tcp.max_connections)". */
static void list_parts(const struct cfg_settings *s, char text[TEXT_MAX])
{
	struct part part[PARTS_MAX];
	const unsigned n = memory_need_divide(s, memory_need_least(s), part);
	size_t len = 0;

	for (unsigned i = 0; i < n && len < TEXT_MAX; i++) {
		const struct part *p = &part[i];

		len += (size_t)snprintf(text + len, TEXT_MAX - len, "%s%zuM for %s%s%s%s",
					i ? ", " : "", (p->bytes + MIB - 1) / MIB, p->what,
					p->key ? " (" : "", p->key ? p->key : "",
					p->key ? ")" : "");
	}
}

/* The place of server.memory_max; or, if it is not set, of the setting that needs most. */
static struct cfg_position memory_need_place_of(const struct cfg_settings *s)
{
	const struct cfg_origin *o = cfg_origin_of(s, "server.memory_max");
	struct part part[PARTS_MAX];
	size_t most = 0;

	for (unsigned i = o ? 0 : memory_need_divide(s, memory_need_least(s), part); i > 0; i--) {
		const struct part *p = &part[i - 1];
		const struct cfg_origin *of = p->key ? cfg_origin_of(s, p->key) : NULL;

		if (of && p->bytes > most) {
			most = p->bytes;
			o = of;
		}
	}
	return o ? (struct cfg_position){ o->name, o->line, 0 }
		 : (struct cfg_position){ .file = "settings" };
}

int memory_need_check(const struct cfg_settings *s, size_t ram, struct cfg_diags *diags)
{
	const size_t need = memory_need_least(s), have = memory_need_budget(s, ram);
	char text[TEXT_MAX];

	if (have >= need)
		return 0;
	list_parts(s, text);
	cfg_diag_add(
		diags, memory_need_place_of(s), CFG_ERROR,
		"server.memory_max is %zuM%s, too little for what is asked for: make it %zuM or "
		"more, or ask for less; that is %s",
		have / MIB,
		s->server.memory_max ? "" : " by default, a part of this machine's memory",
		need / MIB, text);
	return -EINVAL;
}

#define WANT_FILES 1048576u
#define CACHE_WANT 65536u

/* Descriptors that come and go, or that are opened after all but the transports has started. */
#define FOR_NAMES 40u	  /* threads of daemon/names/askers.c, rpcbind, messages, reloads */
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

/* Most pipes, of 1 MiB and two descriptors each; and the bytes and descriptors of the limits that allow one pipe. */
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
