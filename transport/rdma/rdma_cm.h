/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the connection manager. */
#ifndef RN_TRANSPORT_RDMA_CM_H
#define RN_TRANSPORT_RDMA_CM_H

#include "transport/rdma/rdma_types.h"

/* Callback of the event channel. On loops[0]. */
void rr_cm_ready(evutil_socket_t fd, short what, void *srv);

#endif
