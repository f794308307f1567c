/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners, the events of the connection manager, the way from a connection request to rdma_accept(), and the ends of
 * ids. All of it on loops[0].
 *
 * All memory of a connection is allocated at the request, out of the connections' part of the budget: 0.7 MB at 128
 * credits and 4 KiB inline. Where memory is scarce, a connection gets fewer credits (size_conn; rdma_conn_memory.c says how much memory is for one). All Receives are
 * posted before the accept, since Linux clients do not retry when there is none.
 */
#include "transport/rdma/rdma_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/conns.h"
#include "transport/event_loop.h"

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
	/* At least CREDITS_FLOOR, unless the settings or the device have fewer. */
	const size_t room = rr_conn_memory_for_one(c->srv);
	while (c->credits > CREDITS_FLOOR && rr_conn_bytes(c) > room)
		set_credits(c, (unsigned)rn_max(c->credits / 2, CREDITS_FLOOR));
	c->sq_depth = rn_min(RR_SQ_DEPTH, max_wr);
	c->sq_free = c->sq_depth;
	c->unsignaled_max =
		(unsigned)rn_min(rn_min(c->nsends / 2, RR_UNSIGNALED_MAX), max_wr - c->sq_depth);
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
	int cqes = c->nrecvs + c->sq_depth + c->unsignaled_max + 1;
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
		.cap = { .max_send_wr = c->sq_depth + c->unsignaled_max,
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

	if (cfg->admission)
		(void)cfg->admission(cfg->admission_ctx, &c->rpc);
	return rr_conn_is_over_quota(c) ? -EACCES : 0;
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

/* Makes and accepts a connection. 0 or -errno; the id is taken only on success. On loops[0]. */
static int rr_accept(struct rr_server *srv, struct rdma_cm_id *id,
		     const struct rdma_conn_param *param)
{
	char name[INET6_ADDRSTRLEN + 8];

	pthread_mutex_lock(&srv->lock);
	const unsigned live = srv->live;
	pthread_mutex_unlock(&srv->lock);
	if (srv->quiesced)
		return -ESHUTDOWN;
	/* Connections being closed to make room still count for a while. */
	if (live >= srv->cfg.max_connections &&
	    (!rr_conn_evict_one(srv) || live >= srv->cfg.max_connections + RR_LEAVING_MAX))
		return -EMFILE;
	rr_conn_memory_reserve(srv);
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
			rr_conn_evict_one(srv);
		return rc;
	}
	rr_count(srv, accepted, 1);
	rn_debug(srv->cfg.log, "rdma: %s: accepted, %u credits, inline %u/%u, %zu bytes",
		 rr_peer_name(c, name, sizeof(name)), c->credits, c->recv_size, c->threshold,
		 c->budget);
	return 0;
}

/*
 * Events of the connection manager. They are acknowledged at once and handed to the connection's loop. The id of a
 * connection is destroyed on this thread too, so an event never meets a connection that is gone.
 */

#define CM_EVENTS_AT_ONCE 32 /* then other work of this loop has its turn */

static struct rr_listener *find_listener(struct rr_server *srv, const struct rdma_cm_id *id)
{
	struct rr_listener *l;

	LIST_FOREACH (l, &srv->listeners, link)
		if (l->id == id)
			return l;
	return NULL;
}

static void on_connect(struct rr_server *srv, struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->id;
	int rc = rr_accept(srv, id, &ev->param.conn);

	if (rc)
		rdma_reject(id, NULL, 0);
	rdma_ack_cm_event(ev);
	if (!rc)
		return;
	rr_count(srv, refused, 1);
	rn_debug(srv->cfg.log, "rdma: connection refused: %s", strerror(-rc));
	rdma_destroy_id(id);
}

/* The listener's device or address is gone, or has changed: opens it again, at once or by the
 * timer. */
static void on_listener_lost(struct rr_server *srv, struct rr_listener *l)
{
	rr_listener_close(l);
	if (srv->quiesced)
		return;
	int rc = rr_listener_open(srv, l);
	if (rc)
		rn_notice(srv->cfg.log, "rdma: cannot listen for now, trying again: %s",
			  strerror(-rc));
}

/*
 * A client that waits for a reply has nothing to send, and learns from the connection manager only that its connection has ended. The
 * kernel tells it until it answers, but not beyond the end of the id: over a network that is cut for a while, a client whose id was
 * destroyed at once would go on waiting until it repeats its call, with Linux after a minute.
 */

static void rr_told_end(struct rr_server *srv, struct rr_told *t)
{
	TAILQ_REMOVE(&srv->told, t, link);
	srv->ntold--;
	rdma_destroy_id(t->id);
	free(t);
}

void rr_id_end(struct rr_server *srv, struct rdma_cm_id *id, bool connected)
{
	struct rr_told *t = connected && !srv->quiesced ? malloc(sizeof(*t)) : NULL;

	if (!t) {
		rdma_destroy_id(id);
		return;
	}
	id->context = NULL;
	t->id = id;
	t->until_ns = rn_now_ns() + RR_TELL_SECONDS * RN_NS_PER_SECOND;
	if (srv->ntold == RR_TELL_MAX)
		rr_told_end(srv, TAILQ_FIRST(&srv->told));
	TAILQ_INSERT_TAIL(&srv->told, t, link);
	srv->ntold++;
}

void rr_told_expire(struct rr_server *srv, uint64_t now)
{
	struct rr_told *t;

	while ((t = TAILQ_FIRST(&srv->told)) && t->until_ns <= now)
		rr_told_end(srv, t);
}

