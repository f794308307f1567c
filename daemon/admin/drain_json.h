/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_DAEMON_ADMIN_DRAIN_JSON_H
#define RN_DAEMON_ADMIN_DRAIN_JSON_H

#include <jansson.h>
#include <stdbool.h>

struct drain;

/* Adds active, all, exports, and seconds since the beginning. True if it is active. */
bool drain_add_json(json_t *to, struct drain *drain);

#endif
