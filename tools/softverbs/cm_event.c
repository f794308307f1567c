/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels. An event is counted for its id when it is posted, and again when it is
 * acknowledged or dropped. The id lives until the two counts agree. The thread that takes an event
 * also changes the queue pair's state, as in librdmacm.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cm.h"

struct rdma_event_channel *cm_channel_new(void)
{
	struct cm_channel *ch = calloc(1, sizeof(*ch));
	int err = ch ? sv_events_init(&ch->queue) : -ENOMEM;

	if (err) {
		free(ch);
		errno = -err;
		return NULL;
	}
	ch->pub.fd = ch->queue.fd;
	return &ch->pub;
}

SV_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	int err = cm_open();

	if (err) {
		errno = -err;
		return NULL;
	}
	return cm_channel_new();
}

SV_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct cm_channel *ch = (struct cm_channel *)channel;

	sv_events_destroy(&ch->queue);
	free(ch);
}

static void cm_count_acks(unsigned *what, unsigned n)
{
	struct sv_cm *cm = cm_root();

	pthread_mutex_lock(&cm->ack_lock);
	*what += n;
	pthread_cond_broadcast(&cm->acked);
	pthread_mutex_unlock(&cm->ack_lock);
}

void cm_wait_acks(struct cm_id *c)
{
	struct sv_cm *cm = cm_root();

	pthread_mutex_lock(&cm->ack_lock);
	while (c->acked != c->posted)
		pthread_cond_wait(&cm->acked, &cm->ack_lock);
	pthread_mutex_unlock(&cm->ack_lock);
}

static void set_param(struct cm_event *e, const struct cm_msg *m, enum cm_type type)
{
	struct rdma_conn_param *p = &e->pub.param.conn;
	unsigned fixed = cm_private_max(false, type);

	p->private_data_len = m->iwarp ? m->private_len : fixed;
	if (p->private_data_len) {
		memcpy(e->private_data, m->private_data, m->private_len);
		p->private_data = e->private_data;
	}
	if (type == CM_REJ)
		return;
	/* The depths are swapped, because each end names its own side: responder_resources limits
	 * the peer's Reads here, initiator_depth the Reads from here. */
	p->responder_resources = m->initiator_depth;
	p->initiator_depth = m->responder_resources;
	p->flow_control = m->flow_control;
	p->retry_count = type == CM_REQ ? m->retry_count : 0;
	p->rnr_retry_count = m->rnr_retry_count;
	p->srq = m->srq;
	p->qp_num = m->qpn;
}

static enum cm_type message_of(enum rdma_cm_event_type type)
{
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		return CM_REQ;
	return type == RDMA_CM_EVENT_REJECTED ? CM_REJ : CM_REP;
}

/* A connection request is an event of the new id, but is counted for its listener. */
int cm_post(struct cm_id *c, enum rdma_cm_event_type type, int status, const struct cm_msg *m)
{
	bool request = type == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct cm_id *owner = request ? cm_id_find(c->listener) : c;
	struct cm_event *e = calloc(1, sizeof(*e));

	if (!e || !owner) {
		free(e);
		return -ENOMEM;
	}
	e->owner = owner;
	e->pub.id = &c->pub;
	e->pub.listen_id = request ? &owner->pub : NULL;
	e->pub.event = type;
	e->pub.status = status;
	if (m)
		set_param(e, m, message_of(type));
	cm_count_acks(&owner->posted, 1);
	int err = sv_events_push(&((struct cm_channel *)owner->pub.channel)->queue, owner, &e,
				 sizeof(e));
	if (err) {
		cm_count_acks(&owner->acked, 1);
		free(e);
	}
	return err;
}

static void event_gone(void *data)
{
	struct cm_event *e;

	memcpy(&e, data, sizeof(e));
	if (e->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct cm_id *child = cm_id_of(e->pub.id);
		LIST_REMOVE(child, link);
		child->listener = 0;
		cm_part(child);
		cm_id_free(child);
	}
	cm_count_acks(&e->owner->acked, 1);
	free(e);
}

void cm_drop_events(struct cm_id *c)
{
	sv_events_drop(&((struct cm_channel *)c->pub.channel)->queue, c, event_gone);
}

/* Completes the client's end of the handshake. For an id without a queue pair the application does
 * that with rdma_establish(). */
static void cm_on_connect_response(struct cm_event *e)
{
	struct cm_id *c = e->owner;
	struct cm_msg m = { 0 };

	if (!c->pub.qp)
		return;
	int err = cm_qp_connect(c);
	sv_lock();
	if (c->state == CM_REP_RCVD) {
		m.status = CM_REJ_CONSUMER;
		c->state = err ? CM_CLOSED : CM_CONNECTED;
		cm_send(c, err ? CM_REJ : CM_RTU, &m);
	}
	sv_unlock();
	e->pub.event = err ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	e->pub.status = err;
	if (err)
		cm_qp_error(c);
}

/* The new id becomes the application's. */
static int cm_on_connect_request(struct cm_event *e)
{
	struct cm_id *listener = e->owner, *c = cm_id_of(e->pub.id);

	sv_lock();
	c->listener = 0;
	listener->requests--;
	struct sv_device *dev = sv_device_for_addr(&cm_src(c)->sa);
	sv_unlock();
	int err = dev ? cm_bind_device(c, dev) : -ENODEV;
	if (!err && listener->sync && rdma_migrate_id(&c->pub, NULL) < 0)
		err = -errno;
	if (err) {
		/* Rejects the client; the application gets no event. */
		rdma_destroy_id(&c->pub);
		cm_count_acks(&listener->acked, 1);
		free(e);
	}
	return err;
}

SV_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct cm_channel *ch = (struct cm_channel *)channel;
	struct cm_event *e;

	if (!event)
		return cm_result(-EINVAL);
	do {
		if (sv_events_pop(&ch->queue, &e, sizeof(e), NULL) < 0)
			return -1;
	} while (e->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST && cm_on_connect_request(e) < 0);
	if (e->pub.event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		cm_on_connect_response(e);
	else if (e->pub.event == RDMA_CM_EVENT_REJECTED)
		cm_qp_error(e->owner);
	*event = &e->pub;
	return 0;
}

SV_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct cm_event *e = (struct cm_event *)event;

	if (!event)
		return cm_result(-EINVAL);
	struct cm_id *owner = e->owner;
	free(e);
	cm_count_acks(&owner->acked, 1);
	return 0;
}

int cm_complete(struct cm_id *c)
{
	if (!c->sync)
		return 0;
	if (c->pub.event)
		rdma_ack_cm_event(c->pub.event);
	c->pub.event = NULL;
	if (rdma_get_cm_event(c->pub.channel, &c->pub.event) < 0)
		return -errno;
	int status = c->pub.event->status;
	if (!status)
		return 0;
	if (c->pub.event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return status < 0 ? status : -status;
}

SV_EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(e) [e] = #e
	static const char *const names[] = {
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),   NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),  NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST), NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),   NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),	     NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),    NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),  NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),     NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
	};
#undef NAME
	if ((unsigned)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}
