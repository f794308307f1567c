/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable-connected queue pairs.
 *
 * Work requests are numbered from 0 (seq), as PSNs number packets: the requester sends the frames
 * of each in order, the responder takes only the frame that it expects and drops all others. A
 * request that cannot be taken is refused with a NAK that names it; the requester then fails it,
 * or, where the responder was not ready, begins again with it after a while. All with the fabric's
 * lock held, but for the entry points of verbs.h.
 */
#ifndef SV_QP_H
#define SV_QP_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softverbs/device.h"
#include "softverbs/link.h"

struct sv_cq;
struct sv_srq;

enum sv_wqe_state { SV_WQE_POSTED, SV_WQE_SENT, SV_WQE_DONE };

struct sv_swqe {
	uint64_t wr_id;
	uint8_t op; /* enum sv_op */
	uint8_t state;
	uint8_t status; /* enum ibv_wc_status, when it is done */
	bool signaled;
	bool fence;
	bool is_inline;
	bool pulled;	/* the peer takes the data from its memory */
	uint16_t flags; /* SV_FLAG_* of its last frame */
	uint16_t num_sge;
	uint32_t total;
	uint32_t got; /* of a Read's data */
	uint32_t imm;
	uint32_t rkey;
	uint64_t raddr;
	uint64_t operand[2];
};

struct sv_sq {
	struct sv_swqe *wqe;
	struct ibv_sge *sge;  /* max_sge for each */
	uint8_t *inline_data; /* max_inline for each */
	uint32_t size, max_sge, max_inline;
	/* Counts of work requests since RESET; reclaimed <= retired <= next <= posted. */
	uint32_t posted;
	uint32_t next;	  /* the one to be sent, from `offset` on */
	uint32_t acked;	  /* all before it have been answered, or are Reads */
	uint32_t retired; /* have completed */
	atomic_uint reclaimed;
	uint32_t offset;
	uint32_t reads; /* Reads and atomics that are under way */
	bool stopped;	/* one has failed: nothing more is sent */
	bool waiting;	/* for the timer */
	struct sv_timer timer;
	uint8_t rnr_left;
	uint16_t not_ready_left;
};

struct sv_rwqe {
	uint64_t wr_id;
	uint32_t total;
	uint32_t num_sge;
};

struct sv_rq {
	struct sv_rwqe *wqe;
	struct ibv_sge *sge;
	uint32_t size, max_sge;
	uint32_t posted;
	uint32_t taken;
	atomic_uint reclaimed;
};

/* A peer's Read that is being answered. */
struct sv_read {
	uint32_t seq;
	uint32_t rkey;
	uint64_t raddr;
	uint32_t total;
	uint32_t sent;
	bool answered; /* all has been sent */
	bool pinned;   /* the peer takes the data itself, and its region waits for that */
};

struct sv_rx {
	uint32_t seq; /* expected */
	uint32_t offset;
	bool receiving; /* recv is in use */
	struct sv_rwqe recv;
	struct ibv_sge sge[SV_MAX_SGE];
	struct sv_read *reads; /* max_dest_rd_atomic, a ring */
	uint32_t first, nreads, max_reads;
	uint8_t refused; /* enum sv_nak of the request that ends the connection */
	bool told;	 /* by a completion */
	bool owes_ack;
};

struct sv_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	}; /* first */
	struct sv_context *ctx;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	bool sig_all;
	uint32_t async_taken;
	struct sv_link *link; /* NULL: not connected, or the peer has gone */
	bool peer_gone;
	struct sv_sender sender;
	struct sv_sq sq;
	struct sv_rq rq;
	struct sv_rx rx;
	struct sv_qp *next_ack;	       /* in sv_fabric.acks */
	bool unsettled;		       /* a peer may still read what has been flushed */
	struct sv_qp_builder *builder; /* qp_ex.c */
	/* Faults: */
	uint32_t ordinal; /* among the queue pairs that the process has connected, from 1 */
	bool silent;	  /* answers nothing more */
	bool rnr;	  /* pretends once that no receive is posted */
	bool drop;	  /* its connection ends with the work requests that are being posted */
};

