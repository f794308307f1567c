/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions (RFC 8881 section 2.10). One outlives the connections that it is used on, and belongs to
 * its client. With SP4_NONE, the only state protection there is without RPCSEC_GSS, a connection is
 * associated with a session by being used for it (section 2.10.8.3). The latest are remembered, for
 * DESTROY_SESSION, which must come over one of them (section 18.37.3).
 *
 * References: the client's list holds one while the session lives, a request that uses it another;
 * a session holds one of its client for as long as it exists.
 */
#ifndef RN_NFS4_CLIENT_SESSION_H
#define RN_NFS4_CLIENT_SESSION_H

#include "nfs4/client/slot.h"

#define NFS4_SESSIONS_PER_CLIENT 16u
#define NFS4_CONNS_PER_SESSION 32u /* remembered; Linux's client opens 16 at most */

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

struct nfs4_clients;

struct nfs4_session {
	/* Set when it is made. */
	uint8_t id[NFS4_SESSIONID_SIZE];
	struct nfs4_client *client;
	struct nfs4_channel fore, back;
	_Atomic uint32_t refs;
	LIST_ENTRY(nfs4_session) of_client; /* under the client's lock */
	LIST_ENTRY(nfs4_session) by_id;	    /* under the lock of its part of the table */
	uint32_t cb_program;		    /* under the client's lock */

	pthread_mutex_t lock; /* a leaf; what follows is under it */
	bool dead;	      /* destroyed: no request is taken any more */
	uint32_t busy;	      /* slots with a request under way */
	uint32_t nslots;      /* granted: 0 .. nslots - 1 are accepted */
	uint32_t target;      /* slots that the client is asked to use; fewer: to be retired */
	uint32_t asked;	      /* slots that it asked for at first: it never gets more */
	uint32_t nmade;	      /* slots that exist, a sum of pieces */
	/* Has the client seen the target? When it uses the slot again that the first reply with it
	 * belonged to. */
	enum { NFS4_NOT_TOLD, NFS4_TOLD, NFS4_SEEN } told;
	uint32_t told_slot, told_seqid;
	bool short_of_memory;		       /* as seen when somebody looked last */
	uint32_t ncached;		       /* replies kept */
	size_t cost;			       /* taken from the budget, cached replies too */
	uint32_t nconns;		       /* bound so far: the last ones are in conn */
	uint64_t conn[NFS4_CONNS_PER_SESSION]; /* rpc_conn.id, unique in this run */
	struct nfs4_slot *piece[NFS4_SLOT_PIECES];
};

/* The result of CREATE_SESSION that a retry gets. */
struct nfs4_cs_reply {
	int status;
	uint8_t id[NFS4_SESSIONID_SIZE];
	uint32_t seqid, flags;
	struct nfs4_channel fore, back;
};

/* Gives s its id. */
void nfs4_session_name(struct nfs4_session *s);
void nfs4_session_ref(struct nfs4_session *s);
void nfs4_session_put(struct nfs4_session *s); /* NULL is allowed */

struct nfs4_session *nfs4_session_get(struct nfs4_clients *all,
				      const uint8_t id[NFS4_SESSIONID_SIZE]);
/* nfs4/client/session_new.c: a session of cl that is in no table. NFS4_OK, NFS4ERR_DELAY or
 * NFS4ERR_NOSPC. */
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

/* The connection of that id is the session's from now on, and: is it? They take the session's lock.
 */
void nfs4_session_bind(struct nfs4_session *s, uint64_t conn);
bool nfs4_session_is_bound(struct nfs4_session *s, uint64_t conn);
/* nfs4_session_bind under the session's lock. */
void nfs4_session_bind_locked(struct nfs4_session *s, uint64_t conn);

#endif