/* The client knows, or the device goes. */
static void rr_told_find(struct rr_server *srv, const struct rdma_cm_id *id)
{
	struct rr_told *t;

	TAILQ_FOREACH (t, &srv->told, link) {
		if (t->id == id) {
			rr_told_end(srv, t);
			return;
		}
	}
}

static unsigned conn_bits(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		return RR_EV_ESTABLISHED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return RR_EV_CLOSE | RR_EV_LOST;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return RR_EV_CLOSE;
	default:
		return 0;
	}
}

static void on_event(struct rr_server *srv, struct rdma_cm_event *ev)
{
	enum rdma_cm_event_type type = ev->event;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		on_connect(srv, ev);
		return;
	}
	struct rr_listener *l = find_listener(srv, ev->id);
	struct rr_conn *c = l ? NULL : ev->id->context;
	if (type == RDMA_CM_EVENT_DEVICE_REMOVAL || type == RDMA_CM_EVENT_ADDR_CHANGE)
		rn_notice(srv->cfg.log, "rdma: %s", rdma_event_str(type));
	const struct rdma_cm_id *id = ev->id;
	rdma_ack_cm_event(ev);
	if (c && conn_bits(type)) {
		c->connected = type == RDMA_CM_EVENT_ESTABLISHED;
		rr_conn_notify(c, conn_bits(type));
	}
	if (!l && !c && conn_bits(type))
		rr_told_find(srv, id);
	if (l && (type == RDMA_CM_EVENT_DEVICE_REMOVAL || type == RDMA_CM_EVENT_ADDR_CHANGE))
		on_listener_lost(srv, l);
}

static void rr_cm_ready(evutil_socket_t fd, short what, void *arg)
{
	struct rr_server *srv = arg;
	struct rdma_cm_event *ev;

	(void)fd;
	(void)what;
	for (int i = 0; i < CM_EVENTS_AT_ONCE && rdma_get_cm_event(srv->channel, &ev) == 0; i++)
		on_event(srv, ev);
}

/* Listeners. One on a wildcard address serves every device, also those plugged in later. The timer
 * opens listeners that could not be opened, or that were lost with their device or address. */

#define LISTEN_BACKLOG 128

/* 0 also if it is open. */
static int channel_open(struct rr_server *srv)
{
	if (srv->channel)
		return 0;
	/* librdmacm complains on standard error if the kernel has no connection manager, so look
	 * first. */
	if (access("/dev/infiniband/rdma_cm", R_OK | W_OK) < 0)
		return -ENODEV;
	srv->channel = rdma_create_event_channel();
	if (!srv->channel)
		return -ENODEV;
	int flags = fcntl(srv->channel->fd, F_GETFL);
	fcntl(srv->channel->fd, F_SETFL, flags | O_NONBLOCK);
	srv->channel_ev = event_new(srv->cfg.loops[0]->base, srv->channel->fd, EV_READ | EV_PERSIST,
				    rr_cm_ready, srv);
	if (srv->channel_ev && event_add(srv->channel_ev, NULL) == 0)
		return 0;
	if (srv->channel_ev)
		event_free(srv->channel_ev);
	rdma_destroy_event_channel(srv->channel);
	srv->channel_ev = NULL;
	srv->channel = NULL;
	return -ENOMEM;
}

static int rr_bind_and_listen(struct rdma_cm_id *id, struct rr_listener *l)
{
	int one = 1;

	rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one));
	/* Each family has its own listener on the same port. */
	if (l->addr.ss_family == AF_INET6 &&
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)) < 0)
		return -errno;
	if (rdma_bind_addr(id, (struct sockaddr *)&l->addr) < 0 ||
	    rdma_listen(id, LISTEN_BACKLOG) < 0)
		return -errno;
	return 0;
}

int rr_listener_open(struct rr_server *srv, struct rr_listener *l)
{
	struct rdma_cm_id *id;
	int rc = channel_open(srv);

	if (rc)
		return rc;
	if (rdma_create_id(srv->channel, &id, NULL, RDMA_PS_TCP) < 0)
		return -errno;
	rc = rr_bind_and_listen(id, l);
	if (rc) {
		rdma_destroy_id(id);
		return rc;
	}
	l->id = id;
	return 0;
}

void rr_listener_close(struct rr_listener *l)
{
	if (l->id)
		rdma_destroy_id(l->id);
	l->id = NULL;
}

bool rr_device_is_there(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	return n > 0;
}

void rr_listeners_count(struct rr_server *srv)
{
	struct rr_listener *l;
	unsigned serves = 0;

	LIST_FOREACH (l, &srv->listeners, link)
		if (l->id)
			serves |= l->addr.ss_family == AF_INET6 ? RR_SERVES_IPV6 : RR_SERVES_IPV4;
	if (serves && !rr_device_is_there())
		serves = 0;
	if (serves)
		rr_conn_memory_reserve(srv);
	atomic_store(&srv->serves, serves);
}

void rr_look_after(struct rr_server *srv)
{
	struct rr_listener *l;

	if (srv->quiesced || rn_now_ns() < srv->retry_ns)
		return;
	srv->retry_ns = rn_now_ns() + RR_RETRY_SECONDS * RN_NS_PER_SECOND;
	rr_devices_check(srv);
	LIST_FOREACH (l, &srv->listeners, link)
		if (!l->id && rr_listener_open(srv, l) == 0)
			rn_notice(srv->cfg.log, "rdma: listening again on port %u",
				  ntohs(rdma_get_src_port(l->id)));
	rr_listeners_count(srv);
}
