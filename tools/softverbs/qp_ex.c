/* SPDX-License-Identifier: BSD-2-Clause */
/* Between wr_start and wr_complete work requests are gathered; then all or none are posted. The
 * application ensures that only one thread at a time does so, as libibverbs demands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/qp_ex.h"

struct sv_qp_builder {
	struct ibv_send_wr *wr; /* array of as many entries as the send queue has */
	struct ibv_sge *sge;	/* max_sge entries for each work request */
	uint8_t *inline_data;	/* max_inline bytes for each work request */
	uint32_t n;
	int error;
};

static struct sv_qp *qp_of_ex(struct ibv_qp_ex *ex)
{
	return (struct sv_qp *)ex;
}

/* NULL if there are too many; wr_complete then reports it. */
static struct ibv_send_wr *qp_ex_add_wr(struct ibv_qp_ex *ex, enum ibv_wr_opcode op)
{
	struct sv_qp *qp = qp_of_ex(ex);
	struct sv_qp_builder *b = qp->builder;

	if (b->n == qp->sq.size)
		b->error = ENOMEM;
	if (b->error)
		return NULL;
	struct ibv_send_wr *wr = &b->wr[b->n];
	*wr = (struct ibv_send_wr){
		.wr_id = ex->wr_id,
		.opcode = op,
		.send_flags = ex->wr_flags,
		.sg_list = &b->sge[(size_t)b->n * qp->sq.max_sge],
	};
	if (b->n)
		wr[-1].next = wr;
	b->n++;
	return wr;
}

static struct ibv_send_wr *current(struct sv_qp *qp)
{
	struct sv_qp_builder *b = qp->builder;

	return b->error || !b->n ? NULL : &b->wr[b->n - 1];
}

static void qp_ex_add_rdma_wr(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey,
			      uint64_t raddr)
{
	struct ibv_send_wr *wr = qp_ex_add_wr(ex, op);

	if (!wr)
		return;
	wr->wr.rdma.remote_addr = raddr;
	wr->wr.rdma.rkey = rkey;
}

static void wr_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
	qp_ex_add_rdma_wr(ex, IBV_WR_RDMA_WRITE, rkey, raddr);
}

static void wr_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
	qp_ex_add_rdma_wr(ex, IBV_WR_RDMA_READ, rkey, raddr);
}

static void wr_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, __be32 imm)
{
	qp_ex_add_rdma_wr(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, raddr);
	if (current(qp_of_ex(ex)))
		current(qp_of_ex(ex))->imm_data = imm;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	qp_ex_add_wr(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct ibv_send_wr *wr = qp_ex_add_wr(ex, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct ibv_send_wr *wr = qp_ex_add_wr(ex, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void add_atomic(struct ibv_qp_ex *ex, const struct ibv_send_wr *like)
{
	struct ibv_send_wr *wr = qp_ex_add_wr(ex, like->opcode);

	if (wr)
		wr->wr.atomic = like->wr.atomic;
}

static void wr_swap(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t compare,
		    uint64_t swap)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				  .wr.atomic = { raddr, compare, swap, rkey } };

	add_atomic(ex, &wr);
}

static void wr_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t value)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .wr.atomic = { raddr, value, 0, rkey } };

	add_atomic(ex, &wr);
}

static void set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct sv_qp *qp = qp_of_ex(ex);
	struct ibv_send_wr *wr = current(qp);

	if (!wr)
		return;
	if (n > qp->sq.max_sge) {
		qp->builder->error = EINVAL;
		return;
	}
	if (n)
		memcpy(wr->sg_list, list, n * sizeof(*list));
	wr->num_sge = (int)n;
}

static void set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { addr, length, lkey };

	set_sge_list(ex, 1, &sge);
}

static void set_inline_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct sv_qp *qp = qp_of_ex(ex);
	struct sv_qp_builder *b = qp->builder;
	struct ibv_send_wr *wr = current(qp);
	size_t len = 0;

	if (!wr)
		return;
	uint8_t *to = b->inline_data + (size_t)(b->n - 1) * qp->sq.max_inline;
	for (size_t i = 0; i < n; i++) {
		if (list[i].length > qp->sq.max_inline - len) {
			b->error = EINVAL;
			return;
		}
		memcpy(to + len, list[i].addr, list[i].length);
		len += list[i].length;
	}
	wr->send_flags |= IBV_SEND_INLINE;
	wr->sg_list[0] = (struct ibv_sge){ (uintptr_t)to, (uint32_t)len, 0 };
	wr->num_sge = 1;
}

static void set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { addr, length };

	set_inline_list(ex, 1, &buf);
}

static void qp_ex_wr_start(struct ibv_qp_ex *ex)
{
	qp_of_ex(ex)->builder->n = 0;
	qp_of_ex(ex)->builder->error = 0;
}

static int qp_ex_wr_complete(struct ibv_qp_ex *ex)
{
	struct sv_qp *qp = qp_of_ex(ex);
	struct sv_qp_builder *b = qp->builder;
	struct ibv_send_wr *bad;

	if (b->error || !b->n)
		return b->error;
	if (qp->sq.size - (qp->sq.posted - atomic_load(&qp->sq.reclaimed)) < b->n)
		return ENOMEM;
	return sv_post_send(&qp->ibv, b->wr, &bad);
}

int sv_qp_ex_init(struct sv_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_ex *ex = &qp->ex;
	struct sv_qp_builder *b;
	size_t sges = (size_t)qp->sq.size * qp->sq.max_sge;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return 0;
	b = qp->builder = calloc(1, sizeof(*b));
	if (!b || !(b->wr = calloc(qp->sq.size, sizeof(*b->wr))) ||
	    !(b->sge = calloc(sges, sizeof(*b->sge))) ||
	    !(b->inline_data = calloc(qp->sq.size, qp->sq.max_inline + 1)))
		return -ENOMEM;
	ex->wr_start = qp_ex_wr_start;
	ex->wr_complete = qp_ex_wr_complete;
	ex->wr_abort = qp_ex_wr_start;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_rdma_write = wr_write;
	ex->wr_rdma_write_imm = wr_write_imm;
	ex->wr_rdma_read = wr_read;
	ex->wr_atomic_cmp_swp = wr_swap;
	ex->wr_atomic_fetch_add = wr_add;
	ex->wr_set_sge = set_sge;
	ex->wr_set_sge_list = set_sge_list;
	ex->wr_set_inline_data = set_inline;
	ex->wr_set_inline_data_list = set_inline_list;
	return 0;
}

void sv_qp_ex_free(struct sv_qp *qp)
{
	struct sv_qp_builder *b = qp->builder;

	if (!b)
		return;
	free(b->wr);
	free(b->sge);
	free(b->inline_data);
	free(b);
}

SV_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return sv_qp_of(qp)->builder ? &sv_qp_of(qp)->ex : NULL;
}
