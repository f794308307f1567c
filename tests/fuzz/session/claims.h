/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that no client gets what belongs to another (doc/design/nfs4-clients.md,
 * doc/design/security.md). Replies tell which principal each client id, session and open of the
 * running session belongs to; calls by others that use them must fail. Claims are made only where
 * the driver is certain. A call that it has not seen whole, or whose user it cannot tell, has no
 * claim.
 */
#ifndef RN_TESTS_FUZZ_SESSION_CLAIMS_H
#define RN_TESTS_FUZZ_SESSION_CLAIMS_H

#include "tests/fuzz/session/reader.h"

/* ss_call.claims: properties of a call, found when it was sent. */
#define SS_CLAIM_CLIENT 0x1u /* all client ids and sessions in the call are another principal's */
/* 4.0: all opens in the call are another user's, of another principal's client */
#define SS_CLAIM_OPEN 0x2u
#define SS_CLAIM_REPEATED 0x4u /* retransmission: a cached reply may answer it */

/* Forgets all ids when a new session begins. squashed: root handle of the export that squashes all
 * users. */
void ss_claims_reset(const struct ss_fh *squashed);
/* SS_CLAIM_* flags of a whole message that is about to be sent. */
uint8_t ss_claims_of(const uint8_t *msg, size_t len);
/* The same for a principal that the message does not tell. */
uint8_t ss_claims_by(const uint8_t *msg, size_t len, const struct ss_who *who);

/* Principal of the one client that the message names by its id; unknown if none or several are
 * named. */
struct ss_who ss_claims_client_in(const uint8_t *msg, size_t len);

/* Check a reply that reports success of a call, an NFSv3 procedure or an NFSv4 operation. The reply
 * is wrong if the call had to fail. Ids in it are noted as the caller's. */
void ss_claims_accepted(struct ss_in *in);
void ss_claims_proc3(struct ss_in *in, uint32_t proc, uint32_t status);
void ss_claims_op4(struct ss_in *in, uint32_t op, uint32_t status);

/*
 * Checks that a reply holds the secret only if the caller may read it. Returns NULL, or the error.
 */
const char *ss_claims_secret(const struct ss_call *call, const uint8_t *msg, size_t len);

#endif
