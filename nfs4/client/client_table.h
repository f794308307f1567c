/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of clients and sessions, for the files of this folder.
 *
 * Two kinds of locks. all->lock orders what changes who is known: registering, confirming,
 * expiring, forgetting. Looking up by id, which every operation does, takes only the lock of one of
 * many parts, which is a leaf and held for a walk of one bucket.
 */
#ifndef RN_NFS4_CLIENT_CLIENT_TABLE_H
#define RN_NFS4_CLIENT_CLIENT_TABLE_H

#include <sodium.h>

#include "nfs4/client/client.h"
#include "nfs4/server.h"

#define OWNER_BUCKETS 8192u
#define ID_PARTS 64u
#define ID_BUCKETS 128u /* of one part */

#define COURTESY_SECONDS (24u * 3600u)
#define SERVER_ID_LEN 40u

LIST_HEAD(nfs4_client_list, nfs4_client);
LIST_HEAD(nfs4_session_list, nfs4_session);
TAILQ_HEAD(nfs4_client_queue, nfs4_client);

struct id_part {
	pthread_mutex_t lock;
	struct nfs4_client_list clients[ID_BUCKETS];
	struct nfs4_session_list sessions[ID_BUCKETS];
};

struct nfs4_clients {
	struct nfs4_server *srv;
	pthread_mutex_t lock;
	struct nfs4_hosts *hosts;
	struct nfs4_wheel wheel;
	_Atomic uint64_t skipped; /* seconds, by tests */
	_Atomic bool dropping; /* a client has expired and keeps its state until its record goes */
	uint8_t id_key[crypto_shorthash_KEYBYTES]; /* nfs4/client/ids.c's */
	uint32_t last_number;			   /* under lock, as the next */
	uint64_t refusal_logged;
	uint32_t swept;	       /* bucket of ids where the sweep goes on */
	uint32_t revoke_round; /* nfs4/client/revoke.c's: counts its walks */

	/* Clients by status, under lock; active ones are in no queue but have their timers. */
	struct nfs4_client_queue unconfirmed, courtesy, expired;
	uint32_t nunconfirmed, nactive, ncourtesy, nexpired;
	struct nfs4_client_list by_owner[OWNER_BUCKETS];
	struct id_part part[ID_PARTS];

	_Atomic uint32_t last_session;
	_Atomic uint64_t nsessions, nslots, ncached;

	/* Who this server is: so_major_id and the scope (RFC 8881 sections 2.10.4 and 2.10.5). */
	char server_id[SERVER_ID_LEN];
};

/* nfs4/client/ids.c. The number after the last, any of 32 bits; all->lock is held. */
uint32_t nfs4_next_number(struct nfs4_clients *all);
uint64_t nfs4_make_clientid(const struct nfs4_clients *all, uint32_t number);

/* The callers of what follows hold all->lock. */

/* The clients whose owner string may be that one. */
struct nfs4_client_list *nfs4_owner_bucket(struct nfs4_clients *all, const uint8_t *ownerid,
					   uint32_t len);
bool nfs4_client_owner_is(const struct nfs4_client *cl, const struct nfs4_client_init *who);

/* The record of that owner that is confirmed, and its state not expired. NULL: there is none. No
 * reference. */
struct nfs4_client *nfs4_client_find(struct nfs4_clients *all, const struct nfs4_client_init *who);
/* The one that waits to be confirmed: each host has its own, so that nobody else takes it away
 * before it is. As above. */
struct nfs4_client *nfs4_client_waiting(struct nfs4_clients *all,
					const struct nfs4_client_init *who,
					const struct nfs4_host *host);
/* Gives cl its id and takes over the caller's reference. */
void nfs4_client_insert(struct nfs4_clients *all, struct nfs4_client *cl);
/* Takes cl out of every table: it is gone. The caller gets the table's reference, and calls
 * nfs4_client_destroy() when he has let go of the lock. */
void nfs4_client_detach(struct nfs4_clients *all, struct nfs4_client *cl);
/* nfs4/client/client_status.c: to another status, and into its queue. */
void nfs4_client_become(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status);

/* The callers of what follows need no lock. */

/* Any client with that id, of any status but gone; a reference. NULL: none. */
struct nfs4_client *nfs4_client_get(struct nfs4_clients *all, uint64_t clientid);

uint64_t nfs4_client_lease_end(const struct nfs4_client *cl); /* if it is renewed now */

/* nfs4/client/server_id.c: from the state directory, or made and kept there. */
void nfs4_server_id(struct nfs4_clients *all);

#endif
