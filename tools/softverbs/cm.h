/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager of the fabric: what stands in for librdmacm. Its manners follow the
 * library's manual pages and what can be seen of the kernel: five messages (request, reply, ready
 * to use, reject, disconnect and its answer) go over the link between two processes.
 *
 * The state of an id is changed under the fabric's lock. Queue pairs are moved, as librdmacm does,
 * by the thread that takes the event or calls rdma_accept(), never by the engine, and with the lock
 * free. The public struct rdma_cm_id belongs to the application's threads.
 *
 * Functions return 0 or -errno; entry points -1 and errno (cm_result).
 */
#ifndef SV_CM_H
#define SV_CM_H

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tools/softverbs/event_queue.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/sv_device.h"

#define CM_NO_SLOT 0xffffffffu
#define CM_PRIVATE_MAX 255u /* limit of the API, whose length is one byte */
#define CM_BACKLOG_MAX 1024
#define CM_DREQ_TIMEOUT_US 4000000u /* wait for the peer's answer to a disconnect */
#define CM_TIMEWAIT_US 1000000u

/* Limits of private data for each transport. On InfiniBand the limit is a fixed size: the receiver
 * always sees that many bytes, padded with zeros. */
#define CM_IB_REQ_DATA 56u
#define CM_IB_REP_DATA 196u
#define CM_IB_REJ_DATA 148u
#define CM_IWARP_DATA 512u

/* Reasons of InfiniBand's reject message that programs see as the status of the event. */
#define CM_REJ_INVALID_SERVICE 8
#define CM_REJ_CONSUMER 28

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_LISTENING,
	CM_REQ_SENT, /* active */
	CM_REP_RCVD,
	CM_REQ_RCVD, /* passive */
	CM_REP_SENT,
	CM_CONNECTED,
	CM_DREQ_SENT, /* this side disconnects first */
	/* The peer disconnects first; answered by rdma_disconnect() or the end of the id */
	CM_DREQ_RCVD,
	CM_CLOSED,
};

enum cm_type { CM_REQ = 1, CM_REP, CM_RTU, CM_REJ, CM_DREQ, CM_DREP };

union cm_addr {
	struct sockaddr sa;
	struct sockaddr_in sin;
	struct sockaddr_in6 sin6;
};

/* Message of the connection manager, for all types. Fields that a type does not use are zero. */
struct cm_msg {
	uint32_t from; /* the sender's id */
	uint32_t to;   /* the receiver's id, 0 if not known yet; in a request the listener's */
	uint32_t qpn;
	int32_t status; /* status of the reject event */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t iwarp;
	uint8_t private_len;
	union cm_addr src;
	union cm_addr dst;
	uint8_t private_data[CM_PRIVATE_MAX];
};

/* A device as librdmacm shows it: one context and one default protection domain, never closed. */
struct cm_device {
	struct sv_device *dev;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	uint8_t max_responder_resources;
	uint8_t max_initiator_depth;
	enum ibv_mtu mtu;
};

struct cm_channel {
	struct rdma_event_channel pub; /* first */
	struct sv_event_queue queue;
};

struct cm_id {
	struct rdma_cm_id pub; /* first */
	LIST_ENTRY(cm_id) link;
	uint32_t number; /* key of sv_cm.ids; never 0, not reused soon */
	enum cm_state state;
	bool sync; /* true: the id has its own channel, and calls wait for their events */
	bool reuse_addr;
	bool af_only, af_only_set;
	uint32_t port; /* entry of the port table: record + 1, 0 for none */
	struct cm_device *device;
	/* listener */
	int backlog;
	/* Connection requests in the channel that are not taken yet. */
	int requests;
	/* Set by rdma_create_ep(): attributes for the ids of its requests. */
	struct ibv_qp_init_attr *qp_init;
	/* connection */
	uint32_t listener; /* number of the listener while the request is not taken; else 0 */
	uint32_t peer_slot;
	uint32_t peer_number;
	uint32_t peer_qpn;
	uint32_t qpn; /* the id's own queue pair, once connected */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count; /* values that the peer asked for */
	bool disconnected;		      /* true once the disconnected event is posted */
	/* Set by rdma_create_ep(): data to put before the private data of the request. */
	uint8_t *connect_data;
	size_t connect_len;
	struct cm_msg *request; /* request that waits for a listener; NULL if none */
	uint64_t patience;	/* end of the wait for a listener, sv_now() time */
	struct sv_timer timer;
	/* events; guarded by the root's ack_lock */
	unsigned posted, acked;
};

