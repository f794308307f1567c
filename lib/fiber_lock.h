/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock that may be held over a wait (lib/fiber.h): a fiber that finds it taken waits without its thread, and may
 * give it back on another one. First come, first served. Callers that are in no fiber block their thread.
 */
#ifndef RN_LIB_FIBER_LOCK_H
#define RN_LIB_FIBER_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

struct rn_lock_waiter;

struct rn_lock {
	pthread_mutex_t guard; /* a leaf */
	bool held;
	STAILQ_HEAD(, rn_lock_waiter) waiting;
};

void rn_lock_init(struct rn_lock *l);
void rn_lock_fini(struct rn_lock *l); /* nobody has it or waits for it */
void rn_lock_take(struct rn_lock *l);
bool rn_lock_try(struct rn_lock *l);
void rn_lock_give(struct rn_lock *l);

#endif
