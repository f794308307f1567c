/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of clients and sessions, private to this folder.
 *
 * There are two kinds of locks. all->lock orders all changes of the set of clients: registering,
 * confirming, expiring, removing. A lookup by id, which every operation does, takes only the lock
 * of one of many parts. That lock is a leaf and is held for a walk of one bucket.
 */
#ifndef RN_NFS4_CLIENT_CLIENT_TABLE_H
#define RN_NFS4_CLIENT_CLIENT_TABLE_H

#include <sodium.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"

#define OWNER_BUCKETS 8192u
#define ID_PARTS 64u
#define ID_BUCKETS 128u /* buckets of one part */

#define COURTESY_SECONDS (24u * 3600u)
#define SERVER_ID_LEN (NFS4_SERVER_ID_MAX + 1)

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
	_Atomic uint64_t skipped;   /* seconds that tests have advanced the clock */
	_Atomic uint64_t stands_at; /* when a test has stopped it; 0: it runs */
	/* true if an expired client keeps its state until its record is removed */
	_Atomic bool dropping;
	uint8_t id_key[crypto_shorthash_KEYBYTES]; /* used by nfs4/client/client_table.c */
	uint32_t last_number;			   /* under lock, like refusal_logged */
	uint64_t refusal_logged;
	uint32_t swept;	       /* id bucket where the next sweep continues */
	uint32_t revoke_round; /* number of walks by nfs4/session/revoke.c */

	/* Clients by status, under lock. Active clients are in no queue; each has a timer. */
	struct nfs4_client_queue unconfirmed, courtesy, expired;
	uint32_t nunconfirmed, nactive, ncourtesy, nexpired;
	struct nfs4_client_list by_owner[OWNER_BUCKETS];
	struct id_part part[ID_PARTS];

	_Atomic uint32_t lapsed; /* leases that have run out */
	_Atomic uint32_t last_session;
	_Atomic uint64_t nsessions, nslots, ncached;

	/*
	 * Identity of this server: so_major_id and the scope (RFC 8881 sections 2.10.4 and 2.10.5). They are the same but in a
	 * cluster.
	 */
	char server_id[SERVER_ID_LEN], server_scope[SERVER_ID_LEN];
};

/* The callers of the functions below hold all->lock. */

/* Bucket of the clients with this owner string. */
struct nfs4_client_list *nfs4_owner_bucket(struct nfs4_clients *all, const uint8_t *ownerid,
					   uint32_t len);
bool nfs4_client_owner_is(const struct nfs4_client *cl, const struct nfs4_client_init *who);

/* The confirmed client of that owner whose state has not expired, without a reference; or NULL. */
struct nfs4_client *nfs4_client_find(struct nfs4_clients *all, const struct nfs4_client_init *who);
/* The unconfirmed client of that owner and host, without a reference; or NULL. Each host has its
 * own, so that another host cannot replace it before it is confirmed. */
struct nfs4_client *nfs4_client_waiting(struct nfs4_clients *all,
					const struct nfs4_client_init *who,
					const struct nfs4_host *host);
/* Gives cl its id and takes over the caller's reference. */
void nfs4_client_insert(struct nfs4_clients *all, struct nfs4_client *cl);
/* The same with that number, which no other has. */
void nfs4_client_insert_as(struct nfs4_clients *all, struct nfs4_client *cl, uint32_t number);
/* Removes cl from every table; its status is gone. The caller gets the table's reference, and calls
 * nfs4_client_destroy() after it has released the lock. */
void nfs4_client_detach(struct nfs4_clients *all, struct nfs4_client *cl);
/* nfs4/client/nfs4_client.c: changes the status and moves cl to its queue. */
void nfs4_client_become(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status);

/* The callers of the functions below need no lock. */

/* The client with that id, with a reference, or NULL. It may have any status but gone. */
struct nfs4_client *nfs4_client_get(struct nfs4_clients *all, uint64_t clientid);

uint64_t nfs4_client_lease_end(const struct nfs4_client *cl); /* if renewed now */

#endif
