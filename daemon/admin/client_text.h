/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and addresses of clients as text. */
#ifndef RN_DAEMON_ADMIN_CLIENT_TEXT_H
#define RN_DAEMON_ADMIN_CLIENT_TEXT_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdint.h>

/* Bytes that a client has chosen: those that are no printable ASCII become \xNN. NULL: no memory. */
json_t *client_printable(const uint8_t *bytes, uint32_t len);
/* An IPv6 address, or an IPv4 one that is mapped. */
void client_put_address(const uint8_t addr[16], char text[INET6_ADDRSTRLEN]);
json_t *client_address(const uint8_t addr[16]);

#endif
