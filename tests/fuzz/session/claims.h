/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nobody gets what is not his (doc/design/nfs4-clients.md, doc/design/security.md): which
 * principal each client id, session and open of the session in hand belongs to, as replies told, and
 * what a call may therefore not succeed in. Claims are made only where the driver is certain; a call
 * whose bytes it has not seen whole, or whose user it cannot tell, is without one.
 */
#ifndef RN_TESTS_FUZZ_SESSION_CLAIMS_H
#define RN_TESTS_FUZZ_SESSION_CLAIMS_H

#include "tests/fuzz/session/reader.h"

/* What a call was found to be when it was sent: ss_call.claims. */
#define SS_CLAIM_CLIENT 0x1u   /* all client ids and sessions in it are another principal's */
#define SS_CLAIM_OPEN 0x2u     /* 4.0: all opens in it are another user's, of another's client */
#define SS_CLAIM_REPEATED 0x4u /* was sent before: a kept reply may answer it */

/* What is known is forgotten: a new session begins. squashed: the handle of the root where all users
 * are one. */
void ss_claims_reset(const struct ss_fh *squashed);
/* What may be claimed of a whole message that is about to be sent. */
uint8_t ss_claims_of(const uint8_t *msg, size_t len);

/* The principal of the one client that a message names by its id, as far as replies told. */
struct ss_who ss_claims_client_in(const uint8_t *msg, size_t len);

/* A reply said success: of the call, of an NFSv3 procedure, of an operation. Wrong where it must not
 * have been; ids that it brought are their principal's. */
void ss_claims_accepted(struct ss_in *in);
void ss_claims_proc3(struct ss_in *in, uint32_t proc, uint32_t status);
void ss_claims_op4(struct ss_in *in, uint32_t op, uint32_t status);

/* A reply may hold the secret only if its call came from who may read it. */
const char *ss_claims_secret(const struct ss_call *call, const uint8_t *msg, size_t len);

#endif
