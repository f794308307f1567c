/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues and channels. A completion queue has a lock of its own, taken inside the
 * fabric's, so that polling does not wait for transfers.
 */
#ifndef SV_CQ_H
#define SV_CQ_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "tools/softverbs/engine.h"
#include "tools/softverbs/event_queue.h"

struct sv_qp;

struct sv_channel {
	struct ibv_comp_channel ibv; /* first */
	struct sv_event_queue events;
};

struct sv_cqe {
	struct ibv_wc wc;
	struct sv_qp *qp;   /* until it is destroyed */
	uint32_t reclaimed; /* entries of its send or receive queue that are free when this is
			       polled */
	bool is_recv;
	bool solicited;
};

/* Completion that a fault holds back. */
struct sv_held {
	TAILQ_ENTRY(sv_held) link;
	TAILQ_ENTRY(sv_held) reorder; /* in sv_fabric.reordered */
	bool is_reorder;
	struct sv_timer timer;
	struct sv_cqe cqe;
	struct sv_cq *cq;
};

struct sv_cq {
	struct ibv_cq ibv; /* first */
	pthread_mutex_t lock;
	struct sv_cqe *ring;
	uint32_t size;
	uint32_t head;
	atomic_uint count;
	bool armed;
	bool solicited_only;
	atomic_bool broken; /* true after an overflow */
	unsigned users;
	uint32_t comp_taken;
	uint32_t async_taken;
	TAILQ_HEAD(, sv_held) held;
};

static inline struct sv_cq *sv_cq_of(struct ibv_cq *cq)
{
	return (struct sv_cq *)cq;
}

int sv_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc);
int sv_req_notify_cq(struct ibv_cq *ibv, int solicited_only);

/* Adds a completion, with the fabric's lock held. An overflow breaks the queue and all queue pairs
 * that use it. */
void sv_cq_add(struct sv_cq *cq, const struct sv_cqe *cqe);

/* Removes all completions of a queue pair that is about to be destroyed. */
void sv_cq_purge(struct sv_cq *cq, struct sv_qp *qp);

#endif
