/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that RFC 7531, 5662 and 7863 allow a COMPOUND's reply; and parts of other replies. */
#ifndef RN_TESTS_FUZZ_SESSION_RESULTS_H
#define RN_TESTS_FUZZ_SESSION_RESULTS_H

#include "tests/fuzz/session/reader.h"

/* Reads the results of an NFSv4 procedure. Keeps stateids, session ids and client ids for later
 * calls. */
void ss_compound_check(struct ss_in *in, uint32_t proc);
/* Reads an ACL of NFSACL. */
void ss_get_acl(struct ss_in *in);

#endif
