/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the resources that the process has taken, so that a leak shows, and the state that clients have below an export. */
#include "daemon/held.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/process.h"
#include "nfs3/nfs3_server.h"
#include "nfs4/nfs4_server.h"
#include "rpc/request.h"
#include "vfs/file_state.h"

static void add_holder(void *ctx, const struct nfs4_loss *loss)
{
	struct exports_revoked *out = ctx;

	out->opens += loss->opens;
	out->locks += loss->locks;
	out->delegations += loss->delegations;
	if (!out->holder)
		out->holder = calloc(EXPORTS_HOLDERS_MAX, sizeof(*out->holder));
	if (!out->holder || out->nholders == EXPORTS_HOLDERS_MAX)
		return;
	struct exports_holder *h = &out->holder[out->nholders++];

	h->clientid = loss->clientid;
	memcpy(&h->addr, &loss->addr, sizeof(loss->addr));
	h->opens = loss->opens;
	h->locks = loss->locks;
	h->delegations = loss->delegations;
}

void held_below(struct nfs4_server *nfs4, struct nfs3_server *nfs3,
		const struct vfs_exports_lost *below, struct exports_revoked *out)
{
	if (nfs4)
		nfs4_count_exports(nfs4, below, add_holder, out);
	if (nfs3)
		out->lock_owners = nlm_count_exports(nfs3, below);
}

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

static void held_add(const struct held_sink *to, const char *name, uint64_t value)
{
	to->add(to->ctx, name, value);
}

static uint64_t held_minus(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

/* Without the heads of requests' replies, which exist as long as the requests, idle or not: the
 * data of calls and replies remain. */
static void held_add_payload(const struct held_sink *to, struct rn_payload_pool *pool,
			     uint64_t requests)
{
	struct rn_payload_stats p;

	rn_payload_stats(pool, &p);
	held_add(to, "payload_buffers", held_minus(p.buffers_in_use, requests));
	held_add(to, "payload_bytes", held_minus(p.bytes_in_use, requests * RPC_HEAD_SIZE));
	held_add(to, "slabs", p.slabs);
}

static void add_pipes(const struct held_sink *to, struct rn_pipe_pool *pipes)
{
	held_add(to, "pipes_in_use", pipes ? rn_pipe_pool_in_use(pipes) : 0);
	held_add(to, "pipes", pipes ? rn_pipe_pool_count(pipes) : 0);
}

static void held_add_rdma(const struct held_sink *to, const struct rr_stats *r)
{
	held_add(to, "rdma_devices", r->devices);
	held_add(to, "rdma_connection_bytes", r->conn_bytes);
	held_add(to, "queue_pairs", r->qps);
	held_add(to, "completion_queues", r->cqs);
	held_add(to, "memory_regions", r->mrs);
	held_add(to, "slab_regions", r->slab_mrs);
}

static void add_caches(const struct held_sink *to, const struct held_sources *from)
{
	struct vfs_file_stats f;
	struct vfs_stats v;
	struct drc_stats d;

	vfs_stats(from->vfs, &v);
	vfs_file_stats(from->vfs, &f);
	drc_stats(from->drc, &d);
	held_add(to, "nodes_in_use", v.nodes_in_use);
	held_add(to, "nodes", v.nodes);
	held_add(to, "node_fds", v.fds);
	held_add(to, "file_fds", f.held);
	held_add(to, "files_unmirrored", f.unheld);
	held_add(to, "drc_running", d.running);
	held_add(to, "drc_entries", d.entries);
	held_add(to, "drc_bytes", d.bytes);
	held_add(to, "drc_reach_seconds", d.reach_seconds);
}

static void add_nfs4(const struct held_sink *to, const struct held_sources *from)
{
	struct nfs4_held h = { 0 };

	if (from->nfs4)
		nfs4_held(from->nfs4, &h);
	held_add(to, "nfs4_clients", h.clients);
	held_add(to, "nfs4_courtesy_clients", h.courtesy_clients);
	held_add(to, "nfs4_sessions", h.sessions);
	held_add(to, "nfs4_slots", h.slots);
	held_add(to, "nfs4_cached_replies", h.cached_replies);
	held_add(to, "nfs4_owners", h.owners);
	held_add(to, "nfs4_opens", h.opens);
	held_add(to, "nfs4_locks", h.locks);
	held_add(to, "nfs4_delegations", h.delegations);
	held_add(to, "nfs4_copy_sources", h.copy_sources);
	held_add(to, "nfs4_copies", h.copies);
	held_add(to, "nfs4_memory", from->nfs4_memory->used);
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
	held_add(to, "tcp_connections", t.connections);
	held_add(to, "rdma_connections", r.connections);
	held_add(to, "requests", t.requests_busy + u.requests_busy + r.requests_busy);
	held_add(to, "requests_made", t.requests + u.requests + r.requests);
	held_add_payload(to, from->pool, t.requests + u.requests + r.requests);
	add_pipes(to, from->pipes);
	held_add_rdma(to, &r);
	add_caches(to, from);
	add_nfs4(to, from);
	held_add(to, "memory", from->budget->used);
	held_add(to, "workers", w.workers);
	held_add(to, "worker_fds", w.fds);
}

void held_log(const struct held_sources *from, const struct rn_logger *log, enum rn_level level)
{
	struct line l = { .len = 0 };
	const struct held_sink to = { .add = add_to_line, .ctx = &l };

	held_each(from, &to);
	held_add(&to, "fds", process_fds());
	held_add(&to, "threads", process_threads());
	rn_log(log, level, "held:%s", l.text);
}
