/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/data/write_sync.h"

#include <errno.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "vfs/data/group.h"
#include "vfs/data/operation.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker/worker_state.h"

/* A longer fsync keeps a worker busy too long, however fast the disk is. */
#define WAIT_MAX (64u << 10)

STAILQ_HEAD(sharers, vfs_sharer);

/* A write that waits; in its fiber. Guarded by the node's uncommitted.lock, but for what the one who makes the fsync has to itself. */
struct vfs_sharer {
	struct vfs_ctx *ctx;
	struct vfs_node *node;
	struct vfs_written what;
	STAILQ_ENTRY(vfs_sharer) link;
	bool makes;	     /* the fsync; then uncommitted.syncs points here */
	struct sharers next; /* who came after it had begun, or before it begins */
	int result;
};

static struct vfs_sharer **maker_of(const struct vfs_sharer *s)
{
	return &s->node->uncommitted.syncs;
}

/* True if it makes the fsync itself. */
static bool write_sync_join(struct vfs_sharer *s, bool waits)
{
	/* Once it waits and the lock is free, it may be woken, and be gone. */
	pthread_mutex_t *lock = &s->node->uncommitted.lock;
	bool makes;

	pthread_mutex_lock(lock);
	makes = s->makes = !*maker_of(s);
	if (makes)
		*maker_of(s) = s;
	else if (waits)
		STAILQ_INSERT_TAIL(&(*maker_of(s))->next, s, link);
	pthread_mutex_unlock(lock);
	return makes;
}

static void write_sync_wake(struct vfs_sharer *s)
{
	s->ctx->fiber->wake(s->ctx->fiber);
}

/* The fiber is at rest: it can be woken at once. */
static void join_at_rest(void *arg)
{
	if (write_sync_join(arg, true))
		write_sync_wake(arg);
}

static void widen(struct vfs_written *all, const struct vfs_written *one)
{
	all->from = rn_min(all->from, one->from);
	all->to = rn_max(all->to, one->to);
	all->bytes += one->bytes;
	all->metadata |= one->metadata;
}

static int sync_once(struct vfs_sharer *s, int fd, const struct vfs_written *all)
{
	const uint64_t span = all->to - all->from;

	/* Without data of others fsync(2), which writes all of a file, writes the same. */
	if (all->bytes <= WAIT_MAX && !vfs_uncommitted_any(s->node) &&
	    vfs_group_may_wait(vfs_worker_of(s->ctx), s->node))
		return (all->metadata ? fsync(fd) : fdatasync(fd)) == 0 ? 0 : -errno;
	return vfs_ring_fsync(
		s->ctx, fd,
		&(struct vfs_ring_sync){ .offset = span <= UINT32_MAX ? all->from : 0,
					 .len = span <= UINT32_MAX ? (uint32_t)span : 0,
					 .data_only = !all->metadata });
}

static int sync_measured(struct vfs_sharer *s, int fd, const struct vfs_written *all)
{
	const uint64_t began_ns = rn_now_ns();
	unsigned tries = 0;
	int rc;

	do
		rc = sync_once(s, fd, all);
	while (vfs_io_again(&tries, rc));
	vfs_group_waited(vfs_worker_of(s->ctx), s->node, rn_now_ns() - began_ns);
	return rc;
}

/* Takes the writes that wait by now into the fsync that s makes, and finds the range that covers all of them. */
static void write_sync_begin(struct vfs_sharer *s, struct sharers *with, struct vfs_written *all)
{
	const struct vfs_sharer *o;

	STAILQ_INIT(with);
	pthread_mutex_lock(&s->node->uncommitted.lock);
	STAILQ_CONCAT(with, &s->next);
	pthread_mutex_unlock(&s->node->uncommitted.lock);
	*all = s->what;
	for (o = STAILQ_FIRST(with); o; o = STAILQ_NEXT(o, link))
		widen(all, &o->what);
}

/* The first of those who came meanwhile makes the next one. NULL: nobody has come. */
static struct vfs_sharer *write_sync_hand_over(struct vfs_sharer *s)
{
	struct vfs_sharer *first;

	pthread_mutex_lock(&s->node->uncommitted.lock);
	first = STAILQ_FIRST(&s->next);
	if (first) {
		STAILQ_REMOVE_HEAD(&s->next, link);
		STAILQ_CONCAT(&first->next, &s->next);
		first->makes = true;
	}
	*maker_of(s) = first;
	pthread_mutex_unlock(&s->node->uncommitted.lock);
	return first;
}

static int make_sync(struct vfs_sharer *s, int fd)
{
	struct vfs_sharer *o, *first;
	struct vfs_written all;
	struct sharers with;
	int rc;

	write_sync_begin(s, &with, &all);
	rc = sync_measured(s, fd, &all);
	first = write_sync_hand_over(s);
	if (first)
		write_sync_wake(first);
	while ((o = STAILQ_FIRST(&with)) != NULL) {
		STAILQ_REMOVE_HEAD(&with, link); /* it is gone as soon as it is woken */
		o->result = rc;
		write_sync_wake(o);
	}
	return rc;
}

int vfs_write_sync(struct vfs_ctx *ctx, struct vfs_node *n, int fd, const struct vfs_written *what)
{
	struct vfs_sharer s = { .ctx = ctx, .node = n, .what = *what };

	STAILQ_INIT(&s.next);
	if (!ctx->fiber->stack) /* it is all of its thread, and waits for nobody */
		return sync_measured(&s, fd, what);
	if (write_sync_join(&s, false))
		vfs_worker_yield(ctx); /* more may be in its worker's hands */
	else
		rn_fiber_wait(ctx->fiber, RN_WAIT_RING, join_at_rest, &s);
	return s.makes ? make_sync(&s, fd) : s.result;
}
