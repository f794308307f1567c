/* SPDX-License-Identifier: BSD-2-Clause */
/* A call's first file handle and its export, found without decoding the call: to choose its lane, and to show it.
 * Nothing is verified: a client that sends a wrong one only gets a worse lane. */
#ifndef RN_DAEMON_FIRST_HANDLE_H
#define RN_DAEMON_FIRST_HANDLE_H

#include <stdbool.h>

#include "rpc/request.h"
#include "vfs/types.h"

/* False: the call has none, or not in the usual position, or its memory was given back already. */
bool first_handle(const struct rpc_request *req, struct vfs_fh *out);
bool first_handle_export(const struct rpc_request *req, uint32_t *export_id);

#endif
