/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limit for messages that clients can bring about, for each client: RN_LOG_LIMIT in a span of RN_LOG_LIMIT_SECONDS, so
 * that one who fills the log does not keep others out of it; and six times that many for all together, as a client may
 * have many addresses. Memory is bounded: a client that finds no place shares one limit with others of that kind.
 */
#ifndef RN_LIB_LOG_HOSTS_H
#define RN_LIB_LOG_HOSTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/host.h"
#include "lib/log_limit.h"

#define RN_LOG_HOSTS 256u  /* clients with a limit of their own */
#define RN_LOG_HOST_WAYS 4 /* places that a client may have */
#define RN_LOG_ALL (6 * RN_LOG_LIMIT)

struct rn_log_host {
	struct rn_host who;
	uint64_t span; /* number of the span, from 1 on; 0: the place is free */
	unsigned n, left_out;
};

struct rn_log_hosts {
	pthread_mutex_t lock; /* a leaf */
	struct rn_log_host host[RN_LOG_HOSTS], others, all;
};

void rn_log_hosts_init(struct rn_log_hosts *h);
void rn_log_hosts_fini(struct rn_log_hosts *h);
/* True if a message about that client may be written at that time (CLOCK_MONOTONIC). *left_out: messages about it that were
 * suppressed since its last one; those that only the limit for all has suppressed are in the next client's number. */
bool rn_log_hosts_pass(struct rn_log_hosts *h, const struct rn_host *who, uint64_t now_ns,
		       unsigned *left_out);

#endif
