/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's half of a queue pair: frames of work requests out, answers in.
 */
#include <errno.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"
#include "tools/softverbs/qp.h"
#include "tools/softverbs/sv_memory.h"

#define GONE_USEC 20000u /* delay before requests to an absent peer fail */
#define NOT_READY_USEC 2000u
#define NOT_READY_TRIES 5000u /* 10 s in all, as a peer may be slow to accept its connection */

static struct sv_qp *qp_of_sender(struct sv_sender *s)
{
	return (struct sv_qp *)((char *)s - offsetof(struct sv_qp, sender));
}

static bool has_answer(uint8_t op)
{
	return op != SV_OP_SEND && op != SV_OP_WRITE;
}

static bool can_request(const struct sv_qp *qp)
{
	const struct sv_sq *sq = &qp->sq;

	if (qp->ibv.state != IBV_QPS_RTS || sq->stopped || sq->waiting || sq->next == sq->posted)
		return false;
	const struct sv_swqe *w = sv_swqe_at(sq, sq->next);
	if (w->fence && sq->reads)
		return false;
	return !has_answer(w->op) || sq->reads < qp->attr.max_rd_atomic || !qp->attr.max_rd_atomic;
}

/* Maps the memory of the data to send, or of the place for an answer. */
static int map_local(struct sv_qp *qp, uint32_t seq, uint32_t offset, uint32_t len,
		     struct iovec *iov)
{
	struct sv_sq *sq = &qp->sq;
	const struct sv_swqe *w = sv_swqe_at(sq, seq);

	if (w->is_inline) {
		uint8_t *at = sq->inline_data + (size_t)(seq % sq->size) * sq->max_inline;
		iov[0] = (struct iovec){ at + offset, len };
		return len ? 1 : 0;
	}
	const struct sv_sge_part part = { sv_swqe_sge(sq, seq), w->num_sge, offset, len };
	return sv_sge_map(qp->ibv.pd, &part, has_answer(w->op) ? sv_sink_access(qp->ctx->dev) : 0,
			  iov);
}

static void fill_frame(const struct sv_qp *qp, const struct sv_swqe *w, struct sv_frame *f)
{
	*f = (struct sv_frame){
		.type = SV_FRAME_REQUEST,
		.opcode = w->op,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
		.seq = qp->sq.next,
		.offset = qp->sq.offset,
		.total = w->total,
		.rkey = w->rkey,
		.imm = w->imm,
		.raddr = w->raddr,
		.value = { w->operand[0], w->operand[1] },
	};
}

static void request_sent(struct sv_qp *qp, struct sv_swqe *w)
{
	struct sv_sq *sq = &qp->sq;

	w->state = SV_WQE_SENT;
	w->got = 0;
	if (has_answer(w->op))
		sq->reads++;
	sq->next++;
	sq->offset = 0;
}

/* Sends a Read or an atomic operation: one frame without data. */
static void requester_send_read(struct sv_qp *qp, struct sv_swqe *w, struct sv_link *l)
{
	struct sv_frame f;
	struct iovec iov[SV_MAX_SGE];

	if (!qp->attr.max_rd_atomic) {
		sv_sq_fail(qp, qp->sq.next, IBV_WC_LOC_QP_OP_ERR);
		return;
	}
	if (map_local(qp, qp->sq.next, 0, w->total, iov) < 0) {
		sv_sq_fail(qp, qp->sq.next, IBV_WC_LOC_PROT_ERR);
		return;
	}
	fill_frame(qp, w, &f);
	f.flags = SV_FLAG_LAST;
	if (w->op == SV_OP_READ && qp->ctx->dev->iwarp && w->num_sge) {
		const struct ibv_sge *sink = sv_swqe_sge(&qp->sq, qp->sq.next);
		f.imm = sink->lkey;
		f.value[0] = sink->addr;
	}
	request_sent(qp, w);
	sv_link_send(l, &f, NULL, 0);
}

