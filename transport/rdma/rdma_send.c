/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queue: what fits is posted, what does not waits in order for completions. All on the
 * connection's loop.
 */
#include <errno.h>

#include "transport/rdma/rdma_internal.h"

void rr_chain_start(struct rr_chain *ch, struct rr_conn *c)
{
	ch->conn = c;
	ch->n = 0;
	ch->err = 0;
}

static void post_chain(struct rr_chain *ch)
{
	struct ibv_send_wr *bad = NULL;
	struct rr_device *dev = ch->conn->dev;

	if (!ch->n || ch->err)
		return;
	for (unsigned i = 0; i < ch->n; i++) {
		ch->wr[i].sg_list = &ch->sge[i];
		ch->wr[i].next = i + 1 < ch->n ? &ch->wr[i + 1] : NULL;
	}
	int err = ibv_post_send(ch->conn->id->qp, ch->wr, &bad);
	if (err && bad && bad->opcode == IBV_WR_SEND_WITH_INV) {
		/* The device has it, its user library has not. */
		dev->invalidate = false;
		bad->opcode = IBV_WR_SEND;
		err = ibv_post_send(ch->conn->id->qp, bad, &bad);
	}
	/* Drivers return errno values of either sign. */
	ch->err = err > 0 ? -err : err;
	ch->n = 0;
}

struct ibv_send_wr *rr_chain_add(struct rr_chain *ch, enum ibv_wr_opcode op, struct ibv_sge sge,
				 uint64_t wr_id)
{
	if (ch->n == RR_POST_BATCH)
		post_chain(ch);
	if (ch->n == RR_POST_BATCH)
		ch->n = 0; /* failed before: nothing more will be posted */
	ch->sge[ch->n] = sge;
	ch->wr[ch->n] = (struct ibv_send_wr){ .wr_id = wr_id, .num_sge = 1, .opcode = op };
	return &ch->wr[ch->n++];
}

int rr_chain_end(struct rr_chain *ch)
{
	post_chain(ch);
	return ch->err;
}

/* *release: nothing of r is in use by the QP. */
static int post_step(struct rr_req *r, bool *release)
{
	bool kept = false;
	int err;

	switch (r->step) {
	case RR_STEP_READ:
		err = rr_read_post(r);
		*release = false;
		return err;
	case RR_STEP_REPLY:
		err = rr_reply_post(r, &kept);
		break;
	case RR_STEP_ERR_VERS:
		err = rr_error_post(r, RR_ERR_VERS);
		break;
	case RR_STEP_DROP:
		err = 0;
		break;
	default:
		err = rr_error_post(r, RR_ERR_CHUNK);
		break;
	}
	*release = !kept;
	return err;
}

void rr_post(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	bool release = true;
	int err = 0;

	if (c->open) {
		err = TAILQ_EMPTY(&c->waiting) ? post_step(r, &release) : -EAGAIN;
		if (err == -EAGAIN) {
			TAILQ_INSERT_TAIL(&c->waiting, r, link);
			rr_count(c->srv, sq_waits, 1);
			return;
		}
	}
	if (err)
		rr_conn_close(c, "cannot post");
	if (release)
		rr_req_done(r);
}

void rr_post_waiting(struct rr_conn *c)
{
	struct rr_req *r;

	while (c->open && (r = TAILQ_FIRST(&c->waiting))) {
		bool release = false;
		TAILQ_REMOVE(&c->waiting, r, link);
		int err = post_step(r, &release);
		if (err == -EAGAIN) {
			TAILQ_INSERT_HEAD(&c->waiting, r, link);
			return;
		}
		if (err)
			rr_conn_close(c, "cannot post");
		if (release)
			rr_req_done(r);
	}
}

void rr_send_done(struct rr_conn *c, struct rr_send *s)
{
	struct rr_req *r = s->req;

	s->req = NULL;
	c->sq_room += s->wrs;
	SLIST_INSERT_HEAD(&c->free_sends, s, link);
	if (r)
		rr_req_done(r);
	rr_post_waiting(c);
}
