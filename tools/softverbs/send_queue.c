/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queue: posting, and completion in the order of posting. An entry is free for another
 * work request when its own completion, or that of a later one, has been polled: so a program that
 * never asks for completions finds its queue full, as with hardware.
 */
#include <errno.h>
#include <string.h>

#include "tools/softverbs/cq.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"
#include "tools/softverbs/qp.h"

struct op_info {
	uint8_t op; /* 0: not supported */
	uint16_t flags;
	bool not_iwarp;
};

static const struct op_info op_table[] = {
	[IBV_WR_RDMA_WRITE] = { SV_OP_WRITE, 0, false },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { SV_OP_WRITE, SV_FLAG_IMM, true },
	[IBV_WR_SEND] = { SV_OP_SEND, 0, false },
	[IBV_WR_SEND_WITH_IMM] = { SV_OP_SEND, SV_FLAG_IMM, true },
	[IBV_WR_RDMA_READ] = { SV_OP_READ, 0, false },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { SV_OP_SWAP, 0, true },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { SV_OP_ADD, 0, true },
	[IBV_WR_SEND_WITH_INV] = { SV_OP_SEND, SV_FLAG_INV, false },
};

static const uint8_t wc_opcode[] = {
	[SV_OP_SEND] = IBV_WC_SEND,	 [SV_OP_WRITE] = IBV_WC_RDMA_WRITE,
	[SV_OP_READ] = IBV_WC_RDMA_READ, [SV_OP_SWAP] = IBV_WC_COMP_SWAP,
	[SV_OP_ADD] = IBV_WC_FETCH_ADD,
};

static const struct op_info *info_of(const struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	if ((unsigned)wr->opcode >= sizeof(op_table) / sizeof(op_table[0]))
		return NULL;
	const struct op_info *info = &op_table[wr->opcode];
	return !info->op || (info->not_iwarp && qp->ctx->dev->iwarp) ? NULL : info;
}

static bool is_atomic(uint8_t op)
{
	return op == SV_OP_SWAP || op == SV_OP_ADD;
}

static int sum_lengths(const struct ibv_send_wr *wr, uint32_t *total)
{
	uint64_t sum = 0;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	*total = (uint32_t)sum;
	return sum > SV_MAX_MSG ? EINVAL : 0;
}

static int sq_check_wr(const struct sv_qp *qp, const struct ibv_send_wr *wr,
		       const struct op_info *info, uint32_t *total)
{
	const struct sv_sq *sq = &qp->sq;
	int err;

	if (!info || wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	err = sum_lengths(wr, total);
	if (err)
		return err;
	if (is_atomic(info->op) && *total != sizeof(uint64_t))
		return EINVAL;
	if (info->op == SV_OP_READ && qp->ctx->dev->iwarp && wr->num_sge > 1)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (*total > sq->max_inline || info->op == SV_OP_READ || is_atomic(info->op)))
		return EINVAL;
	if (!qp->cap.max_send_wr || sq->posted - atomic_load(&sq->reclaimed) >= sq->size)
		return ENOMEM;
	return 0;
}

static void copy_inline(struct sv_sq *sq, const struct ibv_send_wr *wr)
{
	uint8_t *to = sq->inline_data + (size_t)(sq->posted % sq->size) * sq->max_inline;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];
		if (s->length)
			memcpy(to, (const void *)(uintptr_t)s->addr, s->length);
		to += s->length;
	}
}

