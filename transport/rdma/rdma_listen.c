/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners. One on a wildcard address serves every device, also those plugged in later. The timer
 * opens listeners that could not be opened, or that were lost with their device or address. */
#include "transport/rdma/rdma_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/rdma/rdma_device.h"
#include "transport/rdma/rdma_room.h"

#define LISTEN_BACKLOG 128

/* 0 also if it is open. */
static int channel_open(struct rr_server *srv)
{
	if (srv->channel)
		return 0;
	/* librdmacm complains on standard error if the kernel has no connection manager, so look
	 * first. */
	if (access("/dev/infiniband/rdma_cm", R_OK | W_OK) < 0)
		return -ENODEV;
	srv->channel = rdma_create_event_channel();
	if (!srv->channel)
		return -ENODEV;
	int flags = fcntl(srv->channel->fd, F_GETFL);
	fcntl(srv->channel->fd, F_SETFL, flags | O_NONBLOCK);
	srv->channel_ev = event_new(srv->cfg.loops[0]->base, srv->channel->fd, EV_READ | EV_PERSIST,
				    srv->on_cm_events, srv);
	if (srv->channel_ev && event_add(srv->channel_ev, NULL) == 0)
		return 0;
	if (srv->channel_ev)
		event_free(srv->channel_ev);
	rdma_destroy_event_channel(srv->channel);
	srv->channel_ev = NULL;
	srv->channel = NULL;
	return -ENOMEM;
}

static int rr_bind_and_listen(struct rdma_cm_id *id, struct rr_listener *l)
{
	int one = 1;

	rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one));
	/* Each family has its own listener on the same port. */
	if (l->addr.ss_family == AF_INET6 &&
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)) < 0)
		return -errno;
	if (rdma_bind_addr(id, (struct sockaddr *)&l->addr) < 0 ||
	    rdma_listen(id, LISTEN_BACKLOG) < 0)
		return -errno;
	return 0;
}

int rr_listener_open(struct rr_server *srv, struct rr_listener *l)
{
	struct rdma_cm_id *id;
	int rc = channel_open(srv);

	if (rc)
		return rc;
	if (rdma_create_id(srv->channel, &id, NULL, RDMA_PS_TCP) < 0)
		return -errno;
	rc = rr_bind_and_listen(id, l);
	if (rc) {
		rdma_destroy_id(id);
		return rc;
	}
	l->id = id;
	return 0;
}

void rr_listener_close(struct rr_listener *l)
{
	if (l->id)
		rdma_destroy_id(l->id);
	l->id = NULL;
}

bool rr_device_is_there(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	return n > 0;
}

void rr_listeners_count(struct rr_server *srv)
{
	struct rr_listener *l;
	unsigned serves = 0;

	LIST_FOREACH (l, &srv->listeners, link)
		if (l->id)
			serves |= l->addr.ss_family == AF_INET6 ? RR_SERVES_IPV6 : RR_SERVES_IPV4;
	if (serves && !rr_device_is_there())
		serves = 0;
	if (serves)
		rr_room_reserve(srv);
	atomic_store(&srv->serves, serves);
}

void rr_look_after(struct rr_server *srv)
{
	struct rr_listener *l;

	if (srv->quiesced || rn_now_ns() < srv->retry_ns)
		return;
	srv->retry_ns = rn_now_ns() + RR_RETRY_SECONDS * RN_NS_PER_SECOND;
	rr_devices_check(srv);
	LIST_FOREACH (l, &srv->listeners, link)
		if (!l->id && rr_listener_open(srv, l) == 0)
			rn_notice(srv->cfg.log, "rdma: listening again on port %u",
				  ntohs(rdma_get_src_port(l->id)));
	rr_listeners_count(srv);
}
