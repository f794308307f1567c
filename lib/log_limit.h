/* SPDX-License-Identifier: BSD-2-Clause */
/* A limit for messages that a peer can bring about: a few in each ten seconds, then the number of
 * those left out. Thread-safe, without a lock; zeroed memory is ready. */
#ifndef RN_LIB_LOG_LIMIT_H
#define RN_LIB_LOG_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RN_LOG_LIMIT 10u	 /* messages in one span */
#define RN_LOG_LIMIT_SECONDS 10u /* length of a span */

struct rn_log_limit {
	_Atomic uint64_t span; /* number of the span << 32, and the messages in it */
	_Atomic unsigned left_out;
};

/* True if a message may be written at that time (CLOCK_MONOTONIC, ns). *left_out: messages
 * suppressed since the last one that was written. */
bool rn_log_limit_pass(struct rn_log_limit *l, uint64_t now_ns, unsigned *left_out);

#endif
