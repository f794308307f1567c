/* SPDX-License-Identifier: BSD-2-Clause */
/* The server under test, in this process and with its own threads: the daemon without main(). It is
 * replaced now and then, so that stopping it is tested too. */
#ifndef RN_TESTS_FUZZ_SESSION_WORLD_H
#define RN_TESTS_FUZZ_SESSION_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fuzz/session/message.h"

#define SS_MAX_RECORD (1088u << 10)

struct ss_world {
	uint16_t port;
	bool rdma;
	struct ss_values values; /* handles of the tree; each session starts from a copy */
};

/* Makes the tree and starts the server. NULL, or the reason why that failed. */
const char *ss_world_start(struct ss_world *w);
void ss_world_stop(void);

/* Call before a session: restores the tree and its handles, and replaces a server that has run many
 * sessions. */
void ss_world_prepare(struct ss_world *w);
/* Call after a session with all connections closed. A server that is dead, or has not given back
 * all memory and descriptors of the session, is a finding. */
void ss_world_check(struct ss_world *w);

/* Work of the daemon's main thread: reload, counters, or the tick of a second. */
void ss_world_admin(unsigned what);
/* Advances the clock of NFSv4 leases; how: by how much, and the number of ticks. */
void ss_world_skip_time(unsigned how);
#define SS_TIME_REVOKES (3u | 2u << 3) /* a little longer than a lease, and two ticks */
/* Delegations that clients have. */
bool ss_world_has_delegations(void);
/* True once for each connection that the server has closed because records waited for each other's
 * memory. */
bool ss_world_was_jammed(void);
/* Reloads the exports. variant: which hosts have no export; 0 for none. */
void ss_world_hosts(unsigned variant);

#endif
