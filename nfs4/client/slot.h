/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a session's fore channel: the last request of each, and the reply for a retry (RFC
 * 8881 section 2.10.6.1). Slots are allocated in pieces when a client first uses them, so that a
 * session costs what its client uses. The session's lock guards them.
 */
#ifndef RN_NFS4_CLIENT_SLOT_H
#define RN_NFS4_CLIENT_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nfs4/audience.h"
#include "nfs4/client/nfs4_client.h"

#define NFS4_SLOTS_MAX 1024u /* per session */
#define NFS4_SLOTS_FIRST 64u /* granted at the start, if memory is not short */
#define NFS4_SLOTS_LEAST 4u  /* granted even if memory is short */
#define NFS4_SLOT_PIECE 8u   /* slots of the first piece; each further piece doubles the number */
#define NFS4_SLOT_PIECES 8u  /* 8 + 8 + 16 + ... = 1024 */

struct nfs4_compound;
struct nfs4_retry;
struct nfs4_session;

/* A reply kept for a retry: the COMPOUND's result as a stream. Behind it, for each of nbulks bulk
 * items, a pair of words: position and length. */
struct nfs4_cached {
	_Atomic uint32_t refs; /* held by the slot, and by retries being answered */
	uint32_t size;	       /* bytes allocated for words */
	uint32_t len;
	uint32_t nbulks;
	struct nfs4_audience audience; /* exports that a retry must be admitted to */
	uint32_t words[];
};

struct nfs4_slot {
	uint32_t seqid; /* sequence id of the last request accepted */
	bool busy;	/* the last request has not ended */
	bool used;	/* a request has been accepted here */
	bool cached;	/* its reply is kept; else a retry is answered NFS4ERR_RETRY_UNCACHED_REP */
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

void nfs4_cached_put(struct nfs4_cached *r); /* NULL is allowed */
/*
 * The result for a retry of that request: NFS4_REPLAYED, with a reference of the reply in *kept, or
 * NULL if it was not kept; NFS4ERR_DELAY: it is under way; NFS4ERR_SEQ_MISORDERED: it is not the
 * last one. s->lock is held.
 */
int nfs4_slot_reply(struct nfs4_session *s, uint32_t id, uint32_t seqid, struct nfs4_cached **kept);
/* Marks the request on the slot as ended; a retry that waits for it goes on. The caller holds no lock. */
void nfs4_slot_done(struct nfs4_session *s, struct nfs4_slot *slot);

void nfs4_slots_free(struct nfs4_session *s);

#endif
