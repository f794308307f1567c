/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/held.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#include "rpc/request.h"
#include "vfs/file_state.h"

#define LINE_SIZE 900 /* longest line of log_sink.c */

struct line {
	char text[LINE_SIZE];
	size_t len;
};

static void add(struct line *l, const char *name, uint64_t value)
{
	int n = snprintf(l->text + l->len, sizeof(l->text) - l->len, " %s=%" PRIu64, name, value);

	if (n > 0 && l->len + (size_t)n < sizeof(l->text))
		l->len += (size_t)n;
	else
		l->text[l->len] = 0;
}

/* Number of entries in a folder of /proc/self, without the descriptor that reads it. */
static uint64_t count_entries(const char *path, unsigned own)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	uint64_t n = 0;

	if (!dir)
		return 0;
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n > own ? n - own : 0;
}

static uint64_t less(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

/* Without the heads of requests' replies, which exist as long as the requests, idle or not: the
 * data of calls and replies remain. */
static void add_payload(struct line *l, struct rn_payload_pool *pool, uint64_t requests)
{
	struct rn_payload_stats p;

	rn_payload_stats(pool, &p);
	add(l, "payload_buffers", less(p.buffers_in_use, requests));
	add(l, "payload_bytes", less(p.bytes_in_use, requests * RPC_HEAD_SIZE));
	add(l, "slabs", p.slabs);
}

static void add_pipes(struct line *l, struct rn_pipe_pool *pipes)
{
	add(l, "pipes_in_use", pipes ? rn_pipe_pool_in_use(pipes) : 0);
	add(l, "pipes", pipes ? rn_pipe_pool_count(pipes) : 0);
}

static void add_rdma(struct line *l, const struct rr_stats *r)
{
	add(l, "rdma_devices", r->devices);
	add(l, "rdma_connection_bytes", r->conn_bytes);
	add(l, "queue_pairs", r->qps);
	add(l, "completion_queues", r->cqs);
	add(l, "memory_regions", r->mrs);
	add(l, "slab_regions", r->slab_mrs);
}

static void add_caches(struct line *l, const struct held_sources *from)
{
	struct vfs_file_stats f;
	struct vfs_stats v;
	struct drc_stats d;

	vfs_stats(from->vfs, &v);
	vfs_file_stats(from->vfs, &f);
	drc_stats(from->drc, &d);
	add(l, "nodes_in_use", v.nodes_in_use);
	add(l, "nodes", v.nodes);
	add(l, "node_fds", v.fds);
	add(l, "file_fds", f.held);
	add(l, "files_unmirrored", f.unheld);
	add(l, "drc_running", d.running);
	add(l, "drc_entries", d.entries);
	add(l, "drc_bytes", d.bytes);
}

static void add_nfs4(struct line *l, const struct held_sources *from)
{
	struct nfs4_held h = { 0 };

	if (from->nfs4)
		nfs4_held(from->nfs4, &h);
	add(l, "nfs4_clients", h.clients);
	add(l, "nfs4_courtesy_clients", h.courtesy_clients);
	add(l, "nfs4_sessions", h.sessions);
	add(l, "nfs4_slots", h.slots);
	add(l, "nfs4_cached_replies", h.cached_replies);
	add(l, "nfs4_owners", h.owners);
	add(l, "nfs4_opens", h.opens);
	add(l, "nfs4_locks", h.locks);
	add(l, "nfs4_delegations", h.delegations);
	add(l, "nfs4_copy_sources", h.copy_sources);
	add(l, "nfs4_copies", h.copies);
	add(l, "nfs4_memory", from->nfs4_memory->used);
}

void held_log(const struct held_sources *from, const struct rn_logger *log, enum rn_level level)
{
	struct line l = { .len = 0 };
	struct tcp_stats t = { 0 };
	struct rr_stats r = { 0 };
	struct workers_stats w;

	workers_stats(from->workers, &w);
	if (from->tcp)
		tcp_server_stats(from->tcp, &t);
	if (from->rdma)
		rr_server_stats(from->rdma, &r);
	add(&l, "tcp_connections", t.connections);
	add(&l, "rdma_connections", r.connections);
	add(&l, "requests", t.requests_busy + r.requests_busy);
	add(&l, "requests_made", t.requests + r.requests);
	add_payload(&l, from->pool, t.requests + r.requests);
	add_pipes(&l, from->pipes);
	add_rdma(&l, &r);
	add_caches(&l, from);
	add_nfs4(&l, from);
	add(&l, "memory", from->budget->used);
	add(&l, "workers", w.workers);
	add(&l, "worker_fds", w.fds);
	add(&l, "fds", count_entries("/proc/self/fd", 1));
	add(&l, "threads", count_entries("/proc/self/task", 0));
	rn_log(log, level, "held:%s", l.text);
}
