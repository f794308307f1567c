/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posters push on a lock-free stack; the taker exchanges the whole stack for an empty one and
 * turns it round. Nothing is ever popped singly, so there is no ABA problem.
 */
#include "lib/inbox.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int rn_inbox_init(struct rn_inbox *in)
{
	atomic_init(&in->head, NULL);
	in->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return in->fd < 0 ? -errno : 0;
}

void rn_inbox_fini(struct rn_inbox *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}

/* True if the inbox was empty. */
static bool inbox_push(struct rn_inbox *in, struct rn_inbox_node *node)
{
	/* Once the node is in, the taker may free the inbox's neighbours but not the inbox itself:
	 * its owner ends only after its posters. */
	struct rn_inbox_node *head = atomic_load_explicit(&in->head, memory_order_relaxed);

	do {
		node->next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&in->head, &head, node, memory_order_release, memory_order_relaxed));
	return !head;
}

void rn_inbox_wake(struct rn_inbox *in)
{
	const uint64_t one = 1;
	ssize_t n;

	do {
		n = write(in->fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR); /* EAGAIN: the counter is full, so it is readable */
}

void rn_inbox_post(struct rn_inbox *in, struct rn_inbox_node *node)
{
	/* If it was not empty the eventfd has been written already, or the taker is about to look. */
	if (inbox_push(in, node))
		rn_inbox_wake(in);
}

void rn_inbox_post_quiet(struct rn_inbox *in, struct rn_inbox_node *node)
{
	inbox_push(in, node);
}

struct rn_inbox_node *rn_inbox_take(struct rn_inbox *in)
{
	struct rn_inbox_node *node =
		atomic_exchange_explicit(&in->head, NULL, memory_order_acquire);
	struct rn_inbox_node *oldest_first = NULL;

	while (node) {
		struct rn_inbox_node *next = node->next;

		node->next = oldest_first;
		oldest_first = node;
		node = next;
	}
	return oldest_first;
}
