/* SPDX-License-Identifier: BSD-2-Clause */
/* New connections. */
#ifndef RN_TRANSPORT_TCP_START_H
#define RN_TRANSPORT_TCP_START_H

#include "transport/tcp/tcp_types.h"

/* Takes fd, on error too. On any loop. 0 or -ENOMEM. */
int tcp_conn_new(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer);

/* The same for a connection that the server makes, whose connect() was called. reply_max: as in
 * struct rpc_route. *out has a reference
 * for the caller. 0; -RN_EFULL: there are too many; -ENOMEM. Any thread. */
int tcp_conn_new_dialed(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer,
			uint32_t reply_max, struct tcp_conn **out);

#endif
