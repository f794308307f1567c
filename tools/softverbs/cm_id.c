/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates, finds and destroys ids, moves them between channels and sets their options. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cm.h"

static struct cm_ids *cm_id_bucket(uint32_t number)
{
	return &cm_root()->ids[number % CM_BUCKETS];
}

struct cm_id *cm_id_find(uint32_t number)
{
	struct cm_id *c;

	if (!number)
		return NULL;
	LIST_FOREACH (c, cm_id_bucket(number), link)
		if (c->number == number)
			return c;
	return NULL;
}

struct cm_id *cm_id_find_peer(uint32_t slot, uint32_t peer_number)
{
	struct cm_id *c;

	for (unsigned i = 0; i < CM_BUCKETS; i++)
		LIST_FOREACH (c, &cm_root()->ids[i], link)
			if (c->peer_slot == slot && c->peer_number == peer_number)
				return c;
	return NULL;
}

struct cm_id *cm_id_new(struct cm_channel *ch, void *context)
{
	struct sv_cm *cm = cm_root();
	struct cm_id *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	do {
		c->number = cm->next_number++;
	} while (!c->number || cm_id_find(c->number));
	c->pub.channel = ch ? &ch->pub : NULL;
	c->pub.context = context;
	c->pub.ps = RDMA_PS_TCP;
	c->pub.qp_type = IBV_QPT_RC;
	c->peer_slot = CM_NO_SLOT;
	LIST_INSERT_HEAD(cm_id_bucket(c->number), c, link);
	return c;
}

void cm_id_free(struct cm_id *c)
{
	free(c->pub.route.path_rec);
	free(c->qp_init);
	free(c->connect_data);
	free(c->request);
	free(c);
}

SV_EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
			     void *context, enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	int err = cm_open();

	if (err)
		return cm_result(err);
	if (ps != RDMA_PS_TCP)
		return cm_result(-EPROTONOSUPPORT);
	if (!channel) {
		own = channel = cm_channel_new();
		if (!own)
			return -1;
	}
	sv_lock();
	struct cm_id *c = cm_id_new((struct cm_channel *)channel, context);
	sv_unlock();
	if (!c) {
		if (own)
			rdma_destroy_event_channel(own);
		return cm_result(-ENOMEM);
	}
	c->sync = own != NULL;
	*id = &c->pub;
	return 0;
}

SV_EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct cm_id *c = cm_id_of(id);

	if (id->event)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
	sv_lock();
	LIST_REMOVE(c, link); /* after this the engine cannot find the id */
	sv_timer_stop(&c->timer);
	cm_port_release(c);
	cm_drop_events(c);
	cm_part(c);
	sv_unlock();
	cm_wait_acks(c);
	if (c->sync)
		rdma_destroy_event_channel(id->channel);
	cm_id_free(c);
	return 0;
}

SV_EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct cm_id *c = cm_id_of(id);
	struct rdma_event_channel *old = id->channel;
	bool was_sync = c->sync, sync = !channel;

	if (was_sync && !sync && id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	if (sync && !(channel = cm_channel_new()))
		return -1;
	sv_lock();
	sv_events_move(&((struct cm_channel *)old)->queue, c,
		       &((struct cm_channel *)channel)->queue);
	id->channel = channel;
	c->sync = sync;
	sv_unlock();
	if (was_sync)
		rdma_destroy_event_channel(old);
	return 0;
}

static int get_number(const void *optval, size_t optlen, size_t want, int *out)
{
	if (optlen != want || !optval)
		return -EINVAL;
	if (want == sizeof(int))
		memcpy(out, optval, sizeof(int));
	else
		*out = *(const uint8_t *)optval;
	return 0;
}

static int set_option(struct cm_id *c, int optname, const void *optval, size_t optlen)
{
	int value, err;

	switch (optname) {
	case RDMA_OPTION_ID_TOS:
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return get_number(optval, optlen, sizeof(uint8_t), &value);
	case RDMA_OPTION_ID_REUSEADDR:
		err = get_number(optval, optlen, sizeof(int), &value);
		if (!err && c->state != CM_IDLE && !value)
			err = -EINVAL;
		if (!err)
			c->reuse_addr = value;
		return err;
	case RDMA_OPTION_ID_AFONLY:
		err = get_number(optval, optlen, sizeof(int), &value);
		if (!err && c->state != CM_IDLE)
			err = -EINVAL;
		if (!err) {
			c->af_only = value;
			c->af_only_set = true;
		}
		return err;
	default:
		return -ENOSYS;
	}
}

SV_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
			      size_t optlen)
{
	if (level != RDMA_OPTION_ID)
		return cm_result(-ENOSYS);
	sv_lock();
	int err = set_option(cm_id_of(id), optname, optval, optlen);
	sv_unlock();
	return cm_result(err);
}

SV_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return cm_src(cm_id_of(id))->sin.sin_port;
}

SV_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return cm_dst(cm_id_of(id))->sin.sin_port;
}
