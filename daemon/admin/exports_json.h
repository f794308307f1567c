/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of answers about exports. Each is NULL without memory. */
#ifndef RN_DAEMON_ADMIN_EXPORTS_JSON_H
#define RN_DAEMON_ADMIN_EXPORTS_JSON_H

#include <jansson.h>

#include "conf/exports.h"
#include "daemon/exports/export_set.h"

/* A list of {severity, file, line, column, text}. */
json_t *exports_messages(const struct cfg_diags *diags);
/* The client's options in canonical form. */
json_t *exports_options(const struct exp_opts *opts);
/* Adds state, and the reason if it is not served. */
void exports_add_state(json_t *to, const struct export_place *p);
/* Adds where the client's line is: file and line, or "temporary": true. */
void exports_add_source(json_t *to, const struct exp_client *client);
/* Numbers of what clients hold, and a list by client. */
json_t *exports_revoked_json(const struct exports_revoked *rev);

#endif
