/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of the UDP transport, and the shares of the calls under way. */
#ifndef RN_TRANSPORT_UDP_POOL_H
#define RN_TRANSPORT_UDP_POOL_H

#include "transport/udp/udp_types.h"

size_t udp_pool_memory(void); /* bytes that udp_pool_fill takes, with the heads of replies */
int udp_pool_fill(struct udp_server *s); /* 0 or -ENOMEM */
void udp_pool_free(struct udp_server *s);

/* Counts one more call of the connection's client. False: there are too many. A client may have as many
 * under way as are still left for all. */
bool udp_pool_enter(struct udp_conn *c);
/* Counts it among those of strangers, too. False: there are too many. */
bool udp_pool_enter_stranger(struct udp_conn *c);
/* Takes back both. */
void udp_pool_leave(struct udp_conn *c);

/* A request, on the client's account. NULL: there is no memory. */
struct udp_req *udp_pool_get(struct udp_server *s, struct rpc_client *client);
void udp_pool_put(struct udp_server *s, struct udp_req *r, struct rpc_client *client);

#endif
