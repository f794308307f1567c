/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pulls a call's Read chunks into one payload buffer before the call is submitted. One buffer for
 * all chunks: a request never holds memory while it waits for more. The buffer belongs to the
 * request; while RDMA Reads are posted it stays on c->reading, from where it is released when they
 * complete, or when the QP is gone.
 */
#include <errno.h>

#include "lib/checked.h"
#include "transport/rdma/rdma_internal.h"

static void on_memory(struct ev_task *t)
{
	struct rr_req *r = rn_container_of(t, struct rr_req, task);
	struct rr_conn *c = r->conn;

	TAILQ_REMOVE(&c->hungry, r, link);
	rr_post(r); /* gives it back if the connection has closed */
}

/* Any thread. */
static void memory_ready(struct rn_payload_waiter *w, struct rn_payload *p)
{
	struct rr_req *r = rn_container_of(w, struct rr_req, waiter);

	r->data = p;
	ev_loop_post(r->conn->loop, &r->task);
}

void rr_read_start(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	struct rr_server *srv = c->srv;

	r->step = RR_STEP_READ;
	r->waiter.ready = memory_ready;
	r->waiter.account = &c->rpc.client->memory;
	r->task.run = on_memory;
	/* Before the call: ready may come at once, on another thread. */
	TAILQ_INSERT_TAIL(&c->hungry, r, link);
	struct rn_payload *p = rn_payload_get_or_wait(srv->cfg.pool, r->plan.buf_size, &r->waiter);
	if (!p) {
		rr_count(srv, waits_memory, 1);
		return;
	}
	TAILQ_REMOVE(&c->hungry, r, link);
	r->data = p;
	rr_post(r);
}

void rr_read_cancel(struct rr_conn *c)
{
	struct rr_req *r, *next;

	for (r = TAILQ_FIRST(&c->hungry); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (rn_payload_wait_cancel(c->srv->cfg.pool, &r->waiter) < 0)
			continue; /* its task is on its way */
		TAILQ_REMOVE(&c->hungry, r, link);
		rr_req_done(r);
	}
}

static unsigned count_reads(const struct rr_req *r, const struct rr_read_segment **last)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->call.nreads; i++) {
		if (!r->call.read[i].target.length)
			continue;
		*last = &r->call.read[i];
		n++;
	}
	return n;
}

static void add_chunk(struct rr_chain *ch, struct rr_req *r, const struct rr_read_chunk *chunk,
		      uint32_t lkey, const struct rr_read_segment *last)
{
	uintptr_t at = (uintptr_t)r->data->data + chunk->buf_off;

	for (unsigned i = 0; i < chunk->nsegs; i++) {
		const struct rr_read_segment *s = &r->call.read[chunk->first + i];
		if (!s->target.length)
			continue;
		struct ibv_sge sge = { at, s->target.length, lkey };
		struct ibv_send_wr *wr =
			rr_chain_add(ch, IBV_WR_RDMA_READ, sge, rr_wr_id(r, RR_TAG_PART));
		wr->wr.rdma.remote_addr = s->target.offset;
		wr->wr.rdma.rkey = s->target.handle;
		if (s == last) {
			wr->send_flags = IBV_SEND_SIGNALED;
			wr->wr_id = rr_wr_id(r, RR_TAG_READ);
		}
		at += s->target.length;
	}
}

int rr_read_post(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	const struct rr_read_segment *last = NULL;
	struct rr_chain ch;
	uint32_t lkey;
	uint64_t bytes = 0;

	r->wrs = count_reads(r, &last);
	if (c->sq_room < r->wrs)
		return -EAGAIN;
	TAILQ_INSERT_TAIL(&c->reading, r, link);
	int err = rr_key_for_sink(r, &lkey);
	if (err)
		return err;
	c->sq_room -= r->wrs;
	rr_chain_start(&ch, c);
	for (unsigned i = 0; i < r->plan.nchunks; i++) {
		add_chunk(&ch, r, &r->plan.chunk[i], lkey, last);
		bytes += r->plan.chunk[i].length;
	}
	err = rr_chain_end(&ch);
	if (err)
		return err;
	rr_conn_sending(c);
	rr_count(c->srv, read_segments, r->wrs);
	rr_count(c->srv, read_bytes, bytes);
	return 0;
}

void rr_read_done(struct rr_req *r)
{
	struct rr_conn *c = r->conn;

	c->sq_room += r->wrs;
	/* The data are the peer's to change until its key has ended. */
	if (rr_keys_end(r) < 0) {
		rr_conn_close(c, "cannot end a key");
		return;
	}
	TAILQ_REMOVE(&c->reading, r, link);
	rr_submit(r);
	rr_post_waiting(c);
}
