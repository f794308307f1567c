/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. The fabric's lock guards them. */
#ifndef SV_SRQ_H
#define SV_SRQ_H

#include <infiniband/verbs.h>

#include "tools/softverbs/qp.h"

struct sv_srq {
	struct ibv_srq ibv; /* first */
	struct sv_rq rq;
	uint32_t limit; /* limit of the event, 0 if not armed */
	unsigned users;
	uint32_t async_taken;
};

static inline struct sv_srq *sv_srq_of(struct ibv_srq *srq)
{
	return (struct sv_srq *)srq;
}

int sv_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
