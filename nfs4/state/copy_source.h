/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of this server that another server may read for a copy (COPY_NOTIFY, RFC 7862 sections 4.1.2
 * and 15.3). A *copy source* is one such permission: a stateid of random bytes, the state of the
 * client that asked for it, and the address of the server that may use it. It lasts for a lease from
 * the last use, until its client cancels it, or until the state has ended.
 *
 * The memory is charged to the client that owns the state. Locks: the table's lock is outside of
 * the client's.
 */
#ifndef RN_NFS4_STATE_COPY_SOURCE_H
#define RN_NFS4_STATE_COPY_SOURCE_H

#include <netinet/in.h>
#include <stdbool.h>

#include "nfs4/stateid.h"

struct image_at;
struct image_writer;
struct nfs4_client;
struct nfs4_compound;
struct nfs4_copy_sources;
struct nfs4_object;
struct nfs4_server;
struct nfs4_state;

#define NFS4_COPY_SOURCES_MAX 1024u   /* in all; hosts share them as lib/quota.h says */
#define NFS4_COPY_SOURCES_OF_HOST 64u /* of one host's clients */

/* Sets srv->copy_sources. 0 or -ENOMEM. */
int nfs4_copy_sources_new(struct nfs4_server *srv);
void nfs4_copy_sources_free(struct nfs4_copy_sources *all); /* NULL is allowed */
/* From nfs4_tick: forgets those that have ended. */
void nfs4_copy_sources_tick(struct nfs4_copy_sources *all);
unsigned nfs4_copy_sources_count(struct nfs4_copy_sources *all);
/* A client's in the image of the state, behind the states that they are of. load: takes a record of kind NFS4_IMAGE_COPY_SOURCE; 0, -EPROTO,
 * -ENOMEM. */
void nfs4_copy_sources_save(struct nfs4_client *cl, struct image_writer *w);
int nfs4_copy_source_load(struct nfs4_client *cl, struct image_at *at);

/* Lets the server at that address (its port does not matter) read the file of st, a state of the
 * caller's for the current filehandle. NFS4_OK, or NFS4ERR_DELAY: there are too many, or no memory. */
int nfs4_copy_source_add(struct nfs4_compound *c, struct nfs4_state *st,
			 const struct sockaddr_in6 *to, struct nfs4_stateid *out);

/* The state behind the stateid of a copy source, with a reference, if the caller is the server that
 * may read the file of p by it. NULL: it is not. */
struct nfs4_state *nfs4_copy_source_use(struct nfs4_compound *c, struct nfs4_object *p,
					const struct nfs4_stateid *sid);

/* Ends one of the caller's, for the current filehandle and by the same user. False: it has none. */
bool nfs4_copy_source_cancel(struct nfs4_compound *c, const struct nfs4_stateid *sid);
/* True if the stateid is one that the caller's client has got. */
bool nfs4_copy_source_known(struct nfs4_compound *c, const struct nfs4_stateid *sid);

#endif
