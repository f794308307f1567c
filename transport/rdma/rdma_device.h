/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices with connections. All but rr_device_key on loops[0]. */
#ifndef RN_TRANSPORT_RDMA_DEVICE_H
#define RN_TRANSPORT_RDMA_DEVICE_H

#include "transport/rdma/rdma_types.h"

/* A reference on the device with that context, or NULL: no memory. */
struct rr_device *rr_device_get(struct rr_server *srv, struct ibv_context *verbs);
void rr_device_put(struct rr_device *dev);

/*
 * Closes the connections of devices that are gone; to be called now and then. The connection
 * manager's event may not come: drivers that cannot take a device away from its users (rxe, siw)
 * wait until all have closed it, and the event may be behind that wait.
 */
void rr_devices_check(struct rr_server *srv);

/* The local key of the slab that holds p, which is registered if need be; 0 or -errno. */
int rr_device_key(struct rr_device *dev, const struct rn_payload *p, uint32_t *lkey);

/* Warns that memory cannot be registered, at most once a minute. Always -ENOMEM. */
int rr_device_no_memory(struct rr_device *dev);

#endif
