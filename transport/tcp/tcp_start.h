/* SPDX-License-Identifier: BSD-2-Clause */
/* New connections. */
#ifndef RN_TRANSPORT_TCP_START_H
#define RN_TRANSPORT_TCP_START_H

#include "transport/tcp/tcp_types.h"

/* Takes fd, on error too. On any loop. 0 or -ENOMEM. */
int tcp_conn_new(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer);

#endif
