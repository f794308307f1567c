/* SPDX-License-Identifier: BSD-2-Clause */
/* Start, stop, timer and counters of the RDMA transport. */
#include "transport/rdma/rdma_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* True if a connection is to be closed now. */
static bool rr_conn_close_is_due(struct rr_conn *c, uint64_t now)
{
	int state = c->state;

	if (state == RR_ACCEPTING)
		return now > c->made_ns + RR_ACCEPT_SECONDS * RN_NS_PER_SECOND;
	if (state == RR_OPEN && rr_conn_stalled(c, now))
		return true;
	if (state != RR_OPEN || !c->srv->cfg.idle_seconds)
		return false;
	/* more than the id's reference: a request is under way */
	return c->rpc.refs == 1 && now > c->active_ns + c->srv->cfg.idle_seconds * RN_NS_PER_SECOND;
}

static void rr_server_on_tick(void *arg)
{
	struct rr_server *srv = arg;
	struct rr_conn *c;
	uint64_t now = rn_now_ns();

	pthread_mutex_lock(&srv->lock);
	LIST_FOREACH (c, &srv->conns, link)
		if (rr_conn_close_is_due(c, now))
			rr_conn_notify(c, RR_EV_CLOSE);
		else if (atomic_load_explicit(&c->rpc.back, memory_order_relaxed))
			rr_conn_notify(c, RR_EV_EXPIRE);
	pthread_mutex_unlock(&srv->lock);
	rr_told_expire(srv, now);
	rr_look_after(srv);
}

static void start_tick(void *arg)
{
	struct rr_server *srv = arg;

	ev_second_start(&srv->tick, srv->cfg.loops[0]->base, rr_server_on_tick, srv);
}

size_t rr_server_memory(size_t whole, bool sure)
{
	return rr_pool_memory() + rr_conn_memory_part(whole, sure);
}

int rr_server_new(const struct rr_config *cfg, struct rr_server **out)
{
	if (!cfg->nloops || !cfg->credits || cfg->inline_size < RR_INLINE_MIN ||
	    cfg->inline_size > RR_INLINE_MAX || cfg->inline_size % RR_INLINE_MIN)
		return -EINVAL;
	struct rr_server *srv = calloc(1, sizeof(*srv));
	if (!srv)
		return -ENOMEM;
	srv->cfg = *cfg;
	if (!srv->cfg.stall_seconds)
		srv->cfg.stall_seconds = RR_STALL_SECONDS;
	pthread_mutex_init(&srv->lock, NULL);
	pthread_cond_init(&srv->gone, NULL);
	rr_broken_init(&srv->broken);
	LIST_INIT(&srv->listeners);
	LIST_INIT(&srv->devices);
	LIST_INIT(&srv->conns);
	TAILQ_INIT(&srv->told);
	int rc = rr_pool_init(srv);
	if (!rc)
		rc = rr_conn_memory_reserve_least(srv);
	/* Before anybody is served, who could take the memory. */
	if (!rc && rr_device_is_there())
		rr_conn_memory_reserve(srv);
	if (!rc) {
		ev_loop_call(cfg->loops[0], start_tick, srv);
		rc = srv->tick.ev ? 0 : -ENOMEM;
	}
	if (rc) {
		rr_server_free(srv);
		return rc;
	}
	*out = srv;
	return 0;
}

struct listen_call {
	struct rr_server *srv;
	struct rr_listener *l;
	int err;
};

static void listen_on_loop(void *arg)
{
	struct listen_call *call = arg;

	call->err = rr_listener_open(call->srv, call->l);
	/* After errors that may pass, the listener is kept and tried again. */
	if (!call->err || call->err == -ENODEV || call->err == -EADDRNOTAVAIL)
		LIST_INSERT_HEAD(&call->srv->listeners, call->l, link);
	else
		free(call->l);
	rr_listeners_count(call->srv);
	if (!call->err && !rr_server_serves(call->srv))
		call->err = -ENODEV;
}

unsigned rr_server_serves(struct rr_server *srv)
{
	return atomic_load(&srv->serves);
}

int rr_server_listen(struct rr_server *srv, const struct sockaddr *addr, socklen_t len)
{
	struct rr_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	if (len > sizeof(l->addr)) {
		free(l);
		return -EINVAL;
	}
	memcpy(&l->addr, addr, len);
	struct listen_call call = { srv, l, 0 };
	ev_loop_call(srv->cfg.loops[0], listen_on_loop, &call);
	return call.err;
}

static void quiesce_on_loop(void *arg)
{
	struct rr_server *srv = arg;
	struct rr_listener *l;

	srv->quiesced = true;
	LIST_FOREACH (l, &srv->listeners, link)
		rr_listener_close(l);
}

void rr_server_quiesce(struct rr_server *srv)
{
	ev_loop_call(srv->cfg.loops[0], quiesce_on_loop, srv);
}

static void close_all_on_loop(void *arg)
{
	struct rr_server *srv = arg;
	struct rr_conn *c;

	quiesce_on_loop(srv);
	ev_second_stop(&srv->tick);
	pthread_mutex_lock(&srv->lock);
	LIST_FOREACH (c, &srv->conns, link)
		rr_conn_notify(c, RR_EV_CLOSE);
	pthread_mutex_unlock(&srv->lock);
}

