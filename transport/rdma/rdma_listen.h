/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners. On loops[0]. */
#ifndef RN_TRANSPORT_RDMA_LISTEN_H
#define RN_TRANSPORT_RDMA_LISTEN_H

#include "transport/rdma/rdma_types.h"

/* 0 or -errno; after -ENODEV and -EADDRNOTAVAIL a later try may succeed. */
int rr_listener_open(struct rr_server *srv, struct rr_listener *l);
void rr_listener_close(struct rr_listener *l);
/* Works out which families are served, after a change of devices or listeners. */
void rr_listeners_count(struct rr_server *srv);
/* True if the machine has a device. Any thread. */
bool rr_device_is_there(void);
/* Opens lost listeners and checks the devices, every RR_RETRY_SECONDS; called by the timer. */
void rr_look_after(struct rr_server *srv);

#endif
