/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous copies (RFC 7862 section 4): all that a server has. A copy is named by a copy stateid
 * from COPY's reply until its client has been told the result by CB_OFFLOAD, has cancelled it, or
 * is gone. If the client cannot be told, the result is kept for a lease, for OFFLOAD_STATUS; so is that of
 * the last copies whose clients have been told, as an OFFLOAD_STATUS may cross CB_OFFLOAD.
 *
 * Copies have a table of their own: they are no state of a file that others could conflict with, no
 * CLOSE, LOCK or reclaim meets them, and their number is small. Their stateids have the form of all
 * others, so nobody can make one up, and each names its client.
 */
#ifndef RN_NFS4_DATA_NFS4_COPIES_H
#define RN_NFS4_DATA_NFS4_COPIES_H

#include <stdbool.h>
#include <stdint.h>

struct image_at;
struct image_writer;
struct nfs4_client;
struct nfs4_compound;
struct nfs4_copies;
struct nfs4_held;
struct nfs4_server;
struct nfs4_stateid;

#define NFS4_COPIES_MAX 64u	/* in all; a COPY beyond that is synchronous */
#define NFS4_COPIES_OF_HOST 16u /* of the clients of one host */

/* Sets srv->copies. 0 or -errno. */
int nfs4_copies_new(struct nfs4_server *srv);
/* No piece and no callback may be under way. NULL is allowed. */
void nfs4_copies_free(struct nfs4_copies *all);

/* From nfs4_tick: goes on with copies that had to pause, tells clients that could not be told, and
 * forgets results that were kept for a lease. */
void nfs4_copies_tick(struct nfs4_copies *all);

/* Lets no piece begin any more, so that copies can be handed over, and waits for a moment for pieces and callbacks under way. False:
 * some pieces take too long. Not on a worker. */
bool nfs4_copies_rest(struct nfs4_copies *all);
/* A client's copies, those that have ended not long ago, and the last number of a copy, in the image of the state
 * (nfs4/data/copies_image.c). load: takes a record of kind NFS4_IMAGE_COPY or NFS4_IMAGE_COPY_TOLD; 0, -EPROTO, -ENOMEM. */
void nfs4_copies_save(struct nfs4_client *cl, struct image_writer *w);
int nfs4_copy_load(struct nfs4_client *cl, struct image_at *at);
void nfs4_copies_save_told(struct nfs4_copies *all, struct image_writer *w);
int nfs4_copies_load_told(struct nfs4_copies *all, struct image_at *at);

/* Ends all copies, and waits for the pieces under way; none begins any more. Not on a worker. */
void nfs4_copies_stop(struct nfs4_copies *all);

/* Fills copies, copies_begun, copies_cancelled, copied_bytes. */
void nfs4_copies_held(struct nfs4_copies *all, struct nfs4_held *out);

/* True if c's client has the stateid from COPY or COPY_NOTIFY; for TEST_STATEID. */
bool nfs4_copies_know(struct nfs4_compound *c, const struct nfs4_stateid *sid);

#endif
