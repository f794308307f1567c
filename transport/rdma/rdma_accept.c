/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a connection request to rdma_accept(), on loops[0]. All memory of the connection is
 * allocated here, out of the connections' part of the budget: 0.7 MB at 128 credits and 4 KiB
 * inline. Where memory is scarce, a connection gets fewer credits (rdma_room.c). All Receives are
 * posted before the accept, since Linux clients do not retry when there is none.
 */
#include "transport/rdma/rdma_accept.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/util.h"
#include "rpc/conns.h"
#include "transport/load.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_device.h"
#include "transport/rdma/rdma_end.h"
#include "transport/rdma/rdma_events.h"
#include "transport/rdma/rdma_keys.h"
#include "transport/rdma/rdma_recv.h"
#include "transport/rdma/rdma_room.h"

#define ZEROS_SIZE 64u
#define CREDITS_FLOOR 4u
#define BESIDES_CREDITS (2 * RR_BATCH_MAX + RR_BACK_CALLS) /* Receives, at most */

static void *map_block(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void set_credits(struct rr_conn *c, unsigned credits)
{
	c->credits = credits;
	c->batch = (unsigned)rn_min(credits / 8 + 1, RR_BATCH_MAX);
	/* A connection with few credits has no memory for many calls to its client either. */
	c->back.most = (unsigned)rn_min(credits / 8 + 1, RR_BACK_CALLS);
	c->nrecvs = credits + 2 * c->batch + c->back.most;
	c->nsends = (unsigned)rn_min(credits, RR_SENDS_MAX);
	c->recv_block_size = (size_t)c->nrecvs * c->recv_size;
	c->send_block_size = (size_t)c->nsends * c->threshold + ZEROS_SIZE;
}

static size_t rr_conn_bytes(const struct rr_conn *c)
{
	return sizeof(*c) + sizeof(*c->rpc.client) + c->recv_block_size + c->send_block_size +
	       c->nrecvs * sizeof(*c->recvs) + c->nsends * sizeof(*c->sends);
}

/* Sets all sizes, from the settings, the device's limits and the client's private message. */
static void size_conn(struct rr_conn *c, const struct rdma_conn_param *param)
{
	const struct rr_config *cfg = &c->srv->cfg;
	struct rr_private_msg peer;
	unsigned max_wr = c->dev->attr.max_qp_wr > 0 ? c->dev->attr.max_qp_wr : 1;

	rr_private_find(param->private_data, param->private_data_len, &peer);
	c->invalidate = peer.remote_invalidate;
	c->recv_size = cfg->inline_size;
	c->threshold = rn_min(cfg->inline_size, peer.recv_size);
	set_credits(c, cfg->credits);
	if (c->nrecvs > max_wr)
		set_credits(c, max_wr > BESIDES_CREDITS ? max_wr - BESIDES_CREDITS : 1);
	const size_t room = rr_room_for_one(c->srv);
	while (c->credits > CREDITS_FLOOR && rr_conn_bytes(c) > room)
		set_credits(c, c->credits / 2);
	c->sq_depth = rn_min(RR_SQ_DEPTH, max_wr);
	c->sq_room = c->sq_depth;
	c->quiet_max = (unsigned)rn_min(rn_min(c->nsends / 2, RR_QUIET_MAX), max_wr - c->sq_depth);
}

static int alloc_blocks(struct rr_conn *c)
{
	size_t need = rr_conn_bytes(c);

	if (!rn_budget_take(&c->srv->conn_memory, need))
		return -ENOMEM;
	c->budget = need;
	rr_count(c->srv, conn_bytes, need);
	rr_count(c->srv, credits, c->credits);
	c->recv_block = map_block(c->recv_block_size);
	c->send_block = map_block(c->send_block_size);
	c->recvs = calloc(c->nrecvs, sizeof(*c->recvs));
	c->sends = calloc(c->nsends, sizeof(*c->sends));
	/* Made here, as closing must not fail; added on the connection's loop. */
	c->flush_timer = event_new(c->loop->base, -1, 0, rr_conn_flush_timeout, c);
	if (!c->recv_block || !c->send_block || !c->recvs || !c->sends || !c->flush_timer)
		return -ENOMEM;
	for (unsigned i = 0; i < c->nrecvs; i++)
		c->recvs[i] = (struct rr_recv){
			.conn = c,
			.buf = c->recv_block + (size_t)i * c->recv_size,
		};
	for (unsigned i = 0; i < c->nsends; i++) {
		c->sends[i].buf = c->send_block + (size_t)i * c->threshold;
		SLIST_INSERT_HEAD(&c->free_sends, &c->sends[i], link);
	}
	c->zeros = c->send_block + (size_t)c->nsends * c->threshold;
	return 0;
}

static int make_verbs(struct rr_conn *c)
{
	struct rr_device *dev = c->dev;
	int cqes = c->nrecvs + c->sq_depth + c->quiet_max + 1;
	int vectors = dev->verbs->num_comp_vectors > 0 ? dev->verbs->num_comp_vectors : 1;

	int rc = rr_domain_make(c);
	if (rc)
		return rc;
	c->recv_mr = ibv_reg_mr(c->pd, c->recv_block, c->recv_block_size, IBV_ACCESS_LOCAL_WRITE);
	c->send_mr = ibv_reg_mr(c->pd, c->send_block, c->send_block_size, 0);
	rr_count(c->srv, mrs, (c->recv_mr ? 1u : 0) + (c->send_mr ? 1u : 0));
	if (!c->recv_mr || !c->send_mr)
		return -ENOMEM;
	c->cq = ibv_create_cq(dev->verbs, cqes, c, dev->channels[c->loop_index].comp,
			      (int)c->loop_index % vectors);
	if (!c->cq)
		return -ENOMEM;
	rr_count(c->srv, cqs, 1);
	struct ibv_qp_init_attr attr = {
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = c->sq_depth + c->quiet_max,
			 .max_recv_wr = c->nrecvs,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	if (rdma_create_qp(c->id, c->pd, &attr) < 0)
		return -errno;
	rr_count(c->srv, qps, 1);
	if (ibv_req_notify_cq(c->cq, 0) != 0)
		return -EIO;
	c->open = true;
	return rr_recv_post_all(c);
}

static int accept_now(struct rr_conn *c, uint8_t depth)
{
	uint8_t msg[RR_PRIVATE_MSG_SIZE];
	struct rr_private_msg ours = {
		.remote_invalidate = c->dev->invalidate,
		.send_size = c->srv->cfg.inline_size,
		.recv_size = c->recv_size,
	};

	rr_private_encode(&ours, msg);
	struct rdma_conn_param param = {
		.private_data = msg,
		.private_data_len = sizeof(msg),
		.responder_resources = 0, /* clients neither read nor write this server's memory */
		.initiator_depth = depth,
		.rnr_retry_count = 7, /* retry for ever */
	};
	return rdma_accept(c->id, &param) < 0 ? -errno : 0;
}

static struct rr_conn *rr_conn_new(struct rr_server *srv, struct rdma_cm_id *id,
				   struct rr_device *dev)
{
	struct rr_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_lock(&srv->lock);
	srv->live++;
	pthread_mutex_unlock(&srv->lock);
	c->srv = srv;
	c->dev = dev;
	c->id = id;
	c->loop_index = ev_place(srv->cfg.loops, srv->cfg.nloops);
	c->loop = srv->cfg.loops[c->loop_index];
	c->rpc.ops = &rr_conn_ops;
	c->rpc.refs = 1;
	c->task.run = rr_conn_run;
	c->send_task.run = rr_conn_send;
	c->turn.conn = &c->rpc;
	c->turn.visit = rr_conn_visit;
	c->made_ns = rn_now_ns();
	c->active_ns = c->made_ns;
	pthread_mutex_init(&c->lock, NULL);
	TAILQ_INIT(&c->held);
	TAILQ_INIT(&c->hungry);
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->reading);
	TAILQ_INIT(&c->replies);
	SLIST_INIT(&c->free_sends);
	STAILQ_INIT(&c->back.handed);
	STAILQ_INIT(&c->back.waiting);
	c->back.credits = 1;
	return c;
}

static void copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memcpy(to, from,
	       from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
}

/* -EACCES for a stranger that has too many connections. */
static int rr_conn_admit(struct rr_conn *c)
{
	const struct rr_config *cfg = &c->srv->cfg;

	if (cfg->standing)
		(void)cfg->standing(cfg->standing_ctx, &c->rpc);
	return rr_room_is_over(c) ? -EACCES : 0;
}

/* Puts the connection into the table of all connections, for listings. */
static void show_figures(struct rr_conn *c)
{
	struct rpc_conn_rdma *shown = &c->shown;

	snprintf(shown->device, sizeof(shown->device), "%s",
		 ibv_get_device_name(c->dev->verbs->device));
	shown->inline_in = c->recv_size;
	shown->inline_out = c->threshold;
	shown->credits = c->credits;
	c->rpc.rdma = shown;
	rpc_conns_enter(rpc_clients_conns(c->srv->cfg.clients), &c->rpc);
}

/* Puts the connection on the server's list before the accept, so that every event finds it. */
static int rr_conn_set_up(struct rr_conn *c, const struct rdma_conn_param *param, uint8_t depth)
{
	struct rr_server *srv = c->srv;

	size_conn(c, param);
	copy_address(&c->rpc.peer, rdma_get_peer_addr(c->id));
	copy_address(&c->rpc.local, rdma_get_local_addr(c->id));
	c->rpc.client = rpc_client_get(srv->cfg.clients, &c->rpc.peer);
	int rc = c->rpc.client ? rr_conn_admit(c) : -ENOMEM;
	if (!rc)
		rc = alloc_blocks(c);
	if (!rc)
		rc = make_verbs(c);
	if (rc)
		return rc;
	show_figures(c);
	c->id->context = c;
	pthread_mutex_lock(&srv->lock);
	LIST_INSERT_HEAD(&srv->conns, c, link);
	pthread_mutex_unlock(&srv->lock);
	rc = accept_now(c, depth);
	if (rc) {
		pthread_mutex_lock(&srv->lock);
		LIST_REMOVE(c, link);
		pthread_mutex_unlock(&srv->lock);
		c->id->context = NULL;
	}
	return rc;
}

int rr_accept(struct rr_server *srv, struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	char name[INET6_ADDRSTRLEN + 8];

	pthread_mutex_lock(&srv->lock);
	const unsigned live = srv->live;
	pthread_mutex_unlock(&srv->lock);
	if (srv->quiesced)
		return -ESHUTDOWN;
	/* Connections being closed to make room still count for a while. */
	if (live >= srv->cfg.max_connections &&
	    (!rr_room_make(srv) || live >= srv->cfg.max_connections + RR_LEAVING_MAX))
		return -EMFILE;
	rr_room_reserve(srv);
	struct rr_device *dev = rr_device_get(srv, id->verbs);
	if (!dev)
		return -ENOMEM;
	uint8_t depth = rn_min(param->initiator_depth, dev->attr.max_qp_init_rd_atom);
	struct rr_conn *c = depth ? rr_conn_new(srv, id, dev) : NULL;
	if (!c) {
		rr_device_put(dev);
		return depth ? -ENOMEM : -EPROTO;
	}
	int rc = rr_conn_set_up(c, param, depth);
	if (rc) {
		c->open = false;
		rr_conn_end_verbs(c);
		rr_domain_end(c);
		rr_device_put(dev);
		rr_conn_free(c);
		if (rc == -ENOMEM)
			rr_room_make(srv);
		return rc;
	}
	rr_count(srv, accepted, 1);
	rn_debug(srv->cfg.log, "rdma: %s: accepted, %u credits, inline %u/%u, %zu bytes",
		 rr_peer_name(c, name, sizeof(name)), c->credits, c->recv_size, c->threshold,
		 c->budget);
	return 0;
}
