/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading of calls: see tcp_read.c. On the loop. */
#ifndef RN_TRANSPORT_TCP_READ_H
#define RN_TRANSPORT_TCP_READ_H

#include "transport/tcp/tcp_types.h"

/* Callback of the readable socket. */
void tcp_read_ready(evutil_socket_t fd, short what, void *arg);
/* Goes on after a pause, if there is what it waited for. */
void tcp_read_resume(struct tcp_conn *c);
/* Takes the wait since wait_ns, which was the server's, out of the time of the record being read;
 * the peer's rate is measured anew. */
void tcp_read_forgive_wait(struct tcp_conn *c);
/* A record that holds buffers and waits for one more takes a smaller one if there is one now. Else it
 * waits at the end of the queue, so nobody else may be waiting. */
void tcp_read_take_less(struct tcp_conn *c);
/* Reads until the loop's work has come up to `until`, or there is no more. */
void tcp_read_some(struct tcp_conn *c, uint64_t until);
/* Has the connection read again if it has input that its socket does not tell of. */
void tcp_read_pending(struct tcp_conn *c);

#endif