/* Sends the next frame of a Send or a Write. */
static void requester_send_data(struct sv_qp *qp, struct sv_swqe *w, struct sv_link *l)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_frame f;
	struct iovec iov[SV_MAX_SGE];
	bool pull;

	fill_frame(qp, w, &f);
	f.bytes = sv_transfer_size(l, w->total - sq->offset, w->total, &pull);
	int n = map_local(qp, sq->next, sq->offset, f.bytes, iov);
	if (n < 0) {
		sv_sq_fail(qp, sq->next, IBV_WC_LOC_PROT_ERR);
		return;
	}
	f.flags = w->flags;
	w->pulled = pull && !w->is_inline;
	if (w->pulled)
		f.flags |= SV_FLAG_PULL;
	sq->offset += f.bytes;
	if (sq->offset == w->total) {
		f.flags |= SV_FLAG_LAST;
		request_sent(qp, w);
	}
	sv_transfer_send(l, &f, iov, n);
}

bool sv_qp_send(struct sv_sender *s, struct sv_link *l)
{
	struct sv_qp *qp = qp_of_sender(s);

	if (sv_read_pending(qp)) {
		sv_read_send(qp, l);
	} else if (can_request(qp)) {
		struct sv_swqe *w = sv_swqe_at(&qp->sq, qp->sq.next);
		if (has_answer(w->op))
			requester_send_read(qp, w, l);
		else
			requester_send_data(qp, w, l);
	}
	return qp->link == l && (sv_read_pending(qp) || can_request(qp));
}

static void requester_retry_exceeded(void *arg)
{
	struct sv_qp *qp = arg;
	struct sv_sq *sq = &qp->sq;

	sq->waiting = false;
	for (uint32_t seq = sq->retired; seq != sq->posted; seq++)
		if (sv_swqe_at(sq, seq)->state != SV_WQE_DONE) {
			sv_sq_fail(qp, seq, IBV_WC_RETRY_EXC_ERR);
			return;
		}
}

static void wait_then(struct sv_qp *qp, uint64_t usec, void (*fn)(void *arg))
{
	qp->sq.waiting = true;
	sv_timer_start(&qp->sq.timer, usec, fn, qp);
}

void sv_requester_lost(struct sv_qp *qp)
{
	if (qp->ibv.state == IBV_QPS_RTS && qp->sq.retired != qp->sq.posted)
		wait_then(qp, GONE_USEC, requester_retry_exceeded);
}

void sv_qp_kick(struct sv_qp *qp)
{
	if (qp->peer_gone) {
		if (!qp->sq.waiting)
			sv_requester_lost(qp);
		return;
	}
	if (qp->link && (sv_read_pending(qp) || can_request(qp)))
		sv_link_queue(qp->link, &qp->sender);
}

static void resume(void *arg)
{
	struct sv_qp *qp = arg;

	qp->sq.waiting = false;
	sv_qp_kick(qp);
}

void sv_qp_pause(struct sv_qp *qp, uint64_t usec)
{
	if (!qp->sq.waiting)
		wait_then(qp, usec, resume);
}

/* Sends again from seq on. The responder drops frames that arrive before that one. */
static void rewind_to(struct sv_qp *qp, uint32_t seq)
{
	struct sv_sq *sq = &qp->sq;

	for (uint32_t s = seq; s != sq->next; s++) {
		struct sv_swqe *w = sv_swqe_at(sq, s);
		if (w->state == SV_WQE_SENT && has_answer(w->op))
			sq->reads--;
		w->state = SV_WQE_POSTED;
	}
	sq->next = seq;
	sq->offset = 0;
}

static void on_ack(struct sv_qp *qp, uint32_t upto)
{
	struct sv_sq *sq = &qp->sq;

	/* Completed Reads no longer count as outstanding. */
	if ((int32_t)(sq->retired - sq->acked) > 0)
		sq->acked = sq->retired;
	if (upto - sq->acked >= sq->next - sq->acked)
		return;
	while (sq->acked != upto + 1) {
		struct sv_swqe *w = sv_swqe_at(sq, sq->acked++);
		if (w->state == SV_WQE_SENT && !has_answer(w->op))
			w->state = SV_WQE_DONE;
	}
	sq->rnr_left = qp->attr.rnr_retry;
	sq->not_ready_left = 0;
	sv_sq_retire(qp);
}