static inline struct sv_qp *sv_qp_of(struct ibv_qp *qp)
{
	return (struct sv_qp *)qp;
}

static inline struct sv_cq *sv_send_cq(struct sv_qp *qp)
{
	return (struct sv_cq *)qp->ibv.send_cq;
}

static inline struct sv_cq *sv_recv_cq(struct sv_qp *qp)
{
	return (struct sv_cq *)qp->ibv.recv_cq;
}

/* qp.c */
struct ibv_qp *sv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct sv_qp *sv_qp_find(uint32_t qpn);
void sv_qp_error(struct sv_qp *qp); /* into the error state: flushes */
void sv_qp_reset(struct sv_qp *qp);
void sv_qp_drop(struct sv_qp *qp);    /* a fault: the connection is lost, at both ends */
void sv_qp_dropped(struct sv_qp *qp); /* by the peer */
void sv_qps_link_lost(struct sv_link *l);
void sv_qps_device_removed(struct sv_device *dev);
void sv_qps_cq_broken(struct sv_cq *cq);

/* send_queue.c */
int sv_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
void sv_sq_retire(struct sv_qp *qp); /* completes what is done, in order */
void sv_sq_flush(struct sv_qp *qp);
bool sv_sq_unsettled(const struct sv_qp *qp); /* a peer may be reading memory of a request */
void sv_sq_fail(struct sv_qp *qp, uint32_t seq, enum ibv_wc_status status);

static inline struct sv_swqe *sv_swqe_at(const struct sv_sq *sq, uint32_t seq)
{
	return &sq->wqe[seq % sq->size];
}

static inline struct ibv_sge *sv_swqe_sge(const struct sv_sq *sq, uint32_t seq)
{
	return &sq->sge[(size_t)(seq % sq->size) * sq->max_sge];
}

/* recv_queue.c */
int sv_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
bool sv_rq_has(struct sv_qp *qp);
bool sv_rq_take(struct sv_qp *qp); /* into rx.recv */
void sv_rq_complete(struct sv_qp *qp, struct ibv_wc *wc, bool solicited);
void sv_rq_flush(struct sv_qp *qp);

/* requester.c */
bool sv_qp_send(struct sv_sender *s, struct sv_link *l);
void sv_qp_kick(struct sv_qp *qp);		   /* there may be something to send */
void sv_qp_pause(struct sv_qp *qp, uint64_t usec); /* a fault: sends nothing for a while */
void sv_requester_lost(struct sv_qp *qp);	   /* there is nobody who could answer */
void sv_requester_receive(struct sv_qp *qp, const struct sv_frame *f, const uint8_t *data);

/* responder.c */
void sv_qp_receive(struct sv_link *l, const struct sv_frame *f, const uint8_t *data);
bool sv_read_pending(const struct sv_qp *qp);
void sv_read_send(struct sv_qp *qp, struct sv_link *l);
void sv_acks_flush(void);
void sv_ack_flush(struct sv_qp *qp);
void sv_responder_stop(struct sv_qp *qp);

/* transfer.c: data between the application's memory and frames */

/* Sends the frame with f->bytes bytes of the iovec, or with where they are. */
int sv_transfer_send(struct sv_link *l, struct sv_frame *f, const struct iovec *iov, int n);

/* Puts a frame's data there; -EFAULT if the peer's memory cannot be read. */
int sv_transfer_receive(struct sv_link *l, const struct sv_frame *f, const uint8_t *data,
			const struct iovec *iov, int n);

/* How many of the bytes that are left go into one frame, and whether the peer takes them itself. */
uint32_t sv_transfer_size(const struct sv_link *l, uint32_t left, uint32_t total, bool *pull);

#endif
