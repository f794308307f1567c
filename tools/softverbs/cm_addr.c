/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding and resolution of addresses. The result is known at once from the table of devices, but
 * is reported as an event as librdmacm does. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cm.h"

/* Finds the device that owns a specific address; a wildcard address has none. */
static int find_device(const union cm_addr *a, struct sv_device **dev)
{
	*dev = NULL;
	if (cm_addr_any(a))
		return 0;
	sv_lock();
	*dev = sv_device_for_addr(&a->sa);
	sv_unlock();
	return *dev ? 0 : -ENODEV;
}

static int cm_bind_port(struct cm_id *c, const union cm_addr *addr)
{
	sv_lock();
	int err = c->state == CM_IDLE ? 0 : -EINVAL;
	if (!err) {
		if (!c->af_only_set)
			c->af_only = addr->sa.sa_family == AF_INET;
		memcpy(cm_src(c), addr, sizeof(*addr));
		err = cm_port_bind(c);
		if (err)
			memset(cm_src(c), 0, sizeof(*addr));
		else
			c->state = CM_BOUND;
	}
	sv_unlock();
	return err;
}

static int bind_addr(struct cm_id *c, const struct sockaddr *sa)
{
	union cm_addr addr;
	struct sv_device *dev;
	int err = cm_addr_copy(&addr, sa);

	if (!err)
		err = find_device(&addr, &dev);
	if (!err)
		err = cm_bind_port(c, &addr);
	if (!err && dev)
		err = cm_bind_device(c, dev);
	return err;
}

SV_EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return cm_result(bind_addr(cm_id_of(id), addr));
}

SV_EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct cm_id *c = cm_id_of(id);
	struct sockaddr_in any = { .sin_family = AF_INET };
	int err = 0;

	if (c->state == CM_IDLE)
		err = bind_addr(c, (struct sockaddr *)&any);
	if (err)
		return cm_result(err);
	sv_lock();
	if (c->state != CM_BOUND)
		err = -EINVAL;
	if (!err) {
		c->backlog = backlog > 0 && backlog < CM_BACKLOG_MAX ? backlog : CM_BACKLOG_MAX;
		c->state = CM_LISTENING;
		err = cm_port_listen(c);
	}
	if (err && c->state == CM_LISTENING)
		c->state = CM_BOUND;
	sv_unlock();
	return cm_result(err);
}

/* Chooses the source that the machine's routing would choose: loopback for loopback, else the
 * destination itself, which is an address of this machine. */
static void choose_source(union cm_addr *src, const union cm_addr *dst, struct sv_device *dev)
{
	union cm_addr lo = { .sin = { .sin_family = AF_INET } };

	*src = *dst;
	cm_addr_set_port(src, 0);
	if (dst->sa.sa_family != AF_INET)
		return;
	lo.sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sv_lock();
	if (sv_device_for_addr(&lo.sa) == dev)
		*src = lo;
	sv_unlock();
}

/* Replaces a wildcard destination by loopback, as the kernel does. */
static void no_wildcard(union cm_addr *dst)
{
	if (!cm_addr_any(dst))
		return;
	if (dst->sa.sa_family == AF_INET6)
		dst->sin6.sin6_addr = in6addr_loopback;
	else
		dst->sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

/* Sets the source: the address that the id is bound to, or the one that suits dst. Reports
 * -EHOSTUNREACH as an event. */
static int settle_source(struct cm_id *c, const union cm_addr *dst)
{
	union cm_addr src;
	struct sv_device *to, *from;

	if (find_device(dst, &to) < 0 || !to)
		return -EHOSTUNREACH;
	if (cm_addr_any(cm_src(c))) {
		uint16_t port = cm_addr_port(cm_src(c));
		choose_source(&src, dst, to);
		cm_addr_set_port(&src, port);
		memcpy(cm_src(c), &src, sizeof(src));
	}
	if (find_device(cm_src(c), &from) < 0 || !from)
		return -EHOSTUNREACH;
	if (from->iwarp != to->iwarp)
		return -EHOSTUNREACH;
	return c->device ? 0 : cm_bind_device(c, from);
}

static int resolve_addr(struct cm_id *c, const struct sockaddr *from, const struct sockaddr *to)
{
	union cm_addr dst, any = { 0 };
	int err = cm_addr_copy(&dst, to);

	if (err)
		return err;
	no_wildcard(&dst);
	any.sa.sa_family = dst.sa.sa_family;
	if (from && from->sa_family != dst.sa.sa_family)
		return -EINVAL;
	if (c->state == CM_IDLE)
		err = bind_addr(c, from ? from : &any.sa);
	else if (cm_src(c)->sa.sa_family != dst.sa.sa_family)
		err = -EINVAL;
	if (!err && c->state != CM_BOUND)
		err = -EINVAL;
	if (err)
		return err;
	memcpy(cm_dst(c), &dst, sizeof(dst));
	err = settle_source(c, &dst);
	sv_lock();
	if (!err)
		c->state = CM_ADDR_RESOLVED;
	err = cm_post(c, err ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, err, NULL);
	sv_unlock();
	return err;
}

SV_EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
				struct sockaddr *dst_addr, int timeout_ms)
{
	struct cm_id *c = cm_id_of(id);
	int err = resolve_addr(c, src_addr, dst_addr);

	(void)timeout_ms;
	if (!err)
		err = cm_complete(c);
	return cm_result(err);
}

static int resolve_route(struct cm_id *c)
{
	struct rdma_route *route = &c->pub.route;

	if (c->state != CM_ADDR_RESOLVED)
		return -EINVAL;
	if (!cm_iwarp(c)) {
		struct ibv_sa_path_rec *p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		route->addr.addr.ibaddr.dgid = route->addr.addr.ibaddr.sgid;
		p->sgid = p->dgid = route->addr.addr.ibaddr.sgid;
		p->pkey = 0xffff;
		p->reversible = 1;
		p->numb_path = 1;
		p->mtu = c->device->mtu;
		p->hop_limit = 1;
		route->path_rec = p;
		route->num_paths = 1;
	}
	sv_lock();
	c->state = CM_ROUTE_RESOLVED;
	int err = cm_post(c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	sv_unlock();
	return err;
}

SV_EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct cm_id *c = cm_id_of(id);
	int err = resolve_route(c);

	(void)timeout_ms;
	if (!err)
		err = cm_complete(c);
	return cm_result(err);
}
