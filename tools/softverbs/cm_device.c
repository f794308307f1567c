/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices as librdmacm shows them: opened once, for all ids of the process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cm.h"
#include "tools/softverbs/cm_hooks.h"

static uint8_t byte_max(int n)
{
	return n < 0 ? 0 : n > 255 ? 255 : n;
}

static int cm_device_open(struct cm_device *d, struct sv_device *dev)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;

	d->verbs = ibv_open_device(&dev->ibv);
	if (!d->verbs)
		return -ENODEV;
	d->pd = ibv_alloc_pd(d->verbs);
	if (!d->pd || ibv_query_device(d->verbs, &attr) || ibv_query_port(d->verbs, 1, &port)) {
		if (d->pd)
			ibv_dealloc_pd(d->pd);
		ibv_close_device(d->verbs);
		return -ENODEV;
	}
	d->dev = dev;
	d->max_responder_resources = byte_max(attr.max_qp_rd_atom);
	d->max_initiator_depth = byte_max(attr.max_qp_init_rd_atom);
	d->mtu = port.active_mtu;
	return 0;
}

int cm_device_get(struct sv_device *dev, struct cm_device **out)
{
	struct sv_cm *cm = cm_root();
	int err = 0;

	pthread_mutex_lock(&cm->device_lock);
	unsigned i = 0;
	while (i < cm->ndevices && cm->devices[i].dev != dev)
		i++;
	if (i == sizeof(cm->devices) / sizeof(cm->devices[0]))
		err = -ENODEV;
	else if (i == cm->ndevices)
		err = cm_device_open(&cm->devices[i], dev);
	if (!err && i == cm->ndevices)
		cm->ndevices++;
	*out = err ? NULL : &cm->devices[i];
	pthread_mutex_unlock(&cm->device_lock);
	return err;
}

int cm_bind_device(struct cm_id *c, struct sv_device *dev)
{
	struct cm_device *d;
	int err = cm_device_get(dev, &d);

	if (err)
		return err;
	sv_lock();
	c->device = d;
	sv_unlock();
	c->pub.verbs = d->verbs;
	c->pub.port_num = 1;
	if (!c->pub.pd)
		c->pub.pd = d->pd;
	ibv_query_gid(d->verbs, 1, 0, &c->pub.route.addr.addr.ibaddr.sgid);
	c->pub.route.addr.addr.ibaddr.pkey = 0xffff;
	return 0;
}

void sv_cm_device_removed(struct sv_device *dev)
{
	struct sv_cm *cm = cm_root();
	struct cm_id *c;

	for (unsigned i = 0; cm && i < CM_BUCKETS; i++)
		LIST_FOREACH (c, &cm->ids[i], link)
			if (c->device && c->device->dev == dev)
				cm_post(c, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL);
}

SV_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list;
	struct cm_device *d;
	int n, opened = 0;
	int err = cm_open();
	struct ibv_device **devices = err ? NULL : ibv_get_device_list(&n);

	if (num_devices)
		*num_devices = 0;
	if (!devices)
		return NULL;
	list = calloc(n + 1, sizeof(*list));
	for (int i = 0; list && i < n; i++)
		if (cm_device_get(sv_device_of(devices[i]), &d) == 0)
			list[opened++] = d->verbs;
	ibv_free_device_list(devices);
	if (num_devices)
		*num_devices = opened;
	return list;
}

SV_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