static void on_rnr(struct sv_qp *qp, const struct sv_frame *f)
{
	struct sv_sq *sq = &qp->sq;

	if (qp->attr.rnr_retry != 7) {
		if (!sq->rnr_left) {
			sv_sq_fail(qp, f->seq, IBV_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		sq->rnr_left--;
	}
	rewind_to(qp, f->seq);
	wait_then(qp, f->value[0], resume);
}

static void on_not_ready(struct sv_qp *qp, uint32_t seq)
{
	if (++qp->sq.not_ready_left > NOT_READY_TRIES) {
		requester_retry_exceeded(qp);
		return;
	}
	rewind_to(qp, seq);
	wait_then(qp, NOT_READY_USEC, resume);
}

/* Fails the request as if no answer came: after the transport's timeout and all its retries. */
static void on_silence(struct sv_qp *qp)
{
	unsigned exponent = qp->attr.timeout & 31;

	if (qp->sq.waiting)
		return;
	qp->sq.waiting = true;
	if (exponent)
		wait_then(qp, ((uint64_t)4096 << exponent) / 1000 * (qp->attr.retry_cnt + 1u),
			  requester_retry_exceeded);
}

static void on_nak(struct sv_qp *qp, const struct sv_frame *f)
{
	struct sv_sq *sq = &qp->sq;

	/* Ignores a NAK for a request that is not under way, as after a repeated request. */
	if (f->seq - sq->retired > sq->next - sq->retired || sq->retired == sq->posted ||
	    f->seq == sq->posted)
		return;
	switch (f->opcode) {
	case SV_NAK_RNR:
		on_rnr(qp, f);
		break;
	case SV_NAK_NOT_READY:
		on_not_ready(qp, f->seq);
		break;
	case SV_NAK_ACCESS: /* siw reports only the end of the stream */
		sv_sq_fail(qp, f->seq,
			   qp->ctx->dev->siw ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_ACCESS_ERR);
		break;
	case SV_NAK_INVALID:
		sv_sq_fail(qp, f->seq, IBV_WC_REM_INV_REQ_ERR);
		break;
	case SV_NAK_OPERATION:
		sv_sq_fail(qp, f->seq, IBV_WC_REM_OP_ERR);
		break;
	case SV_NAK_SILENT:
		on_silence(qp);
		break;
	default:
		if (!sq->waiting)
			sv_requester_lost(qp);
	}
}

static void requester_read_done(struct sv_qp *qp, struct sv_swqe *w, const struct sv_frame *f)
{
	struct sv_frame pulled = {
		.type = SV_FRAME_PULLED,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
		.seq = f->seq,
	};

	w->state = SV_WQE_DONE;
	qp->sq.reads--;
	if (f->flags & SV_FLAG_PULL)
		sv_link_send(qp->link, &pulled, NULL, 0);
	sv_sq_retire(qp);
	sv_qp_kick(qp);
}

static void requester_on_response(struct sv_qp *qp, const struct sv_frame *f, const uint8_t *data)
{
	struct sv_sq *sq = &qp->sq;
	struct iovec iov[SV_MAX_SGE];

	if (f->seq - sq->retired >= sq->next - sq->retired)
		return;
	struct sv_swqe *w = sv_swqe_at(sq, f->seq);
	if (w->state != SV_WQE_SENT || !has_answer(w->op) || f->offset != w->got ||
	    f->bytes > w->total - w->got)
		return;
	int n = map_local(qp, f->seq, f->offset, f->bytes, iov);
	if (n < 0) {
		sv_sq_fail(qp, f->seq, IBV_WC_LOC_PROT_ERR);
		return;
	}
	if (sv_transfer_receive(qp->link, f, data, iov, n) < 0) {
		sv_sq_fail(qp, f->seq, IBV_WC_REM_OP_ERR);
		return;
	}
	w->got += f->bytes;
	if (f->flags & SV_FLAG_LAST)
		requester_read_done(qp, w, f);
}

void sv_requester_receive(struct sv_qp *qp, const struct sv_frame *f, const uint8_t *data)
{
	if (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD)
		return;
	if (f->type == SV_FRAME_ACK)
		on_ack(qp, f->seq);
	else if (f->type == SV_FRAME_NAK)
		on_nak(qp, f);
	else
		requester_on_response(qp, f, data);
}
