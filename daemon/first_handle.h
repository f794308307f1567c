/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The export of a call's first file handle, seen without decoding the call: where it is to be run.
 * Nothing is checked, so a wrong answer may be had by whoever wants one: it costs him a worse
 * place.
 */
#ifndef RN_DAEMON_FIRST_HANDLE_H
#define RN_DAEMON_FIRST_HANDLE_H

#include <stdbool.h>

#include "rpc/request.h"

/* False: the call has none, or not where it is looked for. */
bool first_handle_export(const struct rpc_request *req, uint32_t *export_id);

#endif
