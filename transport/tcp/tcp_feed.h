/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that wait for a request. On the loop. */
#ifndef RN_TRANSPORT_TCP_FEED_H
#define RN_TRANSPORT_TCP_FEED_H

#include "transport/tcp/tcp_types.h"

/* Lets those go on that may have a request. */
void tcp_feed(struct tcp_loop *loop);
void tcp_feed_wake(struct ev_task *task); /* tcp_loop.wake */

#endif
