/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flexible file layouts (RFC 8435) for clients of a server that is a member of a cluster: clients read and write a file at
 * another member, by the same handle. doc/design/pnfs.md has the whole.
 *
 * A layout is recalled when its data server does not run any more. A client that is told has a lease's time to return it; then it
 * is taken from the client. Layouts also end with the client's state, and with their export.
 */
#ifndef RN_NFS4_LAYOUT_LAYOUTS_H
#define RN_NFS4_LAYOUT_LAYOUTS_H

#include <sys/queue.h>

#include "nfs4/layout/data_server.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/nfs4_layout.h"

#define NFS4_LAYOUTS_MAX                                                                           \
	16384u /* of a client; more files are read and written through this server */

struct nfs4_layouts {
	_Atomic uint64_t given, taken, errors;
	uint32_t max_of_client; /* NFS4_LAYOUTS_MAX; tests lower it */
	struct rn_log_limit told_errors, told_taken;
	/* Used by the thread of nfs4_tick(). */
	TAILQ_HEAD(, nfs4_layout) recalled;		   /* each with a reference */
	uint8_t ids[NFS4_DEVICES_MAX][NFS4_DEVICEID_SIZE]; /* the devices at the last look */
	unsigned nids;
	/* Devices that are gone, oldest first: clients are told when their layouts have ended, be it by being taken. */
	struct {
		uint8_t id[NFS4_DEVICEID_SIZE];
		uint64_t tell_at; /* seconds of nfs4_clients_now() */
	} gone[NFS4_DEVICES_MAX];
	unsigned ngone;
};

/* Sets srv->layouts. 0 or -ENOMEM. */
int nfs4_layouts_new(struct nfs4_server *srv);
/* Before the clients are freed. NULL is allowed. */
void nfs4_layouts_free(struct nfs4_layouts *all);
/* From nfs4_tick. */
void nfs4_layouts_tick(struct nfs4_server *srv);
/* Fills the numbers that are layouts'. */
void nfs4_layouts_held(const struct nfs4_layouts *all, struct nfs4_held *out);

/* A client's layouts, and the devices, in the image of the state. load: takes a record of kind NFS4_IMAGE_LAYOUT or NFS4_IMAGE_DEVICE; 0,
 * -EPROTO, -ENOMEM. */
void nfs4_layouts_save(struct nfs4_client *cl, struct image_writer *w);
int nfs4_layout_load(struct nfs4_client *cl, struct image_at *at);
void nfs4_devices_save(const struct nfs4_server *srv, struct image_writer *w);
int nfs4_device_load(struct nfs4_server *srv, struct image_at *at);

/* Layouts that a walk over a client's states takes out, or has recalled: those for which pick() returns true, under the
 * client's lock. */
struct nfs4_layout_walk {
	bool (*pick)(void *arg, const struct nfs4_layout *l);
	/* Called without locks, with a reference that is the caller's. */
	void (*each)(void *arg, struct nfs4_layout *l);
	void *arg;
};
void nfs4_layouts_walk(struct nfs4_client *cl, const struct nfs4_layout_walk *w);

#endif
