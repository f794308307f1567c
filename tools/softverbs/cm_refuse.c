/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the fabric does not support: multicast and extended connection establishment. They
 * are defined here because librdmacm is loaded behind this library, and its functions would misread
 * objects of this one.
 */
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

#include "tools/softverbs/cm.h"

SV_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id, (void)addr, (void)context;
	return cm_result(-EOPNOTSUPP);
}

SV_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id,
				     struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
	(void)id, (void)mc_join_attr, (void)context;
	return cm_result(-EOPNOTSUPP);
}

SV_EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id, (void)addr;
	return cm_result(-EOPNOTSUPP);
}

SV_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id, (void)ece;
	return cm_result(-EOPNOTSUPP);
}

SV_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id, (void)ece;
	return cm_result(-EOPNOTSUPP);
}

SV_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t len)
{
	return rdma_reject(id, private_data, len);
}

SV_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	(void)id, (void)attr;
	return cm_result(-EOPNOTSUPP);
}

/* Works on ordinary descriptors, on which rping calls it. */
SV_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}
