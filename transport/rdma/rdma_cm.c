/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of the connection manager, on loops[0]. They are acknowledged at once and handed to the
 * connection's loop. The id of a connection is destroyed on this thread too, so an event never
 * meets a connection that is gone.
 */
#include "transport/rdma/rdma_cm.h"

#include <errno.h>
#include <string.h>

#include "transport/rdma/rdma_accept.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_listen.h"

#define CM_EVENTS_AT_ONCE 32 /* then other work of this loop has its turn */

static struct rr_listener *find_listener(struct rr_server *srv, const struct rdma_cm_id *id)
{
	struct rr_listener *l;

	LIST_FOREACH (l, &srv->listeners, link)
		if (l->id == id)
			return l;
	return NULL;
}

static void on_connect(struct rr_server *srv, struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->id;
	int rc = rr_accept(srv, id, &ev->param.conn);

	if (rc)
		rdma_reject(id, NULL, 0);
	rdma_ack_cm_event(ev);
	if (!rc)
		return;
	rr_count(srv, refused, 1);
	rn_debug(srv->cfg.log, "rdma: connection refused: %s", strerror(-rc));
	rdma_destroy_id(id);
}

/* The listener's device or address is gone, or has changed: opens it again, at once or by the
 * timer. */
static void on_listener_lost(struct rr_server *srv, struct rr_listener *l)
{
	rr_listener_close(l);
	if (srv->quiesced)
		return;
	int rc = rr_listener_open(srv, l);
	if (rc)
		rn_notice(srv->cfg.log, "rdma: cannot listen for now, trying again: %s",
			  strerror(-rc));
}

static unsigned conn_bits(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		return RR_EV_ESTABLISHED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return RR_EV_CLOSE | RR_EV_LOST;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return RR_EV_CLOSE;
	default:
		return 0;
	}
}

static void on_event(struct rr_server *srv, struct rdma_cm_event *ev)
{
	enum rdma_cm_event_type type = ev->event;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		on_connect(srv, ev);
		return;
	}
	struct rr_listener *l = find_listener(srv, ev->id);
	struct rr_conn *c = l ? NULL : ev->id->context;
	if (type == RDMA_CM_EVENT_DEVICE_REMOVAL || type == RDMA_CM_EVENT_ADDR_CHANGE)
		rn_notice(srv->cfg.log, "rdma: %s", rdma_event_str(type));
	rdma_ack_cm_event(ev);
	if (c && conn_bits(type))
		rr_conn_notify(c, conn_bits(type));
	if (l && (type == RDMA_CM_EVENT_DEVICE_REMOVAL || type == RDMA_CM_EVENT_ADDR_CHANGE))
		on_listener_lost(srv, l);
}

void rr_cm_ready(evutil_socket_t fd, short what, void *arg)
{
	struct rr_server *srv = arg;
	struct rdma_cm_event *ev;

	(void)fd;
	(void)what;
	for (int i = 0; i < CM_EVENTS_AT_ONCE && rdma_get_cm_event(srv->channel, &ev) == 0; i++)
		on_event(srv, ev);
}
