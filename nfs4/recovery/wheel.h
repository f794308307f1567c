/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A timer wheel for leases. Adding and cancelling cost the same for any number of timers. Renewing
 * is one store without a lock, so that each operation of a client can afford it: the wheel notices
 * the new time when it reaches the timer, and files it again. A timer fires at its time or up to
 * two seconds later, never before. Seconds are those of CLOCK_MONOTONIC, so the time of a suspended
 * machine does not count: a lease then lasts longer, which is always safe.
 *
 * The object that contains a timer must live while the timer is filed. nfs4_wheel_cancel() and
 * firing exclude each other: a cancelled timer does not fire, and one that cancel did not find has
 * fired or is about to. So the caller that files a timer can take a reference for it, which the
 * canceller or fire() puts.
 */
#ifndef RN_NFS4_WHEEL_H
#define RN_NFS4_WHEEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define NFS4_WHEEL_SLOTS 256u /* seconds of one turn; later timers stay for a further turn */

struct nfs4_timer {
	struct nfs4_timer *next, **at; /* at is NULL: not filed */
	_Atomic uint64_t due;	       /* seconds */
};

struct nfs4_wheel {
	pthread_mutex_t lock;
	uint64_t now; /* all timers up to this second have fired */
	struct nfs4_timer *slot[NFS4_WHEEL_SLOTS];
};

uint64_t nfs4_now(void); /* seconds of CLOCK_MONOTONIC_COARSE */

void nfs4_wheel_init(struct nfs4_wheel *w, uint64_t now);
/* Drops the filed timers without firing them. */
void nfs4_wheel_fini(struct nfs4_wheel *w);

void nfs4_timer_init(struct nfs4_timer *t);
/* Files t, which must not be filed. */
void nfs4_wheel_add(struct nfs4_wheel *w, struct nfs4_timer *t, uint64_t due);
/* Moves t to a later time. An earlier time takes effect only when the wheel reaches the timer at its
 * old one: to fire earlier, cancel and add. No lock. */
static inline void nfs4_timer_renew(struct nfs4_timer *t, uint64_t due)
{
	if (atomic_load_explicit(&t->due, memory_order_relaxed) != due)
		atomic_store(&t->due, due); /* ordered before the caller's next load */
}
/* True if t was filed; it is cancelled now. */
bool nfs4_wheel_cancel(struct nfs4_wheel *w, struct nfs4_timer *t);

/* Fires the timers due at now. fire() is called without a lock and may add timers. One thread only. */
void nfs4_wheel_tick(struct nfs4_wheel *w, uint64_t now,
		     void (*fire)(void *ctx, struct nfs4_timer *t), void *ctx);

#endif
