/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases of a local process (fcntl(2), F_SETLEASE), as Samba takes for its clients' oplocks. */
#ifndef RN_TESTS_FUZZ_SESSION_LEASES_H
#define RN_TESTS_FUZZ_SESSION_LEASES_H

#include <stdbool.h>

#include "tests/fuzz/session/message.h"

void ss_leases_start(void);
/*
 * how: takes a lease of a new file, whose handle becomes SS_FH_LEASED; or gives the lease up; or
 * takes one, checks that READ by the server neither waits nor succeeds, gives it up and checks that
 * READ succeeds.
 */
void ss_leases_step(unsigned how, uint16_t port, struct ss_values *v);
/* Gives up the lease, if held. Call before this thread opens files itself. */
void ss_leases_end(void);
/* True while a lease is held. No call may wait for it. */
bool ss_leases_held(void);

#endif