static void sq_enqueue(struct sv_qp *qp, const struct ibv_send_wr *wr, const struct op_info *info,
		       uint32_t total)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_swqe *w = sv_swqe_at(sq, sq->posted);

	*w = (struct sv_swqe){
		.wr_id = wr->wr_id,
		.op = info->op,
		.signaled = qp->sig_all || wr->send_flags & IBV_SEND_SIGNALED,
		.fence = wr->send_flags & IBV_SEND_FENCE,
		.is_inline = wr->send_flags & IBV_SEND_INLINE,
		.flags = info->flags,
		.num_sge = (uint16_t)wr->num_sge,
		.total = total,
		.imm = info->flags & SV_FLAG_INV ? wr->invalidate_rkey : wr->imm_data,
	};
	if (wr->send_flags & IBV_SEND_SOLICITED)
		w->flags |= SV_FLAG_SOLICITED;
	if (is_atomic(info->op)) {
		w->raddr = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->operand[0] = wr->wr.atomic.compare_add;
		w->operand[1] = wr->wr.atomic.swap;
	} else if (info->op != SV_OP_SEND) {
		w->raddr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
	}
	if (w->is_inline)
		copy_inline(sq, wr);
	else if (wr->num_sge)
		memcpy(sv_swqe_sge(sq, sq->posted), wr->sg_list,
		       (size_t)wr->num_sge * sizeof(*wr->sg_list));
	sq->posted++;
}

static int sq_post_wr(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	const struct op_info *info = info_of(qp, wr);
	uint32_t total = 0;
	int err = sq_check_wr(qp, wr, info, &total);

	if (!err)
		err = sv_fault_post(qp, info->op);
	if (!err)
		sq_enqueue(qp, wr, info, total);
	return err;
}

int sv_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sv_qp *qp = sv_qp_of(ibv);
	int err = 0;

	sv_lock();
	if (ibv->state < IBV_QPS_RTS)
		err = EINVAL;
	for (; wr && !err; wr = wr->next) {
		err = sq_post_wr(qp, wr);
		if (err)
			break;
	}
	if (err && bad)
		*bad = wr;
	if (qp->drop)
		sv_qp_drop(qp);
	if (ibv->state == IBV_QPS_ERR)
		sv_sq_flush(qp);
	else
		sv_qp_kick(qp);
	sv_unlock();
	return err;
}

static void sq_complete_wqe(struct sv_qp *qp, const struct sv_swqe *w, enum ibv_wc_status status)
{
	struct sv_cqe cqe = {
		.wc = {
			.wr_id = w->wr_id,
			.status = status,
			.opcode = wc_opcode[w->op],
			.byte_len = w->total,
			.qp_num = qp->ibv.qp_num,
		},
		.qp = qp,
		.reclaimed = qp->sq.retired,
		.solicited = status != IBV_WC_SUCCESS,
	};

	if (status != IBV_WC_SUCCESS || w->signaled)
		sv_cq_add(sv_send_cq(qp), &cqe);
}

void sv_sq_retire(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	while (sq->retired != sq->posted && qp->ibv.state != IBV_QPS_ERR) {
		struct sv_swqe *w = sv_swqe_at(sq, sq->retired);
		if (w->state != SV_WQE_DONE)
			return;
		sq->retired++;
		sq_complete_wqe(qp, w, w->status);
		if (w->status != IBV_WC_SUCCESS)
			sv_qp_error(qp);
	}
}

bool sv_sq_unsettled(const struct sv_qp *qp)
{
	const struct sv_sq *sq = &qp->sq;

	for (uint32_t seq = sq->retired; seq != sq->posted; seq++) {
		const struct sv_swqe *w = sv_swqe_at(sq, seq);
		if (w->pulled && w->state != SV_WQE_DONE)
			return true;
	}
	return false;
}

/* Flushes all requests that have not completed, also finished ones that wait behind a Read which
 * will never end. */
void sv_sq_flush(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	qp->unsettled = qp->unsettled || sv_sq_unsettled(qp);
	while (sq->retired != sq->posted) {
		const struct sv_swqe *w = sv_swqe_at(sq, sq->retired++);
		sq_complete_wqe(qp, w, IBV_WC_WR_FLUSH_ERR);
	}
	sq->next = sq->acked = sq->posted;
	sq->offset = sq->reads = 0;
}

void sv_sq_fail(struct sv_qp *qp, uint32_t seq, enum ibv_wc_status status)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_swqe *w = sv_swqe_at(sq, seq);

	w->status = status;
	w->state = SV_WQE_DONE;
	sq->stopped = true;
	sv_sq_retire(qp);
}
