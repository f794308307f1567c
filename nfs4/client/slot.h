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

#include "nfs4/client/client.h"

struct xdr_out;

#define NFS4_SLOTS_MAX 1024u /* of one session */
#define NFS4_SLOTS_FIRST 64u /* granted to start with, if memory is not short */
#define NFS4_SLOTS_LEAST 4u  /* however short it is */
#define NFS4_SLOT_PIECE 8u   /* slots of the first piece; further ones double what there is */
#define NFS4_SLOT_PIECES 8u  /* 8 + 8 + 16 + ... = 1024 */

/* A reply kept for a retry: the COMPOUND's result as a stream, and where bulk items were in it. */
struct nfs4_cached {
	uint32_t size; /* bytes of room; taken from the budget with this header */
	uint32_t len;
	uint32_t nbulks;
	struct {
		uint32_t at, len; /* in bytes */
	} bulk[2];
	uint8_t bytes[];
};

struct nfs4_slot {
	uint32_t seqid; /* of the request last taken */
	bool busy;	/* and it has not ended */
	bool cached;	/* its reply is in reply; else a retry is told NFS4ERR_RETRY_UNCACHED_REP */
	bool regranted; /* the client may begin anew with 1: it was retired meanwhile */
	uint32_t nops;
	struct nfs4_principal who; /* who has sent it */
	uint64_t sum;		   /* what it was: see nfs4_call_sum */
	struct nfs4_cached *reply;
};

#endif
