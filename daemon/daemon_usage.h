/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the calls of NFSv3's clients. */
#ifndef RN_DAEMON_DAEMON_USAGE_H
#define RN_DAEMON_DAEMON_USAGE_H

#include "rpc/request.h"

/* Counts one answered call; the arguments are those of rpc_server.observe. */
void usage_observe(const struct rpc_request *req, uint64_t elapsed_ns, bool error);

#endif
