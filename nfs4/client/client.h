/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client: what one SETCLIENTID (minor version 0) or EXCHANGE_ID (1 and 2) registered, its lease
 * and what hangs off it (sessions, opens, locks, its record for recovery).
 *
 * Life. A record begins unconfirmed, and is thrown away if it is not confirmed within a lease. A
 * confirmed one is active while its lease is renewed. When the lease has run out it becomes a
 * courtesy client: all of its state stays until it comes back (and is active again as if nothing
 * had been), or until somebody conflicts with it, memory is short or a day has passed. Then its
 * opens and locks are dropped and it has expired: it stays for a while only so that its requests
 * are answered NFS4ERR_EXPIRED, or with SEQUENCE's flag, instead of as of a client that never was.
 * One that is gone is in no table any more and lives until the last reference is put.
 *
 * References: the table holds one while a client is in it, sessions and requests hold theirs.
 *
 * Lock order: the table of clients -> client.lock -> a session's lock. None is held across a file
 * system call, the database or a wait.
 */
#ifndef RN_NFS4_CLIENT_CLIENT_H
#define RN_NFS4_CLIENT_CLIENT_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "nfs4/client/holdings_hooks.h"
#include "nfs4/proto.h"
#include "nfs4/recovery/records.h"
#include "nfs4/recovery/wheel.h"

struct nfs4_compound;
struct nfs4_host;
struct nfs4_server;
struct nfs4_session;

enum nfs4_client_status {
	NFS4_CLIENT_UNCONFIRMED,
	NFS4_CLIENT_ACTIVE,
	NFS4_CLIENT_COURTESY,
	NFS4_CLIENT_EXPIRED,
	NFS4_CLIENT_GONE,
};

/* Who asks, as far as AUTH_SYS tells (RFC 7530 section 16.33, RFC 8881 section 18.35.4). */
struct nfs4_principal {
	uint32_t flavor; /* enum rpc_auth_flavor */
	uint32_t uid;
};

/* Where a client wants to be called back: kept for delegations, nothing calls there yet. */
#define NFS4_NETID_MAX 8u
#define NFS4_UADDR_MAX 64u /* an IPv6 address with scope and port */
struct nfs4_callback {
	uint32_t program;
	uint32_t ident; /* minor version 0 */
	char netid[NFS4_NETID_MAX];
	char addr[NFS4_UADDR_MAX];
};

/* What makes a record: who asks, and as whom. */
struct nfs4_client_init {
	const uint8_t *ownerid;
	uint32_t ownerid_len;
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	bool sessions;
};

struct nfs4_cs_reply; /* nfs4/client/session.h */

/* From where it calls: nfs4/client/origin.c. */
#define NFS4_ORIGINS 5u
struct nfs4_origin {
	/* Hashes of addresses that are its own, 0: none. The first is where it registered, of the
	 * others the last ones are kept. */
	_Atomic uint64_t address[NFS4_ORIGINS];
	_Atomic uint32_t next;
	_Atomic uint64_t last_conn; /* whose address is known to be there */
	bool reserved; /* it registered from a port that only privileged processes have */
	/* Under the table's lock: verifiers that strangers have tried, since when; and when one of
	 * them first asked for its name. */
	uint32_t guesses;
	uint64_t guesses_since, contested;
};

struct nfs4_client {
	/* Set when it is made, and read without a lock. The number is the low half of the client
	 * id, and no two clients of a run have the same: nfs4/client/ids.c. */
	struct nfs4_server *srv;
	uint64_t clientid;
	uint32_t number;
	bool sessions; /* minor version 1 or 2 */
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	struct nfs4_principal principal;
	struct nfs4_origin origin;
	uint32_t ownerid_len;
	struct nfs4_host *host; /* which pays: a reference */
	size_t cost;		/* taken from the budget */

	_Atomic uint32_t refs;
	_Atomic int status;	 /* enum nfs4_client_status; changed under the table's lock */
	struct nfs4_timer lease; /* filed while active; its time is the lease's end */
	struct nfs4_record record;

	pthread_mutex_t lock;

	struct nfs4_holdings *holdings; /* behind this struct */

