/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client: the record that a SETCLIENTID (minor version 0) or an EXCHANGE_ID (1 and 2) registered,
 * with its lease, sessions, opens, locks and recovery record.
 *
 * Life. A client begins unconfirmed, and is removed if it is not confirmed within a lease. A
 * confirmed client is active while its lease is renewed. When the lease has run out it becomes a
 * courtesy client. Its state then stays until it renews (it is active again, with all its state),
 * or until another client conflicts with it, memory is short or a day has passed. Then its opens
 * and locks are dropped and it has expired. An expired client is kept for a while so that its
 * requests are answered NFS4ERR_EXPIRED, or with the flag of SEQUENCE, and not as those of an
 * unknown client. A client that is gone is in no table, and is freed with its last reference.
 *
 * References: the table holds one while a client is in it; sessions and requests hold their own.
 *
 * Lock order: the table of clients -> client.lock -> the lock of a session. None of them is held
 * across a system call on files, the database or a wait.
 */
#ifndef RN_NFS4_CLIENT_NFS4_CLIENT_H
#define RN_NFS4_CLIENT_NFS4_CLIENT_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "nfs4/client/protect.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/recovery/client_records.h"
#include "nfs4/recovery/wheel.h"

struct nfs4_compound;
struct nfs4_holdings; /* nfs4/state/holdings.h */
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

/*
 * Identity of the caller (RFC 7530 section 16.33, RFC 8881 section 18.35.4): the uid of AUTH_SYS, or the
 * name that RPCSEC_GSS has proved, whatever the service.
 */
struct nfs4_principal {
	uint32_t flavor; /* enum rpc_auth_flavor */
	uint32_t uid;
	const struct rpc_principal *name; /* NULL unless RPCSEC_GSS; a client has a reference */
};

#define NFS4_NETID_MAX 8u
#define NFS4_UADDR_MAX 64u /* an IPv6 address with scope and port */

struct nfs4_callback; /* nfs4/client/cb_path.h */

/*
 * Key of a new client: its owner string, verifier and protocol. sessions is true for EXCHANGE_ID.
 */
struct nfs4_client_init {
	const uint8_t *ownerid;
	uint32_t ownerid_len;
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	bool sessions;
};

struct nfs4_cs_reply; /* nfs4/client/session.h */

/* Addresses that the client calls from: nfs4/client/client_host.c. */
#define NFS4_ORIGINS 5u
struct nfs4_origin {
	/* Hashes of the client's addresses; 0: empty. The first is the address of its registration
	 * and stays. The other entries are the most recent addresses. */
	_Atomic uint64_t address[NFS4_ORIGINS];
	_Atomic uint32_t next;
	_Atomic uint64_t last_conn; /* last connection whose address is known to be in address[] */
	bool reserved;		    /* true if it registered from a privileged port */
	uint8_t protection; /* enum rpc_protection of the connection that it registered over */
	/* Under the table's lock: number of wrong verifiers from other addresses and the time of
	 * the first; time when another address first asked for this owner string. */
	uint32_t guesses;
	uint64_t guesses_since, contested;
};

struct nfs4_client {
	/* Constant from creation on; read without a lock. number is the low half of the client id.
	 * It is unique among the clients of one run: nfs4/client/client_table.c. */
	struct nfs4_server *srv;
	uint64_t clientid;
	uint32_t number;
	bool sessions; /* minor version 1 or 2 */
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	struct nfs4_principal principal;
	struct nfs4_protect protect;
	struct nfs4_origin origin;
	uint32_t ownerid_len;
	struct nfs4_host *host; /* host that pays for the client's memory; a reference */
	size_t cost;		/* bytes charged to the budget */

	_Atomic uint32_t refs;
	_Atomic int status;	    /* enum nfs4_client_status; changed under the table's lock */
	struct nfs4_timer lease;    /* filed while active; fires at the end of the lease */
	_Atomic uint32_t under_way; /* COMPOUNDs that it has sent and that are not answered yet */
	struct nfs4_record record;

	struct nfs4_counts counts;

	pthread_mutex_t lock;

	struct nfs4_holdings *holdings; /* opens and locks; allocated behind this struct */

	/* Under lock. */
	LIST_HEAD(, nfs4_session) session_list; /* each entry is a reference on the session */
	uint32_t nsessions;
	bool creating;	   /* true while a CREATE_SESSION runs */
	uint32_t cs_seqid; /* sequence id of the CREATE_SESSION slot (RFC 8881 section 18.36.4) */
	/* reply of that slot; NULL: NFS4ERR_SEQ_MISORDERED, before the first call */
	struct nfs4_cs_reply *cs_reply;
	/* Minor version 0: the callback that SETCLIENTID_CONFIRM has installed, or will. */
	struct nfs4_callback *callback;

