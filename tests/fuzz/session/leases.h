/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases of a local process (fcntl(2), F_SETLEASE), as Samba takes for its clients' oplocks. */
#ifndef RN_TESTS_FUZZ_SESSION_LEASES_H
#define RN_TESTS_FUZZ_SESSION_LEASES_H

#include <stdbool.h>

#include "tests/fuzz/session/message.h"

void ss_leases_start(void);
/* how: takes one of a new file, the handle of which becomes SS_FH_LEASED; gives it up; or takes one,
 * reads by the server, which must neither wait nor read, gives it up and reads. */
void ss_leases_step(unsigned how, uint16_t port, struct ss_values *v);
/* Gives up what is held: before this thread opens anything itself. */
void ss_leases_end(void);
/* Is one held? Nothing that the server does may wait for it. */
bool ss_leases_held(void);

#endif
