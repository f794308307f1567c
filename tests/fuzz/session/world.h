/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server under test, in this process and on its own threads: the daemon without its main(). It
 * is replaced now and then, so that stopping and what is left after it are tested too.
 */
#ifndef RN_TESTS_FUZZ_SESSION_WORLD_H
#define RN_TESTS_FUZZ_SESSION_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fuzz/session/message.h"

#define SS_MAX_RECORD (1088u << 10)

struct ss_world {
	uint16_t port;
	bool rdma;
	struct ss_values values; /* handles of the tree; sessions start from a copy */
};

/* Makes the tree and starts the server. NULL, or why it cannot be here. */
const char *ss_world_start(struct ss_world *w);
void ss_world_stop(void);

/* Before a session: the tree is as at the start, handles are right, and the server is not too old.
 */
void ss_world_prepare(struct ss_world *w);
/* After a session, with all its connections closed: the server is alive, and has given back what
 * the session had. Else a finding. */
void ss_world_check(struct ss_world *w);

/* What the daemon's main thread would do: read exports again, log counters, the tick of a second.
 */
void ss_world_admin(unsigned what);
/* Time goes on for the leases of NFSv4's clients; how: how much, and ticks of the clock. */
void ss_world_skip_time(unsigned how);
/* The exports are read again; some hosts are in none of them any more, or all again (0). */
void ss_world_hosts(unsigned variant);

#endif
