/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of connections as JSON. */
#ifndef RN_DAEMON_ADMIN_ENDPOINT_H
#define RN_DAEMON_ADMIN_ENDPOINT_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* Writes the address; an IPv4 address mapped into IPv6 is the IPv4 address. Empty: it is neither. */
void endpoint_put_address(const struct sockaddr_storage *from, char text[INET6_ADDRSTRLEN]);
/* Reads an IP address. False: the text is none. */
bool endpoint_read_address(const char *text, struct sockaddr_storage *out);
/* Adds the address and the port by these names. */
void endpoint_add(json_t *to, const char *address, const char *port,
		  const struct sockaddr_storage *from);

#endif
