/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a connection's or client's row that tell how its calls are protected, and whose its certificate is. */
#ifndef RN_DAEMON_ADMIN_PROTECTION_H
#define RN_DAEMON_ADMIN_PROTECTION_H

#include <jansson.h>

#include "daemon/daemon_tls_users.h"
#include "rpc/conns.h"

/* Nothing for a plain connection. users: the map of certificates, or NULL. */
void protection_add_tls(json_t *row, const struct rpc_conn_view *v, struct tls_users *users);
/* The flavours of its calls. secs: bits, enum rpc_sec_bit. */
void protection_add_security(json_t *row, uint8_t secs);

#endif
