/* SPDX-License-Identifier: BSD-2-Clause */
/* All clients and sessions of a server, by id and by name. */
#ifndef RN_NFS4_SESSION_REGISTRY_H
#define RN_NFS4_SESSION_REGISTRY_H

#include <stdint.h>

struct image_at;
struct image_writer;
struct nfs4_client;
struct nfs4_clients;
struct nfs4_loading;
struct nfs4_loss;
struct nfs4_compound;
struct nfs4_held;
struct nfs4_server;
struct vfs_exports_lost;

/* Sets srv->clients. 0 or -errno. */
int nfs4_clients_new(struct nfs4_server *srv);
/* No request may be running. Drops every client's state; the records stay for the next run. NULL is
 * allowed. */
void nfs4_clients_free(struct nfs4_clients *all);

/*
 * Parts of the image (nfs4/nfs4_image.c). The keys are loaded twice: before all else that the server has, as its tables go by them, and
 * when there are clients. nfs4_client_load: takes a record of a client, a session or a slot. 0; -EPROTO, -ENOMEM.
 */
void nfs4_keys_save(struct nfs4_server *srv, struct image_writer *w);
int nfs4_keys_load(struct nfs4_server *srv, struct image_at *at);
void nfs4_client_save(struct nfs4_client *cl, struct image_writer *w);
int nfs4_client_load(struct nfs4_clients *all, struct image_at *at, struct nfs4_loading *l);

/* Called at the end of a COMPOUND, with its whole result in c->out, before the reply goes: stores it for a retry, and renews
 * the client's lease. Puts c->session, c->slot and c->client, any of which may be NULL. */
void nfs4_clients_leave(struct nfs4_compound *c);

/* From nfs4_tick: handles expired leases, clients that were never confirmed, and courtesy clients
 * that have been kept long enough. */
void nfs4_clients_tick(struct nfs4_server *srv);

/* nfs4_revoke_exports and nfs4_forget_client. */
uint64_t nfs4_clients_revoke(struct nfs4_clients *all, const struct vfs_exports_lost *lost);
void nfs4_clients_count_lost(struct nfs4_clients *all, const struct vfs_exports_lost *lost,
			     void (*each)(void *ctx, const struct nfs4_loss *loss), void *ctx);
int nfs4_clients_forget_one(struct nfs4_clients *all, uint64_t clientid);

/* Fills clients, courtesy_clients, sessions, slots, cached_replies. */
void nfs4_clients_held(struct nfs4_clients *all, struct nfs4_held *out);

#endif
