/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder's half of a queue pair: takes the frames of the peer's work requests in order,
 * checks the requests and executes them. Acknowledgements are gathered while frames arrive, and
 * sent when there are no more.
 */
#include <errno.h>
#include <string.h>

#include "tools/softverbs/cq.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"
#include "tools/softverbs/qp.h"
#include "tools/softverbs/sv_memory.h"

/* min_rnr_timer's codes in units of 10 microseconds. */
static const uint32_t rnr_timer[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static void responder_answer(struct sv_link *l, const struct sv_frame *request, struct sv_frame *f)
{
	f->qpn = request->from;
	f->from = request->qpn;
	f->seq = request->seq;
	sv_link_send(l, f, NULL, 0);
}

static void nak(struct sv_link *l, const struct sv_frame *request, enum sv_nak why, uint64_t value)
{
	struct sv_frame f = { .type = SV_FRAME_NAK, .opcode = (uint8_t)why, .value = { value } };

	responder_answer(l, request, &f);
}

static void nak_seq(struct sv_qp *qp, uint32_t seq, enum sv_nak why)
{
	struct sv_frame request = { .from = qp->attr.dest_qp_num,
				    .qpn = qp->ibv.qp_num,
				    .seq = seq };

	if (qp->link)
		nak(qp->link, &request, why, 0);
}

void sv_ack_flush(struct sv_qp *qp)
{
	struct sv_frame f = { .type = SV_FRAME_ACK };
	struct sv_frame request = { .from = qp->attr.dest_qp_num,
				    .qpn = qp->ibv.qp_num,
				    .seq = qp->rx.seq - 1 };
	struct sv_qp **at;

	if (!qp->rx.owes_ack)
		return;
	qp->rx.owes_ack = false;
	for (at = &sv_fabric.acks; *at != qp; at = &(*at)->next_ack)
		;
	*at = qp->next_ack;
	if (qp->link)
		responder_answer(qp->link, &request, &f);
}

void sv_acks_flush(void)
{
	while (sv_fabric.acks)
		sv_ack_flush(sv_fabric.acks);
}

static void owe_ack(struct sv_qp *qp)
{
	if (qp->rx.owes_ack)
		return;
	qp->rx.owes_ack = true;
	qp->next_ack = sv_fabric.acks;
	sv_fabric.acks = qp;
}

static struct sv_read *responder_read_at(const struct sv_rx *rx, uint32_t i)
{
	return &rx->reads[(rx->first + i) % rx->max_reads];
}

/* Sends a refusal, which ends the connection, once the Reads before it are answered. */
static void finish_refusal(struct sv_qp *qp)
{
	if (!qp->rx.refused || qp->rx.nreads)
		return;
	sv_ack_flush(qp);
	nak_seq(qp, qp->rx.seq, qp->rx.refused);
	if (qp->rx.refused == SV_NAK_ACCESS)
		sv_async(qp->ctx, IBV_EVENT_QP_ACCESS_ERR, qp);
	else if (qp->rx.refused == SV_NAK_INVALID && !qp->rx.told)
		sv_async(qp->ctx, IBV_EVENT_QP_REQ_ERR, qp);
	sv_qp_error(qp);
}

static void responder_refuse(struct sv_qp *qp, enum sv_nak why)
{
	qp->rx.refused = (uint8_t)why;
	finish_refusal(qp);
}

/* Completes the receive with an error, which tells the application. */
static void refuse_receive(struct sv_qp *qp, enum ibv_wc_status status, enum sv_nak why)
{
	struct ibv_wc wc = { .status = status, .opcode = IBV_WC_RECV };

	qp->rx.told = true;
	sv_rq_complete(qp, &wc, true);
	responder_refuse(qp, why);
}

static bool allows(const struct sv_qp *qp, unsigned access)
{
	return (qp->attr.qp_access_flags & access) == access;
}

static void responder_frame_done(struct sv_qp *qp, const struct sv_frame *f)
{
	struct sv_rx *rx = &qp->rx;

	rx->offset += f->bytes;
	if (!(f->flags & SV_FLAG_LAST))
		return;
	rx->offset = 0;
	rx->seq++;
	if (f->opcode == SV_OP_SEND || f->opcode == SV_OP_WRITE)
		owe_ack(qp);
}

static void receive_done(struct sv_qp *qp, const struct sv_frame *f)
{
	struct ibv_wc wc = { .byte_len = f->total };

	wc.opcode = f->opcode == SV_OP_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
	if (f->flags & SV_FLAG_IMM) {
		wc.imm_data = f->imm;
		wc.wc_flags = IBV_WC_WITH_IMM;
	} else if (f->flags & SV_FLAG_INV) {
		wc.invalidated_rkey = f->imm;
		wc.wc_flags = IBV_WC_WITH_INV;
	}
	sv_rq_complete(qp, &wc, f->flags & SV_FLAG_SOLICITED);
}

/* No receive is posted, so the requester must send the message again. */
static bool not_ready(struct sv_qp *qp, struct sv_link *l, const struct sv_frame *f)
{
	if (sv_rq_has(qp) && !qp->rnr)
		return false;
	qp->rnr = false;
	sv_ack_flush(qp);
	qp->rx.offset = 0;
	nak(l, f, SV_NAK_RNR, rnr_timer[qp->attr.min_rnr_timer & 31] * 10u);
	return true;
}

static void on_send(struct sv_qp *qp, struct sv_link *l, const struct sv_frame *f,
		    const uint8_t *data)
{
	struct sv_rx *rx = &qp->rx;
	struct iovec iov[SV_MAX_SGE];

	if (!rx->receiving) {
		if (not_ready(qp, l, f))
			return;
		sv_rq_take(qp);
	}
	if (f->total > rx->recv.total) {
		refuse_receive(qp, IBV_WC_LOC_LEN_ERR, SV_NAK_INVALID);
		return;
	}
	const struct sv_sge_part part = { rx->sge, (int)rx->recv.num_sge, f->offset, f->bytes };
	int n = sv_sge_map(qp->ibv.pd, &part, IBV_ACCESS_LOCAL_WRITE, iov);
	if (n < 0) {
		refuse_receive(qp, IBV_WC_LOC_PROT_ERR, SV_NAK_OPERATION);
		return;
	}
	/* A peer whose memory cannot be read has ended, so the frame counts as lost. */
	if (sv_transfer_receive(l, f, data, iov, n) < 0)
		return;
	if (f->flags & SV_FLAG_LAST && f->flags & SV_FLAG_INV &&
	    !sv_mr_invalidate(qp->ibv.pd, f->imm)) {
		refuse_receive(qp, IBV_WC_LOC_PROT_ERR, SV_NAK_ACCESS);
		return;
	}
	responder_frame_done(qp, f);
	if (f->flags & SV_FLAG_LAST)
		receive_done(qp, f);
}

static void on_write(struct sv_qp *qp, struct sv_link *l, const struct sv_frame *f,
		     const uint8_t *data)
{
	struct sv_range all = { f->raddr, f->total, f->rkey, IBV_ACCESS_REMOTE_WRITE };
	uint8_t *to = f->total ? sv_mr_map(qp->ibv.pd, &all, NULL) : NULL;
	struct iovec iov = { to + (f->total ? f->offset : 0), f->bytes };

	if (!allows(qp, IBV_ACCESS_REMOTE_WRITE) || (f->total && !to)) {
		responder_refuse(qp, SV_NAK_ACCESS);
		return;
	}
	if (f->flags & SV_FLAG_IMM && (!f->offset || f->flags & SV_FLAG_LAST) &&
	    not_ready(qp, l, f))
		return;
	if (sv_transfer_receive(l, f, data, &iov, f->bytes ? 1 : 0) < 0)
		return;
	responder_frame_done(qp, f);
	if (f->flags & SV_FLAG_LAST && f->flags & SV_FLAG_IMM && sv_rq_take(qp))
		receive_done(qp, f);
}

/* An iWARP Read reveals its sink to the peer (RFC 5040 section 4.4). */
static void note_sink(const struct sv_qp *qp, const struct sv_frame *f)
{
	struct sv_sinks *s = &sv_fabric.sinks;

	if (qp->ctx->dev->iwarp)
		s->last[s->count++ % SV_SINKS] = (struct softverbs_sink){
			.qp_num = qp->ibv.qp_num,
			.key = f->imm,
			.length = f->total,
			.address = f->value[0],
		};
}

static void on_read(struct sv_qp *qp, const struct sv_frame *f)
{
	struct sv_rx *rx = &qp->rx;
	struct sv_range all = { f->raddr, f->total, f->rkey, IBV_ACCESS_REMOTE_READ };

	if (!allows(qp, IBV_ACCESS_REMOTE_READ) ||
	    (f->total && !sv_mr_map(qp->ibv.pd, &all, NULL))) {
		responder_refuse(qp, SV_NAK_ACCESS);
		return;
	}
	if (rx->nreads >= rx->max_reads) {
		responder_refuse(qp, SV_NAK_INVALID);
		return;
	}
	*responder_read_at(rx, rx->nreads) = (struct sv_read){
		.seq = f->seq,
		.rkey = f->rkey,
		.raddr = f->raddr,
		.total = f->total,
	};
	rx->nreads++;
	responder_frame_done(qp, f);
	sv_qp_kick(qp);
}

static void on_atomic(struct sv_qp *qp, struct sv_link *l, const struct sv_frame *f)
{
	struct sv_range all = { f->raddr, sizeof(uint64_t), f->rkey, IBV_ACCESS_REMOTE_ATOMIC };
	uint64_t *at = sv_mr_map(qp->ibv.pd, &all, NULL);
	struct sv_frame r = {
		.type = SV_FRAME_RESPONSE,
		.flags = SV_FLAG_LAST,
		.qpn = f->from,
		.from = f->qpn,
		.seq = f->seq,
		.total = sizeof(uint64_t),
		.bytes = sizeof(uint64_t),
	};

	if (!at || !allows(qp, IBV_ACCESS_REMOTE_ATOMIC)) {
		responder_refuse(qp, SV_NAK_ACCESS);
		return;
	}
	if (f->raddr % sizeof(uint64_t)) {
		responder_refuse(qp, SV_NAK_INVALID);
		return;
	}
	uint64_t old = f->value[0];
	if (f->opcode == SV_OP_ADD)
		old = __atomic_fetch_add(at, f->value[0], __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(at, &old, f->value[1], false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	responder_frame_done(qp, f);
	sv_link_send(l, &r, &old, sizeof(old));
}

static void responder_on_request(struct sv_qp *qp, struct sv_link *l, const struct sv_frame *f,
				 const uint8_t *data)
{
	struct sv_rx *rx = &qp->rx;

	if (f->seq != rx->seq || f->offset != rx->offset || rx->refused)
		return;
	if (f->total > SV_MAX_MSG || f->bytes > f->total - f->offset) {
		sv_link_kill(l);
		return;
	}
	if (!f->offset)
		sv_fault_request(qp);
	if (f->opcode == SV_OP_READ)
		note_sink(qp, f);
	if (qp->silent) {
		nak(l, f, SV_NAK_SILENT, 0);
		return;
	}
	switch (f->opcode) {
	case SV_OP_SEND:
		on_send(qp, l, f, data);
		break;
	case SV_OP_WRITE:
		on_write(qp, l, f, data);
		break;
	case SV_OP_READ:
		on_read(qp, f);
		break;
	case SV_OP_SWAP:
	case SV_OP_ADD:
		on_atomic(qp, l, f);
		break;
	default:
		sv_link_kill(l);
	}
}

bool sv_read_pending(const struct sv_qp *qp)
{
	const struct sv_rx *rx = &qp->rx;

	/* Answered Reads may be in front, while the peer takes their data. */
	for (uint32_t i = 0; i < rx->nreads; i++)
		if (!responder_read_at(rx, i)->answered)
			return qp->ibv.state != IBV_QPS_ERR;
	return false;
}

static void pop_answered(struct sv_qp *qp)
{
	struct sv_rx *rx = &qp->rx;

	while (rx->nreads && responder_read_at(rx, 0)->answered &&
	       !responder_read_at(rx, 0)->pinned) {
		rx->first = (rx->first + 1) % rx->max_reads;
		rx->nreads--;
	}
	finish_refusal(qp);
}

static void on_pulled(struct sv_qp *qp, uint32_t seq)
{
	for (uint32_t i = 0; i < qp->rx.nreads; i++) {
		struct sv_read *r = responder_read_at(&qp->rx, i);
		if (r->seq != seq || !r->pinned || !r->answered)
			continue;
		r->pinned = false;
		sv_mr_unpull(r->rkey);
	}
	pop_answered(qp);
}

static struct sv_read *next_read(struct sv_rx *rx)
{
	uint32_t i = 0;

	while (responder_read_at(rx, i)->answered)
		i++;
	return responder_read_at(rx, i);
}

void sv_read_send(struct sv_qp *qp, struct sv_link *l)
{
	struct sv_read *r = next_read(&qp->rx);
	struct sv_range all = { r->raddr, r->total, r->rkey, IBV_ACCESS_REMOTE_READ };
	struct sv_mr *mr = NULL;
	struct sv_frame f = {
		.type = SV_FRAME_RESPONSE,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
		.seq = r->seq,
		.offset = r->sent,
		.total = r->total,
	};
	bool pull;

	f.bytes = sv_transfer_size(l, r->total - r->sent, r->total, &pull);
	struct iovec iov = { r->total ? sv_mr_map(qp->ibv.pd, &all, &mr) : NULL, f.bytes };
	if (r->total && !iov.iov_base) {
		/* The region was deregistered in the meantime. */
		nak_seq(qp, r->seq, SV_NAK_ACCESS);
		sv_async(qp->ctx, IBV_EVENT_QP_ACCESS_ERR, qp);
		sv_qp_error(qp);
		return;
	}
	iov.iov_base = (uint8_t *)iov.iov_base + r->sent;
	if (pull) {
		f.flags |= SV_FLAG_PULL;
		mr->pulls += !r->pinned;
		r->pinned = true;
	}
	r->sent += f.bytes;
	if (r->sent == r->total) {
		f.flags |= SV_FLAG_LAST;
		r->answered = true;
	}
	sv_transfer_send(l, &f, &iov, f.bytes ? 1 : 0);
	if (r->answered && !pull)
		pop_answered(qp);
}

/* The responder stops, so nothing waits for its Reads any more. */
void sv_responder_stop(struct sv_qp *qp)
{
	struct sv_rx *rx = &qp->rx;

	sv_ack_flush(qp);
	for (uint32_t i = 0; i < rx->nreads; i++) {
		if (responder_read_at(rx, i)->pinned)
			sv_mr_unpull(responder_read_at(rx, i)->rkey);
		nak_seq(qp, responder_read_at(rx, i)->seq, SV_NAK_NO_QP);
	}
	rx->nreads = 0;
}

static bool qp_may_receive(const struct sv_qp *qp)
{
	return qp->ibv.state >= IBV_QPS_RTR && qp->ibv.state <= IBV_QPS_SQD;
}

/* Answers a request that has no usable queue pair, once for each request. */
static void turn_away(struct sv_qp *qp, struct sv_link *l, const struct sv_frame *f)
{
	bool early = qp && qp->ibv.state <= IBV_QPS_INIT;

	if (f->type == SV_FRAME_REQUEST && (!f->offset || f->flags & SV_FLAG_LAST))
		nak(l, f, early ? SV_NAK_NOT_READY : SV_NAK_NO_QP, 0);
}

void sv_qp_receive(struct sv_link *l, const struct sv_frame *f, const uint8_t *data)
{
	struct sv_qp *qp = sv_qp_find(f->qpn);

	if (!qp || !qp_may_receive(qp) || qp->link != l || qp->attr.dest_qp_num != f->from) {
		turn_away(qp, l, f);
		return;
	}
	switch (f->type) {
	case SV_FRAME_REQUEST:
		responder_on_request(qp, l, f, data);
		break;
	case SV_FRAME_PULLED:
		on_pulled(qp, f->seq);
		break;
	case SV_FRAME_DROP:
		sv_qp_dropped(qp);
		break;
	case SV_FRAME_ACK:
	case SV_FRAME_NAK:
	case SV_FRAME_RESPONSE:
		sv_requester_receive(qp, f, data);
		break;
	default:
		sv_link_kill(l);
	}
}
