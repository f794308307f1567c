/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable-connected queue pairs.
 *
 * Work requests are numbered from 0 (seq), as PSNs number packets. The requester sends the frames
 * of each in order. The responder takes only the frame that it expects and drops all others. A
 * request that cannot be taken is refused with a NAK that names it. The requester then fails the
 * request, or starts again with it after a delay if the responder was not ready. All functions but
 * the entry points of verbs.h are called with the fabric's lock held.
 */
#ifndef SV_QP_H
#define SV_QP_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/softverbs/link.h"
#include "tools/softverbs/sv_device.h"

struct sv_cq;
struct sv_srq;

enum sv_wqe_state { SV_WQE_POSTED, SV_WQE_SENT, SV_WQE_DONE };

struct sv_swqe {
	uint64_t wr_id;
	uint8_t op; /* enum sv_op */
	uint8_t state;
	uint8_t status; /* enum ibv_wc_status, valid in SV_WQE_DONE */
	bool signaled;
	bool fence;
	bool is_inline;
	bool pulled;	/* the peer reads the data from this process's memory */
	uint16_t flags; /* SV_FLAG_* of its last frame */
	uint16_t num_sge;
	uint32_t total;
	uint32_t got; /* bytes of a Read's data received */
	uint32_t imm;
	uint32_t rkey;
	uint64_t raddr;
	uint64_t operand[2];
};

struct sv_sq {
	struct sv_swqe *wqe;
	struct ibv_sge *sge;  /* max_sge entries for each work request */
	uint8_t *inline_data; /* max_inline bytes for each work request */
	uint32_t size, max_sge, max_inline;
	/* Counts of work requests since RESET; reclaimed <= retired <= next <= posted. */
	uint32_t posted;
	uint32_t next;	  /* work request to send now, from `offset` on */
	uint32_t acked;	  /* all requests before this one are answered, or are Reads */
	uint32_t retired; /* work requests that have completed */
	atomic_uint reclaimed;
	uint32_t offset;
	uint32_t reads; /* Reads and atomics that are under way */
	bool stopped;	/* true after a failure: nothing more is sent */
	bool waiting;	/* nothing is sent before the timer fires */
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

/* Peer's Read that is being answered. */
struct sv_read {
	uint32_t seq;
	uint32_t rkey;
	uint64_t raddr;
	uint32_t total;
	uint32_t sent;
	bool answered; /* all data have been sent */
	bool pinned;   /* the peer reads the data itself; the region must stay until it has */
};

struct sv_rx {
	uint32_t seq; /* number of the expected work request */
	uint32_t offset;
	bool receiving; /* recv is in use */
	struct sv_rwqe recv;
	struct ibv_sge sge[SV_MAX_SGE];
	struct sv_read *reads; /* ring of max_dest_rd_atomic entries */
	uint32_t first, nreads, max_reads;
	uint8_t refused; /* enum sv_nak of the request that ends the connection */
	bool told;	 /* true if a completion has told the application of the refusal */
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
	struct sv_link *link; /* NULL if not connected, or if the peer has gone */
	bool peer_gone;
	struct sv_sender sender;
	struct sv_sq sq;
	struct sv_rq rq;
	struct sv_rx rx;
	struct sv_qp *next_ack;	       /* next queue pair in sv_fabric.acks */
	bool unsettled;		       /* a peer may still be reading memory of flushed requests */
	struct sv_qp_builder *builder; /* qp_ex.c */
	/* Faults: */
	uint32_t ordinal; /* number among the queue pairs that the process has connected, from 1 */
	bool silent;	  /* the queue pair answers no more requests */
	bool rnr;	  /* pretends once that no receive is posted */
	bool drop;	  /* the connection ends with the work requests that are being posted */
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
void sv_qp_error(struct sv_qp *qp); /* sets the error state and flushes both queues */
void sv_qp_reset(struct sv_qp *qp);
void sv_qp_drop(struct sv_qp *qp);    /* a fault: ends the connection at both ends */
void sv_qp_dropped(struct sv_qp *qp); /* the peer has dropped the connection */
void sv_qps_link_lost(struct sv_link *l);
void sv_qps_device_removed(struct sv_device *dev);
void sv_qps_cq_broken(struct sv_cq *cq);

/* send_queue.c */
int sv_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
void sv_sq_retire(struct sv_qp *qp); /* completes finished requests, in order */
void sv_sq_flush(struct sv_qp *qp);
/* True if a peer may be reading memory of a request */
bool sv_sq_unsettled(const struct sv_qp *qp);
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
bool sv_rq_take(struct sv_qp *qp); /* takes the next receive into rx.recv */
void sv_rq_complete(struct sv_qp *qp, struct ibv_wc *wc, bool solicited);
void sv_rq_flush(struct sv_qp *qp);

/* requester.c */
bool sv_qp_send(struct sv_sender *s, struct sv_link *l);
void sv_qp_kick(struct sv_qp *qp);		   /* sends if there is something to send */
void sv_qp_pause(struct sv_qp *qp, uint64_t usec); /* a fault: sends nothing for a while */
void sv_requester_lost(struct sv_qp *qp);	   /* the peer has gone: no answer can come */
void sv_requester_receive(struct sv_qp *qp, const struct sv_frame *f, const uint8_t *data);

/* responder.c */
void sv_qp_receive(struct sv_link *l, const struct sv_frame *f, const uint8_t *data);
bool sv_read_pending(const struct sv_qp *qp);
void sv_read_send(struct sv_qp *qp, struct sv_link *l);
void sv_acks_flush(void);
void sv_ack_flush(struct sv_qp *qp);
void sv_responder_stop(struct sv_qp *qp);

/* transfer.c: data between the application's memory and frames */

/* Sends the frame with f->bytes bytes of the iovec, or with their addresses. */
int sv_transfer_send(struct sv_link *l, struct sv_frame *f, const struct iovec *iov, int n);

/* Stores a frame's data in the iovec; -EFAULT if the peer's memory cannot be read. */
int sv_transfer_receive(struct sv_link *l, const struct sv_frame *f, const uint8_t *data,
			const struct iovec *iov, int n);

/*
 * Bytes that go into one frame when `left` bytes remain; sets *pull if the peer reads them itself.
 */
uint32_t sv_transfer_size(const struct sv_link *l, uint32_t left, uint32_t total, bool *pull);

#endif
