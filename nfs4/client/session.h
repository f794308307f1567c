/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions and their slots. */
#ifndef RN_NFS4_CLIENT_SESSION_H
#define RN_NFS4_CLIENT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/image.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/object.h"

/*
 * The slots of a session's fore channel: the last request of each, and the reply for a retry (RFC
 * 8881 section 2.10.6.1). Slots are allocated in pieces when a client first uses them, so that a
 * session costs what its client uses. The session's lock guards them.
 */

#define NFS4_SLOTS_MAX 1024u /* per session */
#define NFS4_SLOTS_FIRST 64u /* granted at the start, if memory is not short */
#define NFS4_SLOTS_LEAST 4u  /* granted even if memory is short */
#define NFS4_SLOT_PIECE 8u   /* slots of the first piece; each further piece doubles the number */
#define NFS4_SLOT_PIECES 8u  /* 8 + 8 + 16 + ... = 1024 */

struct nfs4_compound;
struct nfs4_retry;
struct nfs4_session;

/* A reply cached for a retry: the COMPOUND's result as a stream. Behind it, for each of nbulks bulk
 * items, a pair of words: position and length. */
struct nfs4_cached {
	_Atomic uint32_t refs; /* held by the slot, and by retries being answered */
	uint32_t size;	       /* bytes allocated for words */
	uint32_t len;
	uint32_t nbulks;
	struct nfs4_reply_exports exports; /* exports that a retry must be admitted to */
	uint32_t words[];
};

struct nfs4_slot {
	uint32_t seqid; /* sequence id of the last request accepted */
	bool busy;	/* the last request has not ended */
	bool used;	/* a request has been accepted here */
	bool cached; /* its reply is cached; else a retry is answered NFS4ERR_RETRY_UNCACHED_REP */
	bool regranted; /* retired and granted again: the client may restart at seqid 1 */
	bool whole;	/* sum covers the whole call */
	uint32_t id;	/* of the last request; for callbacks that refer to it */
	uint64_t sum;	/* hash of the call and its sender: nfs4_call_sum() */
	struct nfs4_cached *reply; /* allocation for replies; valid if cached */
	struct nfs4_retry *retry;  /* retry that waits for the reply, while busy */
};

/* The slot, allocated on its first use. NULL: no memory now. id < s->nslots. s->lock is held. */
struct nfs4_slot *nfs4_slot_get(struct nfs4_session *s, uint32_t id);

/*
 * Grants more slots or asks for them back; called once for each new request, before its reply.
 * highest is sa_highest_slotid. short_of_memory: reduces cached replies and slots. s->lock is held.
 */
void nfs4_slots_adjust(struct nfs4_session *s, uint32_t id, uint32_t highest, bool short_of_memory);

/* Keeps a reply of the program before in a slot without one; like: its length, bulk items and exports. 0 or -ENOMEM. */
int nfs4_slot_load(struct nfs4_session *s, struct nfs4_slot *slot, const struct image_bytes *words,
		   const struct nfs4_cached *like);
void nfs4_cached_put(struct nfs4_cached *r); /* NULL is allowed */
/*
 * The result for a retry of that request: NFS4_REPLAYED, with a reference of the reply in *kept, or
 * NULL if it was not cached; NFS4ERR_DELAY: it is under way; NFS4ERR_SEQ_MISORDERED: it is not the
 * last one. s->lock is held.
 */
int nfs4_slot_reply(struct nfs4_session *s, uint32_t id, uint32_t seqid, struct nfs4_cached **kept);
/* Marks the request on the slot as ended; a retry that waits for it goes on. The caller holds no lock. */
void nfs4_slot_done(struct nfs4_session *s, struct nfs4_slot *slot);

/*
 * Sessions (RFC 8881 section 2.10). A session belongs to a client and outlives the connections that
 * use it. With SP4_NONE a connection is associated with a session by its use, with SP4_MACH_CRED only by
 * BIND_CONN_TO_SESSION and CREATE_SESSION (section 2.10.8.3). The most recent connections are stored
 * for DESTROY_SESSION, which must come over one of them (section 18.37.3).
 *
 * References: the client's list holds one while the session lives, and each request that uses the
 * session another. A session holds a reference of its client.
 */

#define NFS4_SESSIONS_PER_CLIENT 16u
#define NFS4_CONNS_PER_SESSION 32u /* stored; Linux's client opens 16 at most */

/* channel_attrs4; sizes in bytes of the RPC message. */
struct nfs4_channel {
	uint32_t header_pad;
	uint32_t max_request;
	uint32_t max_reply;
	uint32_t max_cached;
	uint32_t max_ops;
	uint32_t max_requests;
	uint32_t nird; /* 0 or 1 */
	uint32_t ird;
};