	/* Under the lock of the client table. */
	bool was_confirmed;
	LIST_ENTRY(nfs4_client) by_owner;
	LIST_ENTRY(nfs4_client) by_id;
	uint32_t revoked_round; /* value of all->revoke_round; under the lock of its id part */
	TAILQ_ENTRY(nfs4_client) of_host;
	TAILQ_ENTRY(nfs4_client) aging; /* queue of clients with the same status, oldest first */
	uint64_t since;			/* time of the last change of status: nfs4_clients_now() */
	struct sockaddr_in6 addr;	/* address that registered the client; IPv4 is mapped */
	char netid[NFS4_NETID_MAX];	/* transport of that registration */
	/* Minor version 0: verifier that SETCLIENTID_CONFIRM must give. */
	uint8_t confirm[NFS4_VERIFIER_SIZE];
	struct nfs4_callback *update; /* new callback of the same client id, not confirmed yet */
	uint8_t update_confirm[NFS4_VERIFIER_SIZE];

	/* Owner string: client.id or co_ownerid, ownerid_len bytes. */
	uint8_t *ownerid; /* allocated behind the holdings */
};

/*
 * Finds the confirmed minor version 0 client with that id, renews its lease and gives the caller a
 * reference. NFS4_OK, NFS4ERR_STALE_CLIENTID (id of another run, never confirmed, or removed) or
 * NFS4ERR_EXPIRED. In minor versions 1 and 2 the client is that of the session: c->client.
 */
int nfs4_client_by_id(struct nfs4_server *srv, uint64_t clientid, struct nfs4_client **out);

/* Finds the client of any minor version with that number, as stateids carry it, without renewing
 * the lease. NULL if this run has none. Gives the caller a reference. */
struct nfs4_client *nfs4_client_by_number(struct nfs4_server *srv, uint32_t number);

/* nfs4/client/client_table.c: the client behind that with this number in a walk over all, with a reference; 0 begins it.
 * NULL: the walk has ended. Clients that are there all the time are visited once. */
struct nfs4_client *nfs4_client_after(struct nfs4_server *srv, uint32_t number);

/* Makes the COMPOUND one of cl, whose reference it takes over. Until nfs4_client_call_ends() cl's lease does not run out: what a call waits for is the
 * server's, or another client's, fault (RFC 8881 section 8.3; done for RFC 7530's clients too, whose calls may wait as long). */
void nfs4_client_call_begins(struct nfs4_client *cl, struct nfs4_compound *c);
/* Renews the lease, and ends what nfs4_client_call_begins() has begun. c->client is NULL from then on; it may be NULL before. */
void nfs4_client_call_ends(struct nfs4_compound *c);

/* The same for a COMPOUND of minor version 0, whose operations may be those of one client after the other: what it does from now on to the
 * current and the saved file is done for cl. */
void nfs4_client_calls(struct nfs4_client *cl, struct nfs4_compound *c);

/* True if the caller is the principal that registered cl. */
bool nfs4_principal_made(const struct nfs4_compound *c, const struct nfs4_client *cl);

/* Part of a stateid that cannot be guessed: a keyed hash of the client's number and the table
 * entry. */
uint32_t nfs4_stateid_tag(const struct nfs4_server *srv, uint32_t number, uint32_t id);

/* Notes the caller's address as one of cl's. The call has named an id that only cl was given. */
void nfs4_origin_note(struct nfs4_client *cl, const struct nfs4_compound *c);

/* Keyed hash of what and a name that the client has chosen. The client cannot predict it. */
uint64_t nfs4_client_hash(const struct nfs4_client *cl, uint64_t what, const uint8_t *name,
			  uint32_t len);

void nfs4_client_ref(struct nfs4_client *cl);
void nfs4_client_put(struct nfs4_client *cl); /* NULL is allowed */

/* Renews the lease. False if the client has expired and its state is gone. */
bool nfs4_client_renew(struct nfs4_client *cl);

static inline enum nfs4_client_status nfs4_client_status(const struct nfs4_client *cl)
{
	return (enum nfs4_client_status)atomic_load_explicit(&cl->status, memory_order_acquire);
}

/* Lease clock in seconds: nfs4_now(), unless tests have stopped it, plus the time that they have skipped. */
uint64_t nfs4_clients_now(const struct nfs4_server *srv);
/* Leases that have run out so far, of all clients together; it wraps. */
uint32_t nfs4_clients_lapsed(const struct nfs4_server *srv);
/* For tests: the lease clock stands still, and only nfs4_clients_skip_time() advances it. */
void nfs4_clients_stop_time(struct nfs4_server *srv);
/* For tests: advances the lease clock. */
void nfs4_clients_skip_time(struct nfs4_server *srv, uint64_t seconds);

/* True if the lease is good: the client keeps its state, whoever wants it. Takes the client's lock. */
bool nfs4_client_is_alive(struct nfs4_client *cl);

/* Ends of leases; nfs4/client/nfs4_client.h has what other parts ask. */

struct nfs4_clients;

/* True if the lease of a confirmed client has run out. */
bool nfs4_client_has_lapsed(struct nfs4_client *cl);
/* Makes the active client cl a courtesy client if its lease has run out. all->lock is held. */
bool nfs4_client_lapse(struct nfs4_clients *all, struct nfs4_client *cl);

#endif
