/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths and names of files as JSON, which takes UTF-8 alone. */
#ifndef RN_DAEMON_ADMIN_TEXT_H
#define RN_DAEMON_ADMIN_TEXT_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdint.h>

#include "daemon/tls_setup.h"
#include "rpc/conns.h"

/* The text; if it is no UTF-8, with each byte beyond ASCII as \xNN. NULL: no memory, or text is NULL. */
json_t *control_text(const char *text);

/* Names and addresses of clients as text. */

/* Bytes that a client has chosen: those that are no printable ASCII become \xNN. NULL: no memory. */
json_t *client_printable(const uint8_t *bytes, uint32_t len);
/* An IPv6 address, or an IPv4 one that is mapped. */
json_t *client_address(const uint8_t addr[16]);

/* Members of a connection's or client's row that tell how its calls are protected, and whose its certificate is. */

/* Nothing for a plain connection. users: the map of certificates, or NULL. */
void protection_add_tls(json_t *row, const struct rpc_conn_view *v, struct tls_users *users);
/* The flavours of its calls. secs: bits, enum rpc_sec_bit. */
void protection_add_security(json_t *row, uint8_t secs);

#endif
