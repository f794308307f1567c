/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices, and the local keys for transfers.
 *
 * A device has one protection domain, one completion channel for each loop, and the memory regions of the payload slabs.
 * A slab is registered when a transfer first needs it, without rights for peers. Devices that cannot work so have
 * connections with domains of their own.
 */
#include "transport/rdma/rdma_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define SIW_VENDOR 0x626d74u
#define SIW_PART 0u
#define NO_MEMORY_NS (60 * RN_NS_PER_SECOND) /* time between two warnings */

/* iWARP hardware wants the sink of an RDMA Read to be open to the peer's Writes (RFC 5040 section
 * 7.1). siw needs local rights only; of other drivers that is not known. */
static bool sinks_need_rights(const struct rr_device *dev)
{
	const struct ibv_device_attr *a = &dev->attr;

	return dev->iwarp && !(a->vendor_id == SIW_VENDOR && a->vendor_part_id == SIW_PART);
}

struct channel_call {
	struct rr_device *dev;
	unsigned index;
	int err;
};

static void open_channel(void *arg)
{
	struct channel_call *call = arg;
	struct rr_device *dev = call->dev;
	struct rr_channel *ch = &dev->channels[call->index];
	struct ev_loop *loop = dev->srv->cfg.loops[call->index];

	call->err = -ENOMEM;
	ch->at_once = 1;
	ch->comp = ibv_create_comp_channel(dev->verbs);
	if (!ch->comp)
		return;
	int flags = fcntl(ch->comp->fd, F_GETFL);
	if (flags < 0 || fcntl(ch->comp->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return;
	ch->ev = event_new(loop->base, ch->comp->fd, EV_READ | EV_PERSIST, rr_cq_event, ch);
	if (ch->ev && event_add(ch->ev, NULL) == 0)
		call->err = 0;
}

static void close_channel(void *arg)
{
	struct channel_call *call = arg;
	struct rr_channel *ch = &call->dev->channels[call->index];

	if (ch->ev)
		event_free(ch->ev);
	if (ch->comp)
		ibv_destroy_comp_channel(ch->comp);
	*ch = (struct rr_channel){ 0 };
}

/* Channels belong to their loops. Only loops[0] calls other loops and waits, so no two loops wait
 * for each other. */
static int for_each_loop(struct rr_device *dev, void (*fn)(void *arg))
{
	for (unsigned i = 0; i < dev->srv->cfg.nloops; i++) {
		struct channel_call call = { dev, i, 0 };
		ev_loop_call(dev->srv->cfg.loops[i], fn, &call);
		if (call.err)
			return call.err;
	}
	return 0;
}

static void device_free(struct rr_device *dev)
{
	if (dev->channels)
		for_each_loop(dev, close_channel);
	if (dev->slab_mr)
		for (unsigned i = 0; i < RN_SLABS_MAX; i++)
			if (dev->slab_mr[i] && ibv_dereg_mr(dev->slab_mr[i]) == 0)
				rr_uncount(dev->srv, slab_mrs, 1);
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	pthread_mutex_destroy(&dev->lock);
	free(dev->channels);
	free(dev->slab_mr);
	free(dev);
}

static struct rr_device *device_new(struct rr_server *srv, struct ibv_context *verbs)
{
	struct rr_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->srv = srv;
	dev->verbs = verbs;
	dev->iwarp = verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	pthread_mutex_init(&dev->lock, NULL);
	dev->channels = calloc(srv->cfg.nloops, sizeof(*dev->channels));
	dev->slab_mr = calloc(RN_SLABS_MAX, sizeof(*dev->slab_mr));
	dev->pd = ibv_alloc_pd(verbs);
	if (!dev->channels || !dev->slab_mr || !dev->pd ||
	    ibv_query_device(verbs, &dev->attr) != 0 || for_each_loop(dev, open_channel) < 0) {
		device_free(dev);
		return NULL;
	}
	dev->own_domains = sinks_need_rights(dev);
	dev->invalidate = dev->attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
	rn_debug(srv->cfg.log, "rdma: device %s opened%s%s", ibv_get_device_name(verbs->device),
		 dev->iwarp ? " (iWARP)" : "",
		 dev->own_domains ? ", a protection domain for each connection" : "");
	return dev;
}

struct rr_device *rr_device_get(struct rr_server *srv, struct ibv_context *verbs)
{
	struct rr_device *dev;

	LIST_FOREACH (dev, &srv->devices, link)
		if (dev->verbs == verbs)
			break;
	if (!dev) {
		dev = device_new(srv, verbs);
		if (!dev)
			return NULL;
		LIST_INSERT_HEAD(&srv->devices, dev, link);
		atomic_fetch_add(&srv->ndevices, 1);
	}
	dev->users++;
	return dev;
}

void rr_device_put(struct rr_device *dev)
{
	if (--dev->users)
		return;
	LIST_REMOVE(dev, link);
	atomic_fetch_sub(&dev->srv->ndevices, 1);
	device_free(dev);
}

static bool is_present(const struct rr_device *dev, struct ibv_device **list, int n)
{
	for (int i = 0; i < n; i++)
		if (list[i] == dev->verbs->device)
			return true;
	return false;
}

/* loops[0] ends connections, so their devices do not change under it. */
static void close_connections(struct rr_device *dev)
{
	struct rr_server *srv = dev->srv;
	struct rr_conn *c;

	pthread_mutex_lock(&srv->lock);
	LIST_FOREACH (c, &srv->conns, link)
		if (c->dev == dev)
			rr_conn_notify(c, RR_EV_CLOSE);
	pthread_mutex_unlock(&srv->lock);
}

void rr_devices_check(struct rr_server *srv)
{
	struct rr_device *dev;
	int n = 0;
	struct ibv_device **list = srv->channel ? ibv_get_device_list(&n) : NULL;

	if (!list)
		return;
	LIST_FOREACH (dev, &srv->devices, link) {
		if (is_present(dev, list, n))
			continue;
		rn_notice(srv->cfg.log, "rdma: device %s is gone",
			  ibv_get_device_name(dev->verbs->device));
		close_connections(dev);
	}
	ibv_free_device_list(list);
	/* Makes librdmacm look for contexts that have lost their device, and close them. */
	struct ibv_context **open = rdma_get_devices(NULL);
	if (open)
		rdma_free_devices(open);
}

static struct ibv_mr *register_slab(struct rr_device *dev, const struct rn_payload *p)
{
	pthread_mutex_lock(&dev->lock);
	struct ibv_mr *mr = atomic_load_explicit(&dev->slab_mr[p->slab], memory_order_relaxed);
	if (!mr) {
		void *base = rn_payload_slab_base(dev->srv->cfg.pool, p->slab);
		if (base)
			mr = ibv_reg_mr(dev->pd, base, RN_SLAB_SIZE, IBV_ACCESS_LOCAL_WRITE);
		if (mr)
			rr_count(dev->srv, slab_mrs, 1);
		atomic_store_explicit(&dev->slab_mr[p->slab], mr, memory_order_release);
	}
	pthread_mutex_unlock(&dev->lock);
	return mr;
}

/* Warns that memory cannot be registered, at most once a minute. Always -ENOMEM. */
static int rr_device_no_memory(struct rr_device *dev)
{
	const uint64_t now = rn_now_ns();
	uint64_t last = dev->no_memory_ns;

	if ((!last || now > last + NO_MEMORY_NS) &&
	    atomic_compare_exchange_strong(&dev->no_memory_ns, &last, now))
		rn_warn(dev->srv->cfg.log, "rdma: cannot register memory with %s (RLIMIT_MEMLOCK?)",
			ibv_get_device_name(dev->verbs->device));
	return -ENOMEM;
}

/* The local key of the slab that holds p, which is registered if need be; 0 or -errno. */
static int rr_device_key(struct rr_device *dev, const struct rn_payload *p, uint32_t *lkey)
{
	if (p->slab >= RN_SLABS_MAX)
		return -EINVAL;
	struct ibv_mr *mr = atomic_load_explicit(&dev->slab_mr[p->slab], memory_order_acquire);
	if (!mr)
		mr = register_slab(dev, p);
	if (!mr)
		return rr_device_no_memory(dev);
	*lkey = mr->lkey;
	return 0;
}

/*
 * Local keys for transfers, and what they let a peer reach.
 *
 * Where an RDMA Read's sink needs no right for the peer (InfiniBand, RoCE, siw), slabs are
 * registered once for each device, without remote rights: no key reaches anything. iWARP hardware
 * places a Read's answer as it places a peer's Write, and the Read Request tells the peer the
 * sink's key (RFC 5040 sections 4.4 and 7.1). There each connection has a protection domain of its
 * own, which holds its buffers and the regions of the transfers under way, nothing else. A key
 * works on that connection only, for the bytes of that transfer, and ends before the data are
 * looked at, so that the peer cannot change them afterwards.
 *
 * All on the connection's loop: drivers register by a system call, and refuse workers that act as a
 * caller.
 */

int rr_domain_make(struct rr_conn *c)
{
	c->pd = c->dev->own_domains ? ibv_alloc_pd(c->dev->verbs) : c->dev->pd;
	return c->pd ? 0 : -ENOMEM;
}

void rr_domain_end(struct rr_conn *c)
{
	if (c->pd && c->pd != c->dev->pd)
		ibv_dealloc_pd(c->pd);
	c->pd = NULL;
}

static const struct ibv_mr *rr_mr_find(const struct rr_req *r, const uint8_t *at, size_t len)
{
	for (unsigned i = 0; i < r->nmrs; i++) {
		const uint8_t *from = r->mr[i]->addr;
		if (at >= from && at + len <= from + r->mr[i]->length)
			return r->mr[i];
	}
	return NULL;
}

static int register_for(struct rr_req *r, uint8_t *at, size_t len, int access, uint32_t *lkey)
{
	struct rr_conn *c = r->conn;
	const struct ibv_mr *mr = rr_mr_find(r, at, len);

	if (!mr) {
		struct ibv_mr *made =
			r->nmrs < RR_KEYS_MAX ? ibv_reg_mr(c->pd, at, len, access) : NULL;
		if (!made)
			return rr_device_no_memory(c->dev);
		rr_count(c->srv, mrs, 1);
		r->mr[r->nmrs++] = made;
		mr = made;
	}
	*lkey = mr->lkey;
	return 0;
}

int rr_key_for_sink(struct rr_req *r, uint32_t *lkey)
{
	struct rr_device *dev = r->conn->dev;

	if (!dev->own_domains)
		return rr_device_key(dev, r->data, lkey);
	return register_for(r, r->data->data, r->plan.buf_size,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, lkey);
}

int rr_key_for_source(struct rr_req *r, const struct rn_payload *holder, uint8_t *at, size_t len,
		      uint32_t *lkey)
{
	struct rr_device *dev = r->conn->dev;

	return dev->own_domains ? register_for(r, at, len, 0, lkey)
				: rr_device_key(dev, holder, lkey);
}

int rr_keys_end(struct rr_req *r)
{
	while (r->nmrs) {
		if (ibv_dereg_mr(r->mr[r->nmrs - 1]) != 0)
			return -EIO;
		rr_uncount(r->conn->srv, mrs, 1);
		r->nmrs--;
	}
	return 0;
}
