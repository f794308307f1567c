/* SPDX-License-Identifier: BSD-2-Clause */
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
#include "transport/rdma/rdma_keys.h"

#include <errno.h>

#include "transport/rdma/rdma_device.h"

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
