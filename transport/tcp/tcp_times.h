/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections whose time is up. */
#ifndef RN_TRANSPORT_TCP_TIMES_H
#define RN_TRANSPORT_TCP_TIMES_H

#include "transport/tcp/tcp_types.h"

/* Closes them; once a second, on the loop. */
void tcp_times_tick(struct tcp_loop *loop);

#endif
