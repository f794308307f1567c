/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of work requests for the send queue, and the Sends that end them. */
#include "transport/rdma/rdma_chain.h"

#include "rpc/conns.h"
#include "transport/rdma/rdma_conn.h"

static void rr_chain_reset(struct rr_chain *ch, struct rr_conn *c)
{
	ch->conn = c;
	ch->n = 0;
	ch->err = 0;
}

struct rr_chain *rr_chain_start(struct rr_conn *c, struct rr_chain *own)
{
	if (c->gather)
		return c->gather;
	rr_chain_reset(own, c);
	return own;
}

/* The device supports invalidation, but its user library does not. */
static void stop_invalidating(struct rr_device *dev, struct ibv_send_wr *wr)
{
	dev->invalidate = false;
	for (; wr; wr = wr->next)
		if (wr->opcode == IBV_WR_SEND_WITH_INV)
			wr->opcode = IBV_WR_SEND;
}

static void rr_chain_post(struct rr_chain *ch)
{
	struct ibv_send_wr *bad = NULL;

	if (!ch->n || ch->err)
		return;
	for (unsigned i = 0; i < ch->n; i++) {
		ch->wr[i].sg_list = &ch->sge[i];
		ch->wr[i].next = i + 1 < ch->n ? &ch->wr[i + 1] : NULL;
	}
	rr_count(ch->conn->srv, posts, 1);
	int rc = ibv_post_send(ch->conn->id->qp, ch->wr, &bad);
	if (rc && bad && bad->opcode == IBV_WR_SEND_WITH_INV) {
		stop_invalidating(ch->conn->dev, bad);
		rc = ibv_post_send(ch->conn->id->qp, bad, &bad);
	}
	/* Drivers return errno values of either sign. */
	ch->err = rc > 0 ? -rc : rc;
	ch->n = 0;
}

struct ibv_send_wr *rr_chain_add(struct rr_chain *ch, enum ibv_wr_opcode op, struct ibv_sge sge,
				 uint64_t wr_id)
{
	if (ch->n == RR_POST_BATCH)
		rr_chain_post(ch);
	if (ch->n == RR_POST_BATCH)
		ch->n = 0; /* failed before: nothing more will be posted */
	ch->sge[ch->n] = sge;
	ch->wr[ch->n] = (struct ibv_send_wr){ .wr_id = wr_id, .num_sge = 1, .opcode = op };
	return &ch->wr[ch->n++];
}

int rr_chain_end(struct rr_chain *ch)
{
	if (ch != ch->conn->gather)
		rr_chain_post(ch);
	return ch->err;
}

void rr_gather_start(struct rr_conn *c, struct rr_chain *ch)
{
	rr_chain_reset(ch, c);
	c->gather = ch;
}

int rr_gather_end(struct rr_conn *c)
{
	struct rr_chain *ch = c->gather;

	c->gather = NULL;
	rr_chain_post(ch);
	return ch->err;
}

struct rr_send *rr_send_take(struct rr_conn *c, unsigned wrs)
{
	struct rr_send *s = SLIST_FIRST(&c->free_sends);
	const bool quiet = wrs == 1 && c->nquiet < c->quiet_max;

	if (!s || (!quiet && c->sq_room < wrs))
		return NULL;
	SLIST_REMOVE_HEAD(&c->free_sends, link);
	s->wrs = quiet ? 0 : wrs;
	c->sq_room -= s->wrs;
	return s;
}

struct ibv_send_wr *rr_chain_add_send(struct rr_chain *ch, struct rr_send *s, uint32_t len)
{
	struct rr_conn *c = ch->conn;
	struct ibv_sge sge = { (uintptr_t)s->buf, len, c->send_mr->lkey };
	const enum rr_tag tag = s->wrs ? RR_TAG_SEND : RR_TAG_QUIET;
	struct ibv_send_wr *wr = rr_chain_add(ch, IBV_WR_SEND, sge, rr_wr_id(s, tag));

	wr->send_flags = s->wrs ? IBV_SEND_SIGNALED : 0;
	rpc_tally(&c->rpc.tally.bytes_out, len);
	return wr;
}

void rr_sent(struct rr_conn *c, struct rr_send *s)
{
	s->earlier = c->quiet;
	if (s->wrs == 0) {
		c->quiet = s;
		c->nquiet++;
		/* the work that a completion would have counted for */
		c->loop->work += TURN_WORK / 2;
		return;
	}
	c->quiet = NULL;
	c->nquiet = 0;
	rr_conn_sending(c);
}
