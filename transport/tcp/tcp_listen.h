/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners. */
#ifndef RN_TRANSPORT_TCP_LISTEN_H
#define RN_TRANSPORT_TCP_LISTEN_H

#include "transport/tcp/tcp_types.h"

void tcp_listener_free(struct tcp_listener *l); /* on its loop */

#endif
