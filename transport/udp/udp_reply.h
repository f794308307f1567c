/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a call over UDP. */
#ifndef RN_TRANSPORT_UDP_REPLY_H
#define RN_TRANSPORT_UDP_REPLY_H

#include "transport/udp/udp_types.h"

extern const struct rpc_conn_ops udp_conn_ops;

/* Counts a datagram that gets no answer. */
void udp_dropped(struct udp_server *s, enum udp_dropped why);

#endif
