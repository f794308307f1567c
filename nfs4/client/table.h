/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of clients and sessions, for the files of this folder.
 *
 * Two kinds of locks. all->lock orders what changes who is known: registering, confirming,
 * expiring, forgetting. Looking up by id, which every operation does, takes only the lock of one of
 * many parts, which is a leaf and held for a walk of one bucket.
 */
#ifndef RN_NFS4_CLIENT_TABLE_H
#define RN_NFS4_CLIENT_TABLE_H

#include <sodium.h>

#include "nfs4/client/client.h"
#include "nfs4/client/clients.h"
#include "nfs4/client/host.h"
#include "nfs4/client/session.h"
#include "nfs4/server.h"

#define OWNER_BUCKETS 8192u
#define ID_PARTS 64u
#define ID_BUCKETS 128u /* of one part */

/* Records that wait to be confirmed. Each costs a client of the RFCs' kind one round trip, so that
 * more of them are a flood: those of whoever has most go. */
#define UNCONFIRMED_MAX 4096u
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

/* nfs4/client/origin.c */
struct nfs4_principal nfs4_principal_of(const struct nfs4_compound *c);
bool nfs4_principal_is(const struct nfs4_principal *a, const struct nfs4_principal *b);
void nfs4_origin_init(struct nfs4_client *cl, const struct nfs4_compound *c);
/* Puts the caller, who registers cl, into cl's record. */
void nfs4_origin_record(struct nfs4_client *cl, const struct nfs4_compound *c);
/* Does the call come from an address of cl's own? */
bool nfs4_origin_is(struct nfs4_client *cl, const struct nfs4_compound *c);
/* Is it the verifier of cl? From elsewhere only so many guesses are looked at. all->lock is held.
 */
bool nfs4_verifier_is(struct nfs4_client *cl, const struct nfs4_compound *c,
		      const uint8_t verifier[NFS4_VERIFIER_SIZE]);
/* May the caller have the name of cl, which is confirmed, and end what cl has? NFS4_OK,
 * NFS4ERR_CLID_INUSE, or NFS4ERR_DELAY: until it is known whether cl still lives. all->lock is
 * held. */
int nfs4_client_contest(struct nfs4_client *cl, const struct nfs4_compound *c);
/* May fresh, which is to be registered, have its name while a client of that name may reclaim?
 * NFS4_OK or NFS4ERR_DELAY. all->lock is held. */
int nfs4_client_contest_record(struct nfs4_client *fresh, const struct nfs4_compound *c);

/* Memory for the clients of a host; to get it, those that are only there by courtesy go. The caller
 * holds no lock. */
bool nfs4_clients_take(struct nfs4_clients *all, struct nfs4_host *h, size_t bytes,
		       enum nfs4_use use);

/* Lets go of the one that has been there by courtesy for longest. NFS4_HOLDS: there is none. The
 * caller holds no lock. */
enum nfs4_expire nfs4_clients_evict(struct nfs4_clients *all);
#define NFS4_EVICT_MOST 16u /* that one call lets go of for the sake of another client */

/* nfs4/client/share.c. A client without state of the host that has most goes, if that has more than
 * so much. False: none does. The caller holds no lock. */
bool nfs4_clients_shed(struct nfs4_clients *all, enum nfs4_measure what, size_t mine);
/* Too many wait to be confirmed: the oldest of the host that has most of them, detached.
 * all->lock is held. */
struct nfs4_client *nfs4_client_overflow(struct nfs4_clients *all);

/* An unconfirmed client that is in no table, for the caller of c; NULL: no memory. */
struct nfs4_client *nfs4_client_new(struct nfs4_compound *c, const struct nfs4_client_init *init);

/* These want all->lock to be held. */

/* The record of that owner that is confirmed, and its state not expired. NULL: there is none. No
 * reference. */
struct nfs4_client *nfs4_client_find(struct nfs4_clients *all, const struct nfs4_client_init *who);
/* The one that waits to be confirmed: each host has its own, so that nobody else takes it away
 * before it is. As above. */
struct nfs4_client *nfs4_client_waiting(struct nfs4_clients *all,
					const struct nfs4_client_init *who,
					const struct nfs4_host *host);
/* Gives cl its id and takes over the caller's reference. The one that it pushes out, detached, or
 * NULL. */
struct nfs4_client *nfs4_client_enter(struct nfs4_clients *all, struct nfs4_client *cl);
/* Takes cl out of every table: it is gone. The caller gets the table's reference, and calls
 * nfs4_client_destroy() when he has let go of the lock. */
void nfs4_client_detach(struct nfs4_clients *all, struct nfs4_client *cl);
/* To another status, and into its queue. */
void nfs4_client_become(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status);

/*
 * cl, which is unconfirmed, is confirmed; every other record of its owner is detached and linked
 * into *old by `aging`. NFS4_OK, or what nfs4_client_contest() says of the confirmed one, which may
 * have come back since cl was made.
 */
int nfs4_client_confirm(struct nfs4_compound *c, struct nfs4_client *cl,
			struct nfs4_client_queue *old);

/* What a detached client has is dropped: sessions, opens, locks, and the reference. */
void nfs4_client_destroy(struct nfs4_client *cl); /* NULL is allowed */
/* All of a queue of them, and what would let them reclaim: a restart or another owner has taken
 * their place. */
void nfs4_clients_forget(struct nfs4_server *srv, struct nfs4_client_queue *old);

/* Any client with that id, of any status but gone; a reference. NULL: none. */
struct nfs4_client *nfs4_client_get(struct nfs4_clients *all, uint64_t clientid);

/* nfs4/client/session.c */
struct nfs4_session *nfs4_session_get(struct nfs4_clients *all,
				      const uint8_t id[NFS4_SESSIONID_SIZE]);
/* A session of cl that is in no table; NFS4ERR_DELAY or NFS4ERR_NOSPC. */
int nfs4_session_new(struct nfs4_client *cl, const struct nfs4_channel *fore,
		     const struct nfs4_channel *back, struct nfs4_session **out);
/* Into the table and the client's list, which take over the caller's reference. The client's lock
 * is held. */
void nfs4_session_enter(struct nfs4_session *s);
/* Out of both, with the reference: no request finds it any more. False: it was out already. The
 * client's lock is held. */
bool nfs4_session_leave(struct nfs4_session *s);
/* Has it requests under way, besides one on slot mine (or NULL)? */
bool nfs4_session_busy(struct nfs4_session *s, const struct nfs4_slot *mine);

/* nfs4/client/lease.c */
/* Has the lease of a confirmed client run out? */
bool nfs4_client_has_lapsed(struct nfs4_client *cl);
/* Forgets cl if it still has that status. Takes over the caller's reference. Wants no lock. */
void nfs4_client_forget(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status);
uint64_t nfs4_client_lease_end(const struct nfs4_client *cl); /* if it is renewed now */

/* nfs4/client/server_id.c: from the state directory, or made and kept there. */
void nfs4_server_id(struct nfs4_clients *all);

/* nfs4/client/address.c: universal address of an IPv4 or IPv6 socket address (RFC 5665 section
 * 5.2.3), and its netid. */
void nfs4_uaddr(const struct sockaddr_in6 *addr, char out[NFS4_UADDR_MAX]);
void nfs4_peer_address(const struct nfs4_compound *c, struct sockaddr_in6 *addr,
		       char netid[NFS4_NETID_MAX]);

#endif