	/* Under lock. */
	LIST_HEAD(, nfs4_session) session_list; /* each entry is a reference on the session */
	uint32_t nsessions;
	bool creating;			/* CREATE_SESSION is under way */
	uint32_t cs_seqid;		/* the CREATE_SESSION slot (RFC 8881 section 18.36.4) */
	struct nfs4_cs_reply *cs_reply; /* NULL: NFS4ERR_SEQ_MISORDERED, as contrived */

	/* The table's, under its lock. */
	bool was_confirmed;
	LIST_ENTRY(nfs4_client) by_owner;
	LIST_ENTRY(nfs4_client) by_id;
	uint32_t revoked_round; /* of all->revoke_round: under the lock of its part */
	TAILQ_ENTRY(nfs4_client) of_host;
	TAILQ_ENTRY(nfs4_client) aging; /* with others of its status, oldest first */
	uint64_t since;			/* when it got that status: nfs4_clients_now() */
	struct sockaddr_in6 addr;	/* of the one who registered; IPv4 is mapped */
	char netid[NFS4_NETID_MAX];	/* and how */
	/* Minor version 0: what SETCLIENTID_CONFIRM has to say, and what it then installs. */
	uint8_t confirm[NFS4_VERIFIER_SIZE];
	struct nfs4_callback *callback;
	struct nfs4_callback *update; /* an unconfirmed record with the same client id */
	uint8_t update_confirm[NFS4_VERIFIER_SIZE];

	/* What identifies it for ever: client.id or co_ownerid, ownerid_len bytes. */
	uint8_t *ownerid; /* behind the holdings */
};

/*
 * The confirmed client of minor version 0 that has that id, with a reference for the caller, its
 * lease renewed. NFS4_OK, NFS4ERR_STALE_CLIENTID (of another run, never confirmed, or forgotten) or
 * NFS4ERR_EXPIRED. In minor versions 1 and 2 the client is that of the session, c->client.
 */
int nfs4_client_by_id(struct nfs4_server *srv, uint64_t clientid, struct nfs4_client **out);

/*
 * Whose state it is that a stateid names: the client of any minor version with that number (of this
 * run), without renewing. NULL: there is none. A reference for the caller.
 */
struct nfs4_client *nfs4_client_by_number(struct nfs4_server *srv, uint32_t number);

/* Is the caller the principal that made cl? */
bool nfs4_principal_made(const struct nfs4_compound *c, const struct nfs4_client *cl);

/* What of a stateid nobody can guess: of the client with that number, and its slot. */
uint32_t nfs4_stateid_tag(const struct nfs4_server *srv, uint32_t number, uint32_t id);

/* The caller has named an id that only cl has been given: cl calls from his address. */
void nfs4_origin_note(struct nfs4_client *cl, const struct nfs4_compound *c);

/* A hash, which the client cannot foresee, of what is named and a name that it has chosen. */
uint64_t nfs4_client_hash(const struct nfs4_client *cl, uint64_t what, const uint8_t *name,
			  uint32_t len);

void nfs4_client_ref(struct nfs4_client *cl);
void nfs4_client_put(struct nfs4_client *cl); /* NULL is allowed */

/* True if it has opens or locks. Takes the client's lock. */
bool nfs4_client_has_state(struct nfs4_client *cl);

/* Renews the lease. False: it has expired, its state is gone. */
bool nfs4_client_renew(struct nfs4_client *cl);

static inline enum nfs4_client_status nfs4_client_status(const struct nfs4_client *cl)
{
	return (enum nfs4_client_status)atomic_load_explicit(&cl->status, memory_order_acquire);
}

/* Has its lease run out while its state stays? */
bool nfs4_client_is_courtesy(const struct nfs4_client *cl);

enum nfs4_expire {
	NFS4_HOLDS,    /* its lease is good: what it has stays */
	NFS4_DROPPED,  /* its state is gone: try again */
	NFS4_DROPPING, /* it will be gone soon: answer NFS4ERR_DELAY */
};

/*
 * Somebody conflicts with what cl holds. If its lease has run out, that is dropped and cl has
 * expired; but not before its record on disk is gone, or it could reclaim after a restart what was
 * given away. The caller holds no lock, but a reference.
 */
enum nfs4_expire nfs4_client_expire_courtesy(struct nfs4_server *srv, struct nfs4_client *cl);

#endif
