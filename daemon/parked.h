/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that wait for a name service's answer, without a worker. Each is run again on its worker
 * after answers have come. After its longest wait it is run for the last time and must be answered.
 * Their number is bounded, for each client as well. Thread-safe.
 */
#ifndef RN_DAEMON_PARKED_H
#define RN_DAEMON_PARKED_H

#include <stdbool.h>

#include "rpc/request.h"

struct parked;

int parked_new(struct parked **out); /* 0 or -errno */
/* No call may be parked. */
void parked_free(struct parked *p);

/* rpc_server.park; ctx is a struct parked. */
bool parked_add(void *ctx, struct rpc_request *req, void (*again)(struct rpc_request *req));
/* Runs the parked calls again, after an answer; ctx is a struct parked. */
void parked_wake(void *ctx);
/* Has all parked calls answered now, and takes no further ones. */
void parked_close(struct parked *p);
unsigned parked_count(struct parked *p);

#endif
