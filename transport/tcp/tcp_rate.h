/* SPDX-License-Identifier: BSD-2-Clause */
/* The rate of a record on its way in. On the loop. */
#ifndef RN_TRANSPORT_TCP_RATE_H
#define RN_TRANSPORT_TCP_RATE_H

#include "transport/tcp/tcp_types.h"

/* Begins to measure the record being read. */
void tcp_rate_measure(struct tcp_conn *c, uint64_t now);
/* Puts the record's time limits off by the time in which the server has not read it. */
void tcp_rate_suspend(struct tcp_conn *c, uint64_t ns);
/* True if the record comes too slowly; pressed: others wait for memory. Called about once a second. */
bool tcp_rate_is_slow(struct tcp_conn *c, uint64_t now, bool pressed);

#endif