struct nfs4_cb_path; /* nfs4/client/cb_path.h */
struct nfs4_clients;
struct rpc_conn;

struct nfs4_session {
	/* Constant from creation on. */
	uint8_t id[NFS4_SESSIONID_SIZE];
	struct nfs4_client *client;
	struct nfs4_channel fore, back;
	_Atomic uint32_t refs;
	LIST_ENTRY(nfs4_session) of_client; /* under the client's lock */
	LIST_ENTRY(nfs4_session) by_id;	    /* under the lock of its id part */
	uint32_t minor;			    /* version of its CREATE_SESSION */
	uint64_t made;			    /* nfs4_clients_now() */
	struct nfs4_cb_path *cb_path;	    /* its members are under lock; NULL: no callbacks */

	pthread_mutex_t lock; /* a leaf; guards the members below */
	bool dead;	      /* destroyed: takes no more requests */
	uint32_t busy;	      /* slots with a request under way */
	uint32_t nused;	      /* the highest slot used so far, and 1; 0: none */
	uint32_t nslots;      /* granted: 0 .. nslots - 1 are accepted */
	/* Slots the client should use; below nslots: the others will be retired */
	uint32_t target;
	uint32_t asked; /* slots the client asked for at first: the upper limit */
	uint32_t nmade; /* slots that exist, in whole pieces */
	/* Says if the client knows the target. It does once it uses the slot again whose reply
	 * first carried the target. */
	enum { NFS4_TARGET_NEW, NFS4_TARGET_SENT, NFS4_TARGET_SEEN } target_state;
	uint32_t sent_slot, sent_seqid;
	bool short_of_memory; /* result of the last look at the memory */
	bool active;	      /* a request has come since nfs4_client_recall_slots() looked */
	bool slots_recalled;  /* the client was told, and has not given them back yet */
	uint32_t ncached;     /* slots with memory for a cached reply */
	/* Bytes charged to the budget, cached replies included */
	size_t cost;
	/* Connections bound so far; conn has the last ones */
	uint32_t nconns;
	uint64_t conn[NFS4_CONNS_PER_SESSION]; /* rpc_conn.id, unique in this run */
	struct nfs4_slot *piece[NFS4_SLOT_PIECES];
};

/* The result of CREATE_SESSION, stored for a retry. */
struct nfs4_cs_reply {
	int status;
	uint8_t id[NFS4_SESSIONID_SIZE];
	uint32_t seqid, flags;
	struct nfs4_channel fore, back;
};

/* A session of cl that is in no table, with a reference; without an id and slots. NULL: no memory. */
struct nfs4_session *nfs4_session_make(struct nfs4_client *cl, const struct nfs4_channel *fore,
				       const struct nfs4_channel *back);
/* Sets the id of s. */
void nfs4_session_name(struct nfs4_session *s);
void nfs4_session_ref(struct nfs4_session *s);
void nfs4_session_put(struct nfs4_session *s); /* NULL is allowed */

struct nfs4_session *nfs4_session_get(struct nfs4_clients *all,
				      const uint8_t id[NFS4_SESSIONID_SIZE]);
/* Adds s to the table and the client's list, which take over the caller's reference. The client's
 * lock is held. */
void nfs4_session_enter(struct nfs4_session *s);
/* Removes s from both and hands their reference to the caller: no new request finds it. False: it
 * was removed already. The client's lock is held. */
bool nfs4_session_leave(struct nfs4_session *s);
/* True if requests are under way, other than one on slot mine (or NULL). */
bool nfs4_session_busy(struct nfs4_session *s, const struct nfs4_slot *mine);

/*
 * nfs4/client/session.c: a sum (rpc/sum.h) of the rest of a call, from c->in on, and of its credential; taken
 * once, by an operation's decoder. whole: of all bytes, data of RDMA chunks included. It is for calls whose replies are kept,
 * since no caller may get the reply of another call. Otherwise of the first bytes: a reply that is not kept
 * reaches no other caller.
 */
uint64_t nfs4_call_sum(const struct nfs4_compound *c, bool whole);

/* Bind a connection to the session, and tell whether it is bound. They take the session's lock. */
void nfs4_session_bind(struct nfs4_session *s, struct rpc_conn *conn);
bool nfs4_session_is_bound(struct nfs4_session *s, uint64_t conn);
/* nfs4_session_bind, and nfs4_session_is_bound, with the session's lock held. */
void nfs4_session_bind_locked(struct nfs4_session *s, struct rpc_conn *conn);
bool nfs4_session_binds_locked(const struct nfs4_session *s, const struct rpc_conn *conn);

#endif
