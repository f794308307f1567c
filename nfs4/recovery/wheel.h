/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A timer wheel for leases. Adding and taking out cost the same whatever the number of timers;
 * putting off is one store without a lock, so that each operation of a client can do it: the wheel
 * notices when it comes by, and files the timer anew. A timer fires at or up to two seconds after
 * its time, never before. Seconds are of CLOCK_MONOTONIC, so time in which the server sleeps does
 * not count: a lease lasts longer then, which is always right.
 *
 * What a timer is part of must live while the timer is filed. nfs4_wheel_cancel() and firing are
 * told apart exactly: a timer that cancel took out does not fire, and one that it did not find
 * has fired or is about to. Who files a timer can thus hold a reference for it, which is given back
 * by whoever takes it out.
 */
#ifndef RN_NFS4_WHEEL_H
#define RN_NFS4_WHEEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define NFS4_WHEEL_SLOTS 256u /* seconds of one turn; timers further ahead are passed and stay */

struct nfs4_timer {
	struct nfs4_timer *next, **at; /* at NULL: not filed */
	_Atomic uint64_t due;	       /* seconds */
};

struct nfs4_wheel {
	pthread_mutex_t lock;
	uint64_t now; /* second up to which everything has fired */
	struct nfs4_timer *slot[NFS4_WHEEL_SLOTS];
};

uint64_t nfs4_now(void); /* seconds of CLOCK_MONOTONIC */

void nfs4_wheel_init(struct nfs4_wheel *w, uint64_t now);
/* Forgets the timers that are filed. */
void nfs4_wheel_fini(struct nfs4_wheel *w);

void nfs4_timer_init(struct nfs4_timer *t);
/* t is not filed. */
void nfs4_wheel_add(struct nfs4_wheel *w, struct nfs4_timer *t, uint64_t due);
/* Puts t off. An earlier time than before is taken for a later one only when the wheel comes by: to
 * fire earlier, cancel and add. No lock. */
static inline void nfs4_timer_renew(struct nfs4_timer *t, uint64_t due)
{
	if (atomic_load_explicit(&t->due, memory_order_relaxed) != due)
		atomic_store(&t->due, due); /* ordered with what the caller looks at next */
}
/* True: t was filed and is not any more. */
bool nfs4_wheel_cancel(struct nfs4_wheel *w, struct nfs4_timer *t);

/* Fires what is due at now. fire() is called without a lock and may add timers. From one thread. */
void nfs4_wheel_tick(struct nfs4_wheel *w, uint64_t now,
		     void (*fire)(void *ctx, struct nfs4_timer *t), void *ctx);

#endif
