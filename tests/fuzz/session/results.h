/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a COMPOUND's reply one that the protocol knows (RFC 7531, 5662, 7863)? */
#ifndef RN_TESTS_FUZZ_SESSION_RESULTS_H
#define RN_TESTS_FUZZ_SESSION_RESULTS_H

#include "tests/fuzz/session/reader.h"

/* Reads the results of a procedure of NFSv4. Stateids, sessions and client ids are learned. */
void ss_compound_check(struct ss_in *in, uint32_t proc);

#endif