struct cm_event {
	struct rdma_cm_event pub; /* first */
	struct cm_id *owner;	  /* id whose event counts include this event */
	uint8_t private_data[CM_PRIVATE_MAX];
};

LIST_HEAD(cm_ids, cm_id);
#define CM_BUCKETS 4096u

struct sv_cm {
	struct cm_ids ids[CM_BUCKETS]; /* hash table by cm_id.number */
	uint32_t next_number;
	struct cm_port_file *ports;
	int ports_fd;
	pthread_mutex_t device_lock; /* guards devices; taken while the fabric's lock is free */
	struct cm_device devices[32];
	unsigned ndevices;
	pthread_mutex_t ack_lock; /* guards the event counts; no other lock is taken inside it */
	pthread_cond_t acked;
};

/* cm_root.c */
int cm_open(void); /* opens the fabric; called first by every entry point that makes an object */
struct sv_cm *cm_root(void);
static inline int cm_result(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}
static inline struct cm_id *cm_id_of(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}
static inline bool cm_iwarp(const struct cm_id *c)
{
	return c->device && c->device->dev->iwarp;
}

/* cm_device.c: called without the lock. Opens the device at its first use. */
int cm_device_get(struct sv_device *dev, struct cm_device **out);
int cm_bind_device(struct cm_id *c, struct sv_device *dev); /* sets verbs, pd, port_num */

/* cm_sockaddr.c */
int cm_addr_copy(union cm_addr *to, const struct sockaddr *from); /* -EINVAL, -EAFNOSUPPORT */
bool cm_addr_any(const union cm_addr *a);
bool cm_addr_same(const union cm_addr *a, const union cm_addr *b); /* family and address */
uint16_t cm_addr_port(const union cm_addr *a);			   /* host order */
void cm_addr_set_port(union cm_addr *a, uint16_t port);
size_t cm_addr_len(const union cm_addr *a);
static inline union cm_addr *cm_src(struct cm_id *c)
{
	return (union cm_addr *)&c->pub.route.addr.src_storage;
}
static inline union cm_addr *cm_dst(struct cm_id *c)
{
	return (union cm_addr *)&c->pub.route.addr.dst_storage;
}

/* cm_port.c: the table of ports of all processes, with the lock held. */
int cm_port_open(struct sv_cm *cm);
void cm_port_close(struct sv_cm *cm);
int cm_port_bind(struct cm_id *c); /* binds the source address; picks a port if it is 0 */
int cm_port_listen(struct cm_id *c);
void cm_port_release(struct cm_id *c);
int cm_port_lookup(const union cm_addr *dst, uint32_t *slot, uint32_t *number);

/* cm_id.c: with the lock held */
struct cm_id *cm_id_new(struct cm_channel *ch, void *context);
struct cm_id *cm_id_find(uint32_t number);
struct cm_id *cm_id_find_peer(uint32_t slot, uint32_t peer_number);
void cm_id_free(struct cm_id *c); /* requires that no events are left; does not free the channel */

/* cm_event.c */
int cm_post(struct cm_id *c, enum rdma_cm_event_type type, int status, const struct cm_msg *m);
void cm_drop_events(struct cm_id *c); /* also destroys the requests among them */
void cm_wait_acks(struct cm_id *c);   /* called without the lock */
int cm_complete(struct cm_id *c); /* synchronous id: waits for its event; called without the lock */
struct rdma_event_channel *cm_channel_new(void);

/* cm_message.c: with the lock held. Messages to the peer about the state of an id. */
int cm_send(struct cm_id *c, enum cm_type type, struct cm_msg *m);
unsigned cm_private_max(bool iwarp, enum cm_type type);
void cm_part(struct cm_id *c); /* tells the peer that the id ends */
void cm_timewait(struct cm_id *c);

/* cm_qp.c: without the lock */
int cm_qp_connect(struct cm_id *c); /* moves the queue pair to INIT, RTR and RTS */
int cm_qp_error(struct cm_id *c);

#endif
