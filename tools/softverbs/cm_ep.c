/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: an id, resolved or bound, with its queue pair, that works synchronously. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_verbs.h>

#include "tools/softverbs/cm.h"

#define RESOLVE_MS 2000

static int make_passive(struct cm_id *c, struct rdma_addrinfo *res, struct ibv_pd *pd,
			struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&c->pub, res->ai_src_addr) < 0)
		return -1;
	if (!attr)
		return 0;
	c->qp_init = malloc(sizeof(*attr));
	if (!c->qp_init)
		return cm_result(-ENOMEM);
	*c->qp_init = *attr;
	c->qp_init->qp_type = res->ai_qp_type;
	c->pub.pd = pd;
	return 0;
}

static int make_active(struct cm_id *c, struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&c->pub, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) < 0 ||
	    rdma_resolve_route(&c->pub, RESOLVE_MS) < 0)
		return -1;
	if (attr) {
		attr->qp_type = res->ai_qp_type;
		if (rdma_create_qp(&c->pub, pd, attr) < 0)
			return -1;
	}
	if (!res->ai_connect_len || !res->ai_connect)
		return 0;
	c->connect_data = malloc(res->ai_connect_len);
	if (!c->connect_data)
		return cm_result(-ENOMEM);
	memcpy(c->connect_data, res->ai_connect, res->ai_connect_len);
	c->connect_len = res->ai_connect_len;
	return 0;
}

SV_EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *new_id;
	int err;

	if (rdma_create_id(NULL, &new_id, NULL, res->ai_port_space) < 0)
		return -1;
	if (res->ai_flags & RAI_PASSIVE)
		err = make_passive(cm_id_of(new_id), res, pd, qp_init_attr);
	else
		err = make_active(cm_id_of(new_id), res, pd, qp_init_attr);
	if (err) {
		err = -errno;
		rdma_destroy_ep(new_id);
		return cm_result(err);
	}
	*id = new_id;
	return 0;
}

SV_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

static int check_request(struct cm_id *listener, struct rdma_cm_event *ev)
{
	struct ibv_qp_init_attr attr;

	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return -EINVAL;
	if (!listener->qp_init)
		return 0;
	attr = *listener->qp_init;
	return rdma_create_qp(ev->id, listener->pub.pd, &attr) < 0 ? -errno : 0;
}

SV_EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct cm_id *listener = cm_id_of(listen);
	struct rdma_cm_event *ev;

	if (!listener->sync)
		return cm_result(-EPERM);
	if (listen->event)
		rdma_ack_cm_event(listen->event);
	listen->event = NULL;
	if (rdma_get_cm_event(listen->channel, &ev) < 0)
		return -1;
	int err = ev->status ? (ev->status < 0 ? ev->status : -ev->status)
			     : check_request(listener, ev);
	if (err) {
		listen->event = ev;
		return cm_result(err);
	}
	*id = ev->id;
	(*id)->event = ev;
	return 0;
}
