/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts of opened devices, and the attributes that a device reports. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cq.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/qp.h"
#include "tools/softverbs/srq.h"
#include "tools/softverbs/sv_device.h"

#undef ibv_query_port

#define COMP_VECTORS 4
#define VENDOR 0x5356 /* not an assigned number: for private use */
#define SIW_VENDOR 0x626d74

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	if ((input && input->comp_mask) || size < sizeof(attr->orig_attr))
		return EINVAL;
	memset(attr, 0, size);
	return ibv_query_device(context, &attr->orig_attr);
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t size)
{
	struct sv_device *dev = sv_device_of(context->device);
	struct ibv_port_attr a = {
		.state = dev->removed ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = (int)dev->nnets,
		.max_msg_sz = SV_MAX_MSG,
		.pkey_tbl_len = 1,
		.lid = (uint16_t)(dev->index + 1),
		.sm_lid = 1,
		.max_vl_num = 1,
		.active_width = 2,
		.active_speed = 32,
		.phys_state = dev->removed ? 3 : 5,
		.link_layer = dev->iwarp ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND,
	};

	if (port != 1)
		return EINVAL;
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* Programs built before 2017 have a shorter structure, which ends with the link layer and one byte
 * of flags. */
SV_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port,
			     struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, flags) + 1);
}

SV_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct sv_device *dev = sv_device_of(context->device);

	*attr = (struct ibv_device_attr){
		.node_guid = ibv_get_device_guid(context->device),
		.sys_image_guid = ibv_get_device_guid(context->device),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.vendor_id = dev->siw ? SIW_VENDOR : VENDOR,
		.vendor_part_id = dev->siw ? 0 : dev->index,
		.max_qp = SV_QPS - 2,
		.max_qp_wr = SV_MAX_WR,
		.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_RC_RNR_NAK_GEN,
		.max_sge = SV_MAX_SGE,
		.max_sge_rd = dev->iwarp ? 1 : SV_MAX_SGE,
		.max_cq = 2 * SV_QPS,
		.max_cqe = SV_MAX_CQE,
		.max_mr = SV_MAX_MR - 1,
		.max_pd = 1 << 16,
		.max_qp_rd_atom = SV_MAX_RD_ATOMIC,
		.max_res_rd_atom = SV_MAX_RD_ATOMIC * SV_QPS,
		.max_qp_init_rd_atom = SV_MAX_RD_ATOMIC,
		.atomic_cap = dev->iwarp ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA,
		.max_srq = SV_QPS,
		.max_srq_wr = SV_MAX_WR,
		.max_srq_sge = SV_MAX_SGE,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = 1,
	};
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "0.softverbs");
	return 0;
}

static int gid_entry(struct ibv_context *context, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *e)
{
	struct sv_device *dev = sv_device_of(context->device);
	struct sockaddr_storage ss;

	if (port != 1 || index >= dev->nnets)
		return EINVAL;
	memset(e, 0, sizeof(*e));
	e->gid_index = index;
	e->port_num = port;
	e->gid_type = dev->iwarp ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_IB;
	e->ndev_ifindex = 1;
	if (sv_device_addr(dev, AF_INET, &ss) == 0 && dev->net[index].addr.ss_family == AF_INET) {
		e->gid.raw[10] = e->gid.raw[11] = 0xff;
		memcpy(e->gid.raw + 12, &((struct sockaddr_in *)&ss)->sin_addr, 4);
	} else {
		const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&dev->net[index].addr;
		memcpy(e->gid.raw, &in6->sin6_addr, 16);
	}
	return 0;
}

SV_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
			    union ibv_gid *gid)
{
	struct ibv_gid_entry e;

	if (index < 0 || gid_entry(context, port, (uint32_t)index, &e) != 0) {
		errno = EINVAL;
		return -1;
	}
	*gid = e.gid;
	return 0;
}

SV_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
				struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct ibv_gid_entry e;
	int err = flags ? EINVAL : gid_entry(context, port, index, &e);

	if (!err)
		memcpy(entry, &e, size < sizeof(e) ? size : sizeof(e));
	return err;
}

SV_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				       size_t max, uint32_t flags, size_t size)
{
	size_t n = sv_device_of(context->device)->nnets;

	if (n > max)
		n = max;
	for (size_t i = 0; i < n; i++) {
		void *to = (char *)entries + i * size;
		int err = _ibv_query_gid_ex(context, 1, (uint32_t)i, to, flags, size);
		if (err)
			return -err;
	}
	return (ssize_t)n;
}

/* The private name of the libraries' own tools: 0 InfiniBand or RoCE 1, 1 RoCE 2. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type);
SV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index,
				 unsigned *type)
{
	struct ibv_gid_entry e;
	int err = gid_entry(context, port, index, &e);

	*type = 0;
	errno = err;
	return err ? -1 : 0;
}

SV_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(0xffff);
	return 0;
}

SV_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	(void)context;
	return port == 1 && pkey == htobe16(0xffff) ? 0 : -1;
}

static void set_ops(struct verbs_context *v)
{
	v->sz = sizeof(*v);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->query_port = query_port;
	v->query_device_ex = query_device_ex;
	v->create_qp_ex = sv_create_qp_ex;
	v->context.ops.poll_cq = sv_poll_cq;
	v->context.ops.req_notify_cq = sv_req_notify_cq;
	v->context.ops.post_send = sv_post_send;
	v->context.ops.post_recv = sv_post_recv;
	v->context.ops.post_srq_recv = sv_post_srq_recv;
}

SV_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct sv_device *dev = sv_device_of(device);
	struct sv_context *ctx = dev->removed ? NULL : calloc(1, sizeof(*ctx));

	if (!ctx || sv_events_init(&ctx->async) < 0) {
		errno = ctx ? errno : dev->removed ? ENODEV : ENOMEM;
		free(ctx);
		return NULL;
	}
	ctx->dev = dev;
	ctx->vctx.context.device = device;
	ctx->vctx.context.cmd_fd = -1;
	ctx->vctx.context.async_fd = ctx->async.fd;
	ctx->vctx.context.num_comp_vectors = COMP_VECTORS;
	pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
	set_ops(&ctx->vctx);
	sv_lock();
	LIST_INSERT_HEAD(&dev->contexts, ctx, link);
	sv_unlock();
	return &ctx->vctx.context;
}

SV_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct sv_context *ctx = sv_context_of(context);

	sv_lock();
	LIST_REMOVE(ctx, link);
	sv_unlock();
	sv_events_destroy(&ctx->async);
	pthread_mutex_destroy(&context->mutex);
	free(ctx);
	return 0;
}
