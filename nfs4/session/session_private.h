/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the operations on clients and sessions call in each other: limits of channels, registration of owner strings, making
 * room, cached replies. */
#ifndef RN_NFS4_SESSION_SESSION_PRIVATE_H
#define RN_NFS4_SESSION_SESSION_PRIVATE_H

#include "nfs4/client/client_host.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/state/holdings.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

/* channel_attrs4: the limits that a session negotiates (RFC 8881 section 18.36.3). */

/* Largest reply in bytes that a slot keeps. Replies of operations that change something are
 * smaller. */
#define NFS4_CACHED_MOST 8192u

struct nfs4_config;

void nfs4_get_channel(struct xdr_in *x, struct nfs4_channel *out);
void nfs4_put_channel(struct xdr_out *x, const struct nfs4_channel *ch);

/* Registration of clients: SETCLIENTID, EXCHANGE_ID, and their confirmation. */

/* Makes an unconfirmed client, in no table, for the caller of c; NULL: no memory. */
struct nfs4_client *nfs4_client_new(struct nfs4_compound *c, const struct nfs4_client_init *init);

/* Gives cl its id and takes over the caller's reference. Returns the client that it displaces,
 * detached, or NULL. all->lock is held. */
struct nfs4_client *nfs4_client_enter(struct nfs4_clients *all, struct nfs4_client *cl);

/*
 * Confirms cl. Every other client of its owner is detached and linked into *old by `aging`.
 * NFS4_OK, or the result of nfs4_client_contest() for the confirmed one, which may have come back
 * since cl was made. all->lock is held.
 */
int nfs4_client_confirm(struct nfs4_compound *c, struct nfs4_client *cl,
			struct nfs4_client_queue *old);
/* Afterwards, without all->lock: tells the administrator. */
void nfs4_client_log_confirmed(struct nfs4_compound *c, const struct nfs4_client *cl);

/* The right of callers to an owner string that a client has; private to this folder. */

/*
 * Decides whether the caller may take the owner string of the confirmed client cl and end its
 * state. NFS4_OK, NFS4ERR_CLID_INUSE, or NFS4ERR_DELAY until it is known whether cl is alive.
 * all->lock is held.
 */
int nfs4_client_contest(struct nfs4_client *cl, const struct nfs4_compound *c);
/* Decides whether fresh may be registered while a client with its owner string may reclaim. NFS4_OK
 * or NFS4ERR_DELAY. all->lock is held. */
int nfs4_client_contest_record(struct nfs4_client *fresh, const struct nfs4_compound *c);

/* Destruction of clients that have left the tables. The caller holds no lock. */

/* Drops all that a detached client holds: sessions, opens, locks, and its reference. */
void nfs4_client_destroy(struct nfs4_client *cl); /* NULL is allowed */
/* Destroys a queue of clients, linked by `aging`, and their records on disk: a restart or another
 * owner has replaced them. */
void nfs4_clients_forget(struct nfs4_server *srv, struct nfs4_client_queue *old);
/* Removes cl if it still has that status. Takes over the caller's reference. */
void nfs4_client_forget(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status);

/* Eviction: frees memory for a client by removing clients that need theirs less. The caller holds
 * no lock, except for nfs4_client_overflow(). */

#define NFS4_EVICT_MOST 16u /* clients evicted in one call at most */

/* Takes memory for the clients of a host; evicts courtesy clients if there is not enough. */
bool nfs4_clients_take(struct nfs4_clients *all, struct nfs4_host *h, size_t bytes,
		       enum nfs4_use use);

/*
 * The oldest client of a queue, with a reference; NULL if there is none or it is younger than age.
 */
struct nfs4_client *nfs4_clients_oldest(struct nfs4_clients *all, struct nfs4_client_queue *queue,
					uint64_t age);
/* Evicts a courtesy client. NFS4_HOLDS: cl is NULL. Takes over the caller's reference. */
enum nfs4_expire nfs4_client_evict(struct nfs4_clients *all, struct nfs4_client *cl);
/* Evicts the oldest courtesy client. */
enum nfs4_expire nfs4_clients_evict(struct nfs4_clients *all);

/* Removes a client without state of the host with the largest number, if that is over mine. False:
 * no client was removed. */
bool nfs4_clients_shed(struct nfs4_clients *all, enum nfs4_measure what, size_t mine);
/* If too many clients are unconfirmed: detaches and returns the oldest of the host that has most of
 * them. all->lock is held. */
struct nfs4_client *nfs4_client_overflow(struct nfs4_clients *all);

/* Sessions and their requests, inside of this folder: SEQUENCE, cached replies, retries. */

struct nfs4_sequence_args {
	uint8_t session[NFS4_SESSIONID_SIZE];
	uint32_t seqid, slot, highest;
	bool cache_this;
	uint64_t sum;			  /* nfs4_call_sum() */
	uint32_t highest_now, target_now; /* for the result */
	uint32_t cb_flags;		  /* of the callback path, for the result */
};

#define NFS4_SEQUENCE_RESULT (NFS4_SESSIONID_SIZE + 20u) /* bytes */
/* SEQUENCE's flags for a session; cb_flags: nfs4_cb_flags(). Takes the client's lock. */
uint32_t nfs4_sequence_flags(const struct nfs4_session *s, uint32_t cb_flags, bool alive);

/* True if the session should keep fewer replies, and so have fewer slots. */
bool nfs4_session_short_of_memory(const struct nfs4_session *s);
/* Asks for the slots of a session of cl that was idle since the last call, if memory is short (CB_RECALL_SLOT).
 * False: there was none to ask for. The caller holds a reference and no lock. */
bool nfs4_client_recall_slots(struct nfs4_client *cl);

#endif
