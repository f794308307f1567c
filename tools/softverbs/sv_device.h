/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices: by default one, sv0, which owns 127.0.0.0/8 and ::1. SOFTVERBS_DEVICES names others:
 *   sv0=127.0.0.1,::1 sv1=127.0.0.2/32:iwarp sv2=127.0.0.3:siw
 * A device is never freed; a removed one is no longer listed, and its queue pairs are in error.
 */
#ifndef SV_DEVICE_H
#define SV_DEVICE_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "tools/softverbs/event_queue.h"

#define SV_DEVICE_ADDRS 8
#define SV_MAX_SGE 32
#define SV_MAX_WR 32768
#define SV_MAX_CQE 4194303
#define SV_MAX_INLINE 1024
#define SV_MAX_RD_ATOMIC 128
#define SV_MAX_MSG 0x40000000u
#define SV_MAX_MR 0x800000u

struct sv_net {
	struct sockaddr_storage addr;
	unsigned prefix; /* bits */
};

struct sv_context {
	LIST_ENTRY(sv_context) link;
	struct sv_event_queue async;
	struct sv_device *dev;
	unsigned users;		   /* protection domains, completion queues, channels */
	struct verbs_context vctx; /* last, as it ends with the application's struct ibv_context */
};

struct sv_device {
	struct ibv_device ibv; /* first: the application's view */
	TAILQ_ENTRY(sv_device) link;
	unsigned index;
	bool iwarp;
	bool siw; /* iWARP that takes a Read into memory without remote rights, as siw does */
	bool removed;
	struct sv_net net[SV_DEVICE_ADDRS];
	unsigned nnets;
	LIST_HEAD(sv_contexts, sv_context) contexts;
};

static inline struct sv_device *sv_device_of(struct ibv_device *d)
{
	return (struct sv_device *)d;
}

static inline struct sv_context *sv_context_of(struct ibv_context *c)
{
	return (struct sv_context *)((char *)c - offsetof(struct sv_context, vctx.context));
}

/* Rights that the sink of an RDMA Read needs on this device: hardware of iWARP places the answer as
 * it places a peer's Write (RFC 5040). */
static inline unsigned sv_sink_access(const struct sv_device *dev)
{
	return IBV_ACCESS_LOCAL_WRITE | (dev->iwarp && !dev->siw ? IBV_ACCESS_REMOTE_WRITE : 0);
}

/* Makes the devices of SOFTVERBS_DEVICES, when the fabric is opened. */
int sv_devices_init(void);

/* Finds the present device that owns the address; NULL if none does (a wildcard address has no
 * owner). Port and scope are ignored. */
struct sv_device *sv_device_for_addr(const struct sockaddr *addr);

/* Stores the device's first address of the family, with port 0; -EADDRNOTAVAIL if it has none. */
int sv_device_addr(const struct sv_device *dev, int family, struct sockaddr_storage *out);

/* The fault "device removed": raises errors and events for all objects of the device. Lock held. */
void sv_devices_plug(void); /* makes absent devices present, unless they are open */
void sv_device_remove(struct sv_device *dev);

/* Posts an asynchronous event of the context. The lock may be held or not. */
void sv_async(struct sv_context *ctx, enum ibv_event_type type, void *object);

#endif
