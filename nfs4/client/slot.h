/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a session's fore channel: what has run on each, and the reply that a retry gets
 * (RFC 8881 section 2.10.6.1). Slots are made in pieces when a client first uses them, so that a
 * session costs what its client does, not what it might. A session's lock guards them.
 */
#ifndef RN_NFS4_CLIENT_SLOT_H
#define RN_NFS4_CLIENT_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nfs4/audience.h"
#include "nfs4/client/client.h"

#define NFS4_SLOTS_MAX 1024u /* of one session */
#define NFS4_SLOTS_FIRST 64u /* granted to start with, if memory is not short */
#define NFS4_SLOTS_LEAST 4u  /* however short it is */
#define NFS4_SLOT_PIECE 8u   /* slots of the first piece; further ones double what there is */
#define NFS4_SLOT_PIECES 8u  /* 8 + 8 + 16 + ... = 1024 */

struct nfs4_compound;
struct nfs4_retry;
struct nfs4_session;

/* A reply kept for a retry: the COMPOUND's result as a stream, and behind it, where bulk items were
 * in it: nbulks pairs of words, position and length. */
struct nfs4_cached {
	_Atomic uint32_t refs; /* the slot's, and those of retries that are being answered */
	uint32_t size;	       /* bytes of room */
	uint32_t len;
	uint32_t nbulks;
	struct nfs4_audience audience; /* who may have it */
	uint32_t words[];
};

struct nfs4_slot {
	uint32_t seqid; /* of the request last taken */
	bool busy;	/* and it has not ended */
	bool used;	/* has taken one */
	bool cached;	/* its reply is kept; else a retry is told NFS4ERR_RETRY_UNCACHED_REP */
	bool regranted; /* the client may begin anew with 1: it was retired meanwhile */
	bool whole;	/* sum is of the whole call */
	uint64_t sum;	/* what it was, and who has sent it: nfs4_call_sum() */
	struct nfs4_cached *reply; /* may be there without being of the last request */
	struct nfs4_retry *retry;  /* while it is busy: waits for the reply */
};

/*
 * A hash of a call and of the credential that it came with: c->in is behind SEQUENCE's arguments.
 * whole: keyed, of all of its bytes, data of RDMA chunks included, however they came to lie in
 * memory; for calls whose replies are kept, as nobody may have that of another call. Else of its
 * first bytes, and cheap: what is not kept is not given to anybody.
 */
uint64_t nfs4_call_sum(const struct nfs4_compound *c, bool whole);

/* The slot, made if it is its first use. NULL: no memory now. id < s->nslots. s->lock is held. */
struct nfs4_slot *nfs4_slot_get(struct nfs4_session *s, uint32_t id);

/* Grants more slots or asks for them back: once for each new request, before its reply. highest is
 * sa_highest_slotid; short_of_memory: cached replies and slots should become fewer. s->lock is
 * held. */
void nfs4_slots_adjust(struct nfs4_session *s, uint32_t id, uint32_t highest, bool short_of_memory);

/* Is there room for another reply of up to the session's limit? */
bool nfs4_slot_can_keep(const struct nfs4_session *s, const struct nfs4_slot *slot);
/* Keeps c's reply in c->slot, which is busy. The caller holds no lock. */
void nfs4_slot_keep(struct nfs4_compound *c);
/* Puts the kept reply into c->out instead of what is there. NFS4_REPLAYED, or NFS4ERR_DELAY: no
 * memory now. */
int nfs4_slot_replay(struct nfs4_compound *c, const struct nfs4_cached *r);
void nfs4_cached_put(struct nfs4_cached *r); /* NULL is allowed */
/* What a retry of that request is to get: NFS4_REPLAYED, with a reference of the reply in *kept, or
 * NULL if it was not kept; NFS4ERR_DELAY: it is under way; NFS4ERR_SEQ_MISORDERED: it is not the
 * last one. s->lock is held. */
int nfs4_slot_reply(struct nfs4_session *s, uint32_t id, uint32_t seqid, struct nfs4_cached **kept);
/* The request on the slot has ended. Returns the retry that waits for that, which the caller hands
 * to nfs4_retry_go_on(), or NULL. The caller holds no lock. */
struct nfs4_retry *nfs4_slot_done(struct nfs4_session *s, struct nfs4_slot *slot);

/* nfs4/client/retry.c, for SEQUENCE: c is the retry. Answers it; takes over the reference of kept
 * (or NULL). NFS4_OK, NFS4_REPLAYED, or a status. */
int nfs4_retry_answer(struct nfs4_compound *c, struct nfs4_session *s, struct nfs4_cached *kept);
/* It waits until its request ends: NFS4_PENDING, then nfs4_retry_waits() is to be called without
 * the lock; or NFS4ERR_DELAY: no memory. s->lock is held. */
int nfs4_retry_wait(struct nfs4_compound *c, struct nfs4_slot *slot, struct nfs4_retry **replaced);
void nfs4_retry_waits(struct nfs4_compound *c, struct nfs4_retry *replaced);
void nfs4_retry_go_on(struct nfs4_retry *r); /* NULL is allowed */

void nfs4_slots_free(struct nfs4_session *s);

#endif
