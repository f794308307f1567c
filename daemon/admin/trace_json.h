/* SPDX-License-Identifier: BSD-2-Clause */
/* A call of a trace as JSON. */
#ifndef RN_DAEMON_ADMIN_TRACE_JSON_H
#define RN_DAEMON_ADMIN_TRACE_JSON_H

#include <jansson.h>

#include "daemon/admin/state_filter.h"
#include "daemon/trace_call.h"
#include "rpc/program.h"

/* exports: those in force, for paths. NULL: no memory. */
json_t *trace_json(const struct trace_call *c, const struct rpc_server *rpc,
		   const struct state_filter *exports);

#endif
