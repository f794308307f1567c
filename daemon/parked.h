/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that wait without a worker, for a name service's answer or the end of a delegation. Each is run
 * again on its worker after answers have come, and a few times a second. After its longest wait it is run for
 * the last time and must be answered. Their number is bounded. Hosts share it as lib/shares.h says: a call that makes
 * room for another is run for the last time.
 * Thread-safe.
 */
#ifndef RN_DAEMON_PARKED_H
#define RN_DAEMON_PARKED_H

#include <stdbool.h>

#include "rpc/request.h"

struct parked;

int parked_new(const struct rn_logger *log, struct parked **out); /* 0 or -errno */
/* No call may be parked any more. */
void parked_free(struct parked *p);

/* rpc_server.park: takes the call, to be run by again(). False if there are too many or
 * parked_close() was called. ctx is a struct parked. */
bool parked_add(void *ctx, struct rpc_request *req, void (*again)(struct rpc_request *req));
/* Runs the parked calls again, as an answer has come or a delegation has ended; ctx is a struct
 * parked. */
void parked_wake(void *ctx);
/* Runs all parked calls for the last time, and refuses further ones. */
void parked_close(struct parked *p);
unsigned parked_count(struct parked *p);

#endif
