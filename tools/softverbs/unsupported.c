/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fabric has not: datagrams and multicast, memory of other devices, objects of other
 * processes. Without these the calls would reach the real library, which knows nothing of our
 * objects.
 */
#include <errno.h>
#include <stddef.h>

#include "tools/softverbs/fabric.h"

#include <infiniband/verbs.h>

static void *verb_unsupported(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

SV_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	return verb_unsupported();
}

SV_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
				  struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	(void)context;
	(void)port;
	(void)wc;
	(void)grh;
	(void)attr;
	verb_unsupported();
	return -1;
}

SV_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					       struct ibv_grh *grh, uint8_t port)
{
	(void)pd;
	(void)wc;
	(void)grh;
	(void)port;
	return verb_unsupported();
}

SV_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return EOPNOTSUPP;
}

SV_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return EOPNOTSUPP;
}

SV_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_attach_mcast(qp, gid, lid);
}

SV_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			   size_t length, int access)
{
	(void)mr;
	(void)flags;
	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	verb_unsupported();
	return IBV_REREG_MR_ERR_INPUT;
}

SV_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					   uint64_t iova, int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	return verb_unsupported();
}

SV_EXPORT struct ibv_context *ibv_import_device(int fd)
{
	(void)fd;
	return verb_unsupported();
}

SV_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	(void)context;
	(void)handle;
	return verb_unsupported();
}

SV_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	(void)pd;
	(void)handle;
	return verb_unsupported();
}

SV_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					  uint8_t mac[6], uint16_t *vid)
{
	(void)context;
	(void)attr;
	(void)mac;
	(void)vid;
	return EOPNOTSUPP;
}
