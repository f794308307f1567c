/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets of HTTP over TCP. */
#ifndef RN_ADMIN_TCP_H
#define RN_ADMIN_TCP_H

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/log.h"

/* Listens on an IPv4 or IPv6 address with a port. The descriptor, or -errno, logged. */
int admin_tcp_listen(const struct sockaddr_storage *addr, const struct rn_logger *log);
/* True if the descriptor is a connection to one of those addresses' ports. */
bool admin_tcp_is_connection(int fd, const struct sockaddr_storage *addrs, unsigned n);

#endif
