/* SPDX-License-Identifier: BSD-2-Clause */
/* The export of a call's first file handle, found without decoding the call, to choose its lane.
 * Nothing is verified: a client that sends a wrong one only gets a worse lane. */
#ifndef RN_DAEMON_FIRST_HANDLE_H
#define RN_DAEMON_FIRST_HANDLE_H

#include <stdbool.h>

#include "rpc/request.h"

/* False: the call has none, or not in the usual position. */
bool first_handle_export(const struct rpc_request *req, uint32_t *export_id);

#endif
