/* SPDX-License-Identifier: BSD-2-Clause */
/* Loops share their work. */
#ifndef RN_TRANSPORT_TCP_BALANCE_H
#define RN_TRANSPORT_TCP_BALANCE_H

#include "transport/tcp/tcp_types.h"

/* Gives a connection to another loop if this one has too much; once a second, on the loop. */
void tcp_balance_tick(struct tcp_loop *loop);

#endif
