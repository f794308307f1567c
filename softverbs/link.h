/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: the stream between this process and another (or itself), made on demand and shared by all
 * queue pairs between the two. Everything here is called with the fabric's lock held.
 *
 * Small frames (acknowledgements, the connection manager's) are copied and sent as soon as there is
 * room. Data are taken from the application's memory when the socket has room for them: who has
 * some to send puts its sv_sender in the link's queue and is called, in turn with the others, for
 * one frame at a time. The peer's engine reads always, so nobody waits for ever.
 *
 * When the peer ends, the link goes: sv_qp_link_lost() and sv_cm_link_lost() are called, and the
 * link is freed after the last of them.
 */
#ifndef SV_LINK_H
#define SV_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "softverbs/engine.h"
#include "softverbs/frame.h"

#define SV_LINK_RX (4u * (SV_FRAME_DATA + sizeof(struct sv_frame)))
#define SV_NO_SLOT 0xffffffffu

struct sv_link;

struct sv_sender {
	TAILQ_ENTRY(sv_sender) link;
	bool queued;
	/* Sends at most one frame with sv_link_send_data(); true if it has more. */
	bool (*send)(struct sv_sender *s, struct sv_link *l);
};

struct sv_link {
	LIST_ENTRY(sv_link) all;
	struct sv_watch watch;
	unsigned slot; /* the peer's, SV_NO_SLOT until it has said so */
	pid_t pid;
	bool may_pull;	 /* we may read the peer's memory */
	bool peer_pulls; /* the peer may read ours */
	bool dead;	 /* no more to be sent; will be freed by the engine */
	bool pumping;
	uint32_t events;
	struct sv_timer reaper;
	struct sv_timer more; /* frames are left in `in`, for the next turn */
	/* What has been accepted for sending and not been taken by the socket. */
	uint8_t *out;
	size_t out_size, out_from, out_to;
	TAILQ_HEAD(sv_senders, sv_sender) senders;
	uint8_t *in; /* SV_LINK_RX bytes */
	size_t in_len;
};

/* Connects or finds the link to a slot. -ECONNREFUSED: no process has it. */
int sv_link_get(unsigned slot, struct sv_link **out);

/* A message of the connection manager, at most SV_FRAME_DATA bytes. Of frames sent to one slot the
 * order is kept, those of queue pairs included. */
int sv_link_send_cm(struct sv_link *l, uint8_t type, const void *data, size_t len);

/* A frame without data, or with few: copied. */
int sv_link_send(struct sv_link *l, const struct sv_frame *f, const void *data, size_t len);

/* From a sender's callback only: f->len bytes of the iovec (at most SV_PULL_IOVS entries). */
int sv_link_send_data(struct sv_link *l, const struct sv_frame *f, const struct iovec *iov, int n);

/* Waits until the peer has handled all frames that were sent to it, or has ended. In a thread of
 * the application; the lock is free meanwhile. */
void sv_link_sync(struct sv_link *l);

/* Puts the sender into the queue and sends what the socket takes. */
void sv_link_queue(struct sv_link *l, struct sv_sender *s);
void sv_link_unqueue(struct sv_link *l, struct sv_sender *s);
void sv_link_pump(struct sv_link *l);

/* Ends the link as if the peer had ended. Safe in every callback. */
void sv_link_kill(struct sv_link *l);

/* fabric.c: somebody connects; fork: the child closes what is the parent's. */
void sv_link_accept(struct sv_watch *w, uint32_t events);
void sv_links_forget(void);

#endif
