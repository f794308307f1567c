/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An inbox: many threads post, one thread takes, and an eventfd wakes the taker. Nodes are embedded
 * in what is posted; a posted node belongs to the inbox until it is taken. Order is kept for each
 * poster. The eventfd is written only when the inbox goes from empty to non-empty.
 */
#ifndef RN_LIB_INBOX_H
#define RN_LIB_INBOX_H

#include <stdatomic.h>

struct rn_inbox_node {
	struct rn_inbox_node *next;
};

struct rn_inbox {
	_Atomic(struct rn_inbox_node *) head; /* newest first */
	int fd;				      /* eventfd, non-blocking: readable while work waits */
};

int rn_inbox_init(struct rn_inbox *in); /* 0 or -errno */
void rn_inbox_fini(struct rn_inbox *in);

void rn_inbox_post(struct rn_inbox *in, struct rn_inbox_node *node);

/* Posts without waking the taker: for the taker's own thread, which looks before it sleeps. */
void rn_inbox_post_quiet(struct rn_inbox *in, struct rn_inbox_node *node);
/* Wakes the taker, who may have missed quiet posts. */
void rn_inbox_wake(struct rn_inbox *in);

/* Takes everything, oldest first; NULL when empty. Only the owner calls it, after it has read the
 * eventfd (or without: a spare wake-up is harmless). */
struct rn_inbox_node *rn_inbox_take(struct rn_inbox *in);

#endif
