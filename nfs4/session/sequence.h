/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions and their requests, inside of this folder: SEQUENCE, kept replies, retries. */
#ifndef RN_NFS4_SESSION_SEQUENCE_H
#define RN_NFS4_SESSION_SEQUENCE_H

#include "nfs4/client/session.h"

struct nfs4_sequence_args {
	uint8_t session[NFS4_SESSIONID_SIZE];
	uint32_t seqid, slot, highest;
	bool cache_this;
	uint64_t sum;			  /* nfs4_call_sum() */
	uint32_t highest_now, target_now; /* for the result */
	uint32_t cb_flags;		  /* of the callback path, for the result */
};

#define NFS4_SEQUENCE_RESULT (NFS4_SESSIONID_SIZE + 20u) /* bytes */
/* Puts the result; alive: true if the client's state has not expired. */
void nfs4_put_sequence(struct nfs4_compound *c, const struct nfs4_sequence_args *a,
		       const struct nfs4_session *s, bool alive);
/* SEQUENCE's flags for a session; cb_flags: nfs4_cb_flags(). Takes the client's lock. */
uint32_t nfs4_sequence_flags(const struct nfs4_session *s, uint32_t cb_flags, bool alive);
/* Fills in the part of the result that is under s->lock, which is held. */
void nfs4_sequence_look(struct nfs4_sequence_args *a, struct nfs4_session *s);

/* True if another reply of the session's maximum size can be kept. */
bool nfs4_slot_can_keep(const struct nfs4_session *s, const struct nfs4_slot *slot);
/* Keeps c's reply in c->slot, which is busy. The caller holds no lock. */
void nfs4_slot_keep(struct nfs4_compound *c);
/* Replaces the contents of c->out by the kept reply. NFS4_REPLAYED, or NFS4ERR_DELAY: no memory
 * now. */
int nfs4_slot_replay(struct nfs4_compound *c, const struct nfs4_cached *r);

/* Answers the retry c; takes over the reference of kept (or
 * NULL). NFS4_OK, NFS4_REPLAYED, or a status. */
int nfs4_retry_answer(struct nfs4_compound *c, struct nfs4_session *s, struct nfs4_cached *kept);
/* The same for a retry whose request is under way, after the wait for its end. The caller holds s->lock, which is not held
 * any more on return, and a reference of s. */
int nfs4_retry_wait(struct nfs4_compound *c, struct nfs4_session *s, struct nfs4_slot *slot);

/* Makes a session of cl that is in no table. NFS4_OK, NFS4ERR_DELAY or
 * NFS4ERR_NOSPC. */
int nfs4_session_new(struct nfs4_client *cl, const struct nfs4_channel *fore,
		     const struct nfs4_channel *back, struct nfs4_session **out);

/* True if the session should keep fewer replies, and so have fewer slots. */
bool nfs4_session_short_of_memory(const struct nfs4_session *s);
/* Asks for the slots of a session of cl that was idle since the last call, if memory is short (CB_RECALL_SLOT).
 * False: there was none to ask for. The caller holds a reference and no lock. */
bool nfs4_client_recall_slots(struct nfs4_client *cl);

#endif
