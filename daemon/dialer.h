/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections to clients, for the programs: they start before the TCP transport and end after it,
 * and may want to call a client at any time between.
 */
#ifndef RN_DAEMON_DIALER_H
#define RN_DAEMON_DIALER_H

#include <pthread.h>

#include "rpc/backchannel.h"

struct tcp_server;

struct dialer {
	pthread_mutex_t lock;
	struct tcp_server *tcp; /* NULL: no connections can be made */
};

void dialer_init(struct dialer *d);
void dialer_fini(struct dialer *d);
/* For the programs; d must outlive them. */
struct rpc_dialer dialer_view(struct dialer *d);
void dialer_open(struct dialer *d, struct tcp_server *tcp);
/* No connection is begun any more. Before tcp_server_quiesce(). */
void dialer_close(struct dialer *d);

#endif
