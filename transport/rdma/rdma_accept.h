/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection requests. */
#ifndef RN_TRANSPORT_RDMA_ACCEPT_H
#define RN_TRANSPORT_RDMA_ACCEPT_H

#include "transport/rdma/rdma_types.h"

/* Makes and accepts a connection. 0 or -errno; the id is taken only on success. On loops[0]. */
int rr_accept(struct rr_server *srv, struct rdma_cm_id *id, const struct rdma_conn_param *param);

#endif
