/* SPDX-License-Identifier: BSD-2-Clause */
/* Differences of two tables of exports. */
#ifndef RN_DAEMON_ADMIN_ADMIN_EXPORTS_DIFF_H
#define RN_DAEMON_ADMIN_ADMIN_EXPORTS_DIFF_H

#include <jansson.h>

#include "conf/exports.h"

/*
 * A list of {path, change, clients}, where change is "added", "removed" or "changed" and clients a list of
 * {client, change, options} or {client, change, gained, lost}, options in canonical form. Clients whose order
 * alone has changed are not in it. Either table may be NULL. NULL: no memory.
 */
json_t *exports_diff(const struct exp_table *was, const struct exp_table *is);

#endif