static void close_channel_on_loop(void *arg)
{
	struct rr_server *srv = arg;
	struct rr_listener *l;

	while ((l = LIST_FIRST(&srv->listeners))) {
		LIST_REMOVE(l, link);
		free(l);
	}
	rr_told_expire(srv, UINT64_MAX);
	if (srv->channel_ev)
		event_free(srv->channel_ev);
	if (srv->channel)
		rdma_destroy_event_channel(srv->channel);
}

void rr_server_free(struct rr_server *srv)
{
	if (!srv)
		return;
	ev_loop_call(srv->cfg.loops[0], close_all_on_loop, srv);
	pthread_mutex_lock(&srv->lock);
	while (srv->live)
		pthread_cond_wait(&srv->gone, &srv->lock);
	pthread_mutex_unlock(&srv->lock);
	ev_loop_call(srv->cfg.loops[0], close_channel_on_loop, srv);
	rr_pool_fini(srv);
	rr_conn_memory_release(srv);
	rr_broken_fini(&srv->broken);
	pthread_cond_destroy(&srv->gone);
	pthread_mutex_destroy(&srv->lock);
	free(srv);
}

#define RDMA_SECTION "rdma"

struct saved_left {
	int fd;
};
static const struct image_field left_fields[] = { IMAGE_FD(1, struct saved_left, fd) };
static const struct image_kind left_kind = { 1, 1, left_fields };

struct rr_save_call {
	struct rr_server *srv;
	struct image_writer *w;
};

/* The connection manager's descriptor is first: it tells clients of the end, which without it they notice late. */
static void rr_save_on_loop(void *arg)
{
	const struct rr_save_call *call = arg;
	struct rr_device *dev;
	unsigned n = 1;

	if (!call->srv->channel)
		return;
	image_put(call->w, &left_kind, &(struct saved_left){ call->srv->channel->fd });
	LIST_FOREACH (dev, &call->srv->devices, link)
		if (n++ < RR_LEFT_MAX)
			image_put(call->w, &left_kind, &(struct saved_left){ dev->verbs->cmd_fd });
}

void rr_server_save(struct rr_server *srv, struct image_writer *w)
{
	struct rr_save_call call = { srv, w };

	image_begin(w, RDMA_SECTION);
	ev_loop_call(srv->cfg.loops[0], rr_save_on_loop, &call);
}

int rr_left_take(struct rr_left *left, struct image_reader *r)
{
	struct image_at at;

	left->n = 0;
	if (!image_enter(r, RDMA_SECTION, &at))
		return 0;
	while (image_next(&at)) {
		struct saved_left s = { -1 };

		if (left->n == RR_LEFT_MAX || image_get(&at, &left_kind, &s) < 0)
			return -EPROTO;
		left->fd[left->n++] = s.fd;
	}
	return 0;
}

void rr_left_end(struct rr_left *left)
{
	for (unsigned i = 0; i < left->n; i++)
		if (left->fd[i] >= 0)
			close(left->fd[i]);
	left->n = 0;
}

void rr_server_stats(struct rr_server *srv, struct rr_stats *out)
{
	struct rr_counters *n = &srv->n;

	pthread_mutex_lock(&srv->lock);
	uint64_t live = srv->live;
	pthread_mutex_unlock(&srv->lock);
	pthread_mutex_lock(&srv->pool.lock);
	uint64_t made = srv->pool.count, idle = srv->pool.nidle;
	pthread_mutex_unlock(&srv->pool.lock);
	*out = (struct rr_stats){
		.connections = live,
		.accepted = n->accepted,
		.refused = n->refused,
		.disconnects = n->disconnects,
		.calls = n->calls,
		.replies = n->replies,
		.read_chunks = n->read_chunks,
		.read_segments = n->read_segments,
		.read_bytes = n->read_bytes,
		.write_chunks = n->write_chunks,
		.write_segments = n->write_segments,
		.write_bytes = n->write_bytes,
		.reply_chunks = n->reply_chunks,
		.position_zero = n->position_zero,
		.invalidations = n->invalidations,
		.err_vers = n->err_vers,
		.err_chunk = n->err_chunk,
		.dropped = n->dropped,
		.sq_waits = n->sq_waits,
		.waits_memory = n->waits_memory,
		.cq_errors = n->cq_errors,
		.callbacks = n->callbacks,
		.closed_room = n->closed_room,
		.posts = n->posts,
		.completions = n->completions,
		.devices = srv->ndevices,
		.requests = made,
		.requests_busy = made - idle,
		.qps = n->qps,
		.cqs = n->cqs,
		.mrs = n->mrs,
		.slab_mrs = n->slab_mrs,
		.conn_bytes = n->conn_bytes,
		.listed_read = n->listed_read,
		.listed_write = n->listed_write,
		.listed_reply = n->listed_reply,
		.credits = n->credits,
	};
	for (unsigned i = 0; i < RR_REFUSALS; i++)
		out->refused_by[i] = n->refused_by[i];
}
