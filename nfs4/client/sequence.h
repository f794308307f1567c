/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of SEQUENCE, for new requests and for retries. */
#ifndef RN_NFS4_CLIENT_SEQUENCE_H
#define RN_NFS4_CLIENT_SEQUENCE_H

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

#endif
