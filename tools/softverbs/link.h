/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: the stream between this process and another (or itself). It is made on demand and shared
 * by all queue pairs between the two. All functions are called with the fabric's lock held.
 *
 * Small frames (acknowledgements, the connection manager's) are copied and sent as soon as the
 * socket has room. Data are taken from the application's memory when the socket has room for them.
 * A sender with data puts its sv_sender into the link's queue and is called, in turn with the
 * others, for one frame at a time. The peer's engine always reads, so no sender waits for ever.
 *
 * When the peer ends, the link ends: sv_qp_link_lost() and sv_cm_link_lost() are called, and then
 * the link is freed.
 */
#ifndef SV_LINK_H
#define SV_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "tools/softverbs/engine.h"
#include "tools/softverbs/frame.h"

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
	unsigned slot; /* the peer's slot, SV_NO_SLOT before its HELLO */
	pid_t pid;
	bool may_pull;	 /* this process can read the peer's memory */
	bool peer_pulls; /* the peer can read this process's memory */
	bool dead;	 /* nothing more is sent; the engine will free the link */
	bool pumping;
	uint32_t events;
	struct sv_timer reaper;
	struct sv_timer more; /* runs at the engine's next turn, when frames are left in `in` */
	/* Bytes accepted for sending that the socket has not taken yet. */
	uint8_t *out;
	size_t out_size, out_from, out_to;
	TAILQ_HEAD(sv_senders, sv_sender) senders;
	uint8_t *in; /* SV_LINK_RX bytes */
	size_t in_len;
};

/* Connects or finds the link to a slot. -ECONNREFUSED: no process has it. */
int sv_link_get(unsigned slot, struct sv_link **out);

/* Sends a message of the connection manager, at most SV_FRAME_DATA bytes. All frames to one slot
 * stay in order, including those of queue pairs. */
int sv_link_send_cm(struct sv_link *l, uint8_t type, const void *data, size_t len);

/* Sends a frame with little or no data, which is copied. */
int sv_link_send(struct sv_link *l, const struct sv_frame *f, const void *data, size_t len);

/* Called only from a sender's callback: sends f->len bytes of the iovec (at most SV_PULL_IOVS
 * entries). */
int sv_link_send_data(struct sv_link *l, const struct sv_frame *f, const struct iovec *iov, int n);

/* Waits until the peer has handled all frames sent to it, or has ended. Called by a thread of the
 * application; releases the lock while it waits. */
void sv_link_sync(struct sv_link *l);

/* Puts the sender into the queue and sends what the socket takes. */
void sv_link_queue(struct sv_link *l, struct sv_sender *s);
void sv_link_unqueue(struct sv_link *l, struct sv_sender *s);
void sv_link_pump(struct sv_link *l);

/* Ends the link as if the peer had ended. Safe in every callback. */
void sv_link_kill(struct sv_link *l);

/* Called by fabric.c: a peer connects; after fork(), the child closes the parent's links. */
void sv_link_accept(struct sv_watch *w, uint32_t events);
void sv_links_forget(void);

#endif
