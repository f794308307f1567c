/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection's way from plain to TLS (RFC 9289): see tcp_tls.c. On the loop. */
#ifndef RN_TRANSPORT_TCP_TLS_H
#define RN_TRANSPORT_TCP_TLS_H

#include "transport/tcp/tcp_types.h"

/* The table that every connection begins with. */
extern const struct tcp_io tcp_io_plain;

/* True if the whole call asks for TLS, which this connection may still have. */
bool tcp_tls_is_probe(const struct tcp_conn *c, const struct tcp_req *t);
/* Stops reading, and answers it when all earlier calls are answered. The handshake begins when that is out. */
void tcp_tls_answer(struct tcp_conn *c, struct tcp_req *t);
/* Goes on if what it waited for is there: from the connection's task. */
void tcp_tls_go_on(struct tcp_conn *c);
/* There is input for the handshake. */
void tcp_tls_step(struct tcp_conn *c);
/* True if the handshake takes too long. */
bool tcp_tls_is_late(const struct tcp_conn *c, uint64_t now);
/* Frees the session; nobody uses the connection any more. */
void tcp_tls_free(struct tcp_conn *c);

#endif
