/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits of calls for what other calls, clients and services do. A call waits in its fiber (lib/fiber.h), without a
 * thread, and goes on behind its rpc_wait() when another thread names what it waits for, or its time is over.
 *
 * Calls that wait for others as long as a client may are bounded: at most 256, 16 of a host, which share the places as
 * lib/quota.h says. A host's call beyond its 16 ends the wait of its oldest one. A call whose wait
 * is ended so, or for which there is no place, makes its step once more, and is then answered that it should come again.
 * Thread-safe.
 */
#ifndef RN_RPC_WAIT_H
#define RN_RPC_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/fiber.h"

struct rn_logger;
struct rpc_request;
struct rpc_waits;

int rpc_waits_new(const struct rn_logger *log, struct rpc_waits **out); /* 0 or -errno */
/* No call may wait any more. NULL is allowed. */
void rpc_waits_free(struct rpc_waits *w);
/* Ends the waits of rpc_try_later() for these, and refuses further ones: a set of bits 1 << enum rn_wait_for. w may be NULL. */
void rpc_waits_close(struct rpc_waits *w, unsigned kinds);
unsigned rpc_waits_count(struct rpc_waits *w); /* calls in rpc_try_later() */

/*
 * In a call: waits until rpc_wake(of), until until_ns (CLOCK_MONOTONIC; 0: no limit), or until its client has gone.
 * lock is held, and guards what the waker changes before it calls rpc_wake; it is not held any more on return. of is
 * an address, and not looked at. 0, -ETIMEDOUT, -RN_EGONE, or -ENOSYS: the server has no waits (req->server->waits).
 */
int rpc_wait(struct rpc_request *req, enum rn_wait_for what, const void *of, uint64_t until_ns,
	     pthread_mutex_t *lock);
/* Has the calls that wait for it go on. The caller may hold a lock. w may be NULL. */
void rpc_wake(struct rpc_waits *w, const void *of);

/*
 * In a call that has done nothing yet, and was told that what it needs comes later: waits until it may be there, a
 * quarter of a second at a time. True: it looks again. False: it has waited for patience_ns (0: until 12 seconds after it arrived, as long as clients bear),
 * or may not wait, or its client has gone, and it is answered.
 */
bool rpc_try_later(struct rpc_request *req, enum rn_wait_for what, uint64_t patience_ns);
/* True until 12 seconds after the call arrived, while its client is there. */
bool rpc_has_time(const struct rpc_request *req);
/* Has those look again that wait for one of these: a set of bits 1 << enum rn_wait_for. w may be NULL. */
void rpc_wake_all(struct rpc_waits *w, unsigned kinds);

#endif
