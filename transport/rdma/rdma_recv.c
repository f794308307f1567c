/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives. The inline bytes of a call stay in the receive buffer, which therefore belongs to the
 * request until its reply is posted. A connection has two batches of buffers more than its credits,
 * so that a client that keeps to its credits always finds one posted.
 */
#include "transport/rdma/rdma_recv.h"

#include <errno.h>

static int post_batch(struct rr_conn *c)
{
	struct ibv_recv_wr wr[RR_BATCH_MAX], *bad;
	struct ibv_sge sge[RR_BATCH_MAX];
	unsigned n = c->nrepost;

	if (!n)
		return 0;
	/* Cleared even on failure: the connection ends then, and more buffers may come until it
	 * has. */
	c->nrepost = 0;
	for (unsigned i = 0; i < n; i++) {
		struct rr_recv *r = c->repost[i];
		sge[i] = (struct ibv_sge){ (uintptr_t)r->buf, c->recv_size, c->recv_mr->lkey };
		wr[i] = (struct ibv_recv_wr){
			.wr_id = rr_wr_id(r, RR_TAG_RECV),
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	if (ibv_post_recv(c->id->qp, wr, &bad) != 0)
		return -EIO;
	c->posted += n;
	return 0;
}

int rr_recv_post(struct rr_recv *r)
{
	struct rr_conn *c = r->conn;

	if (!c->open)
		return 0;
	c->repost[c->nrepost++] = r;
	return c->nrepost < c->batch ? 0 : post_batch(c);
}

int rr_recv_post_all(struct rr_conn *c)
{
	int rc = 0;

	for (unsigned i = 0; i < c->nrecvs && !rc; i++)
		rc = rr_recv_post(&c->recvs[i]);
	if (!rc)
		rc = post_batch(c);
	return rc;
}
