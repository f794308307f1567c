/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that wait for a name service's answer, without a worker. Each is run again on its worker
 * when there have been answers; for the last time, to be answered whatever is known, when it has
 * waited for long. Their number is bounded, for each client as well. Thread-safe.
 */
#ifndef RN_DAEMON_PARKED_H
#define RN_DAEMON_PARKED_H

#include <stdbool.h>

#include "rpc/request.h"

struct parked;

int parked_new(struct parked **out); /* 0 or -errno */
/* No call is parked any more. */
void parked_free(struct parked *p);

/* rpc_server.park; ctx is a struct parked. */
bool parked_add(void *ctx, struct rpc_request *req, void (*again)(struct rpc_request *req));
/* There has been an answer; ctx is a struct parked. */
void parked_wake(void *ctx);
/* All are to be answered now, and no further one is taken. */
void parked_close(struct parked *p);
unsigned parked_count(struct parked *p);

#endif
