/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/held.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/process.h"
#include "rpc/request.h"
#include "vfs/file_state.h"

#define LINE_SIZE 900 /* longest line of log_sink.c */

struct line {
	char text[LINE_SIZE];
	size_t len;
};

static void add_to_line(void *ctx, const char *name, uint64_t value)
{
	struct line *l = ctx;
	int n = snprintf(l->text + l->len, sizeof(l->text) - l->len, " %s=%" PRIu64, name, value);

	if (n > 0 && l->len + (size_t)n < sizeof(l->text))
		l->len += (size_t)n;
	else
		l->text[l->len] = 0;
}

static void add(const struct held_sink *to, const char *name, uint64_t value)
{
	to->add(to->ctx, name, value);
}

static uint64_t less(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

/* Without the heads of requests' replies, which exist as long as the requests, idle or not: the
 * data of calls and replies remain. */
static void add_payload(const struct held_sink *to, struct rn_payload_pool *pool, uint64_t requests)
{
	struct rn_payload_stats p;

	rn_payload_stats(pool, &p);
	add(to, "payload_buffers", less(p.buffers_in_use, requests));
	add(to, "payload_bytes", less(p.bytes_in_use, requests * RPC_HEAD_SIZE));
	add(to, "slabs", p.slabs);
}

static void add_pipes(const struct held_sink *to, struct rn_pipe_pool *pipes)
{
	add(to, "pipes_in_use", pipes ? rn_pipe_pool_in_use(pipes) : 0);
	add(to, "pipes", pipes ? rn_pipe_pool_count(pipes) : 0);
}

static void add_rdma(const struct held_sink *to, const struct rr_stats *r)
{
	add(to, "rdma_devices", r->devices);
	add(to, "rdma_connection_bytes", r->conn_bytes);
	add(to, "queue_pairs", r->qps);
	add(to, "completion_queues", r->cqs);
	add(to, "memory_regions", r->mrs);
	add(to, "slab_regions", r->slab_mrs);
}

static void add_caches(const struct held_sink *to, const struct held_sources *from)
{
	struct vfs_file_stats f;
	struct vfs_stats v;
	struct drc_stats d;

	vfs_stats(from->vfs, &v);
	vfs_file_stats(from->vfs, &f);
	drc_stats(from->drc, &d);
	add(to, "nodes_in_use", v.nodes_in_use);
	add(to, "nodes", v.nodes);
	add(to, "node_fds", v.fds);
	add(to, "file_fds", f.held);
	add(to, "files_unmirrored", f.unheld);
	add(to, "drc_running", d.running);
	add(to, "drc_entries", d.entries);
	add(to, "drc_bytes", d.bytes);
	add(to, "drc_reach_seconds", d.reach_seconds);
}

static void add_nfs4(const struct held_sink *to, const struct held_sources *from)
{
	struct nfs4_held h = { 0 };

	if (from->nfs4)
		nfs4_held(from->nfs4, &h);
	add(to, "nfs4_clients", h.clients);
	add(to, "nfs4_courtesy_clients", h.courtesy_clients);
	add(to, "nfs4_sessions", h.sessions);
	add(to, "nfs4_slots", h.slots);
	add(to, "nfs4_cached_replies", h.cached_replies);
	add(to, "nfs4_owners", h.owners);
	add(to, "nfs4_opens", h.opens);
	add(to, "nfs4_locks", h.locks);
	add(to, "nfs4_delegations", h.delegations);
	add(to, "nfs4_copy_sources", h.copy_sources);
	add(to, "nfs4_copies", h.copies);
	add(to, "nfs4_memory", from->nfs4_memory->used);
}

void held_each(const struct held_sources *from, const struct held_sink *to)
{
	struct tcp_stats t = { 0 };
	struct udp_stats u = { 0 };
	struct rr_stats r = { 0 };
	struct workers_stats w;

	workers_stats(from->workers, &w);
	if (from->tcp)
		tcp_server_stats(from->tcp, &t);
	if (from->udp)
		udp_server_stats(from->udp, &u);
	if (from->rdma)
		rr_server_stats(from->rdma, &r);
	add(to, "tcp_connections", t.connections);
	add(to, "rdma_connections", r.connections);
	add(to, "requests", t.requests_busy + u.requests_busy + r.requests_busy);
	add(to, "requests_made", t.requests + u.requests + r.requests);
	add_payload(to, from->pool, t.requests + u.requests + r.requests);
	add_pipes(to, from->pipes);
	add_rdma(to, &r);
	add_caches(to, from);
	add_nfs4(to, from);
	add(to, "memory", from->budget->used);
	add(to, "workers", w.workers);
	add(to, "worker_fds", w.fds);
}

void held_log(const struct held_sources *from, const struct rn_logger *log, enum rn_level level)
{
	struct line l = { .len = 0 };
	const struct held_sink to = { .add = add_to_line, .ctx = &l };

	held_each(from, &to);
	add(&to, "fds", process_fds());
	add(&to, "threads", process_threads());
	rn_log(log, level, "held:%s", l.text);
}
