/* SPDX-License-Identifier: BSD-2-Clause */
/* Which event thread gets a connection. Any thread. */
#ifndef RN_TRANSPORT_PLACEMENT_H
#define RN_TRANSPORT_PLACEMENT_H

#include "transport/event_loop.h"
#include "transport/load.h"

/* Load below which a thread counts as idle: connections are then placed by their number alone. */
#define EV_PLACE_IDLE (EV_LOAD_FULL / 2)

/*
 * Index of the loop for a new connection, which is counted there: the caller calls ev_load_leave
 * when it ends. Idle loops are equal, others go by load. Of equal ones the one with the fewest
 * connections is taken, the first of several; so connections to idle loops go round.
 */
unsigned ev_place(struct ev_loop *const *loops, unsigned n);
/* Index of the loop with the least load. */
unsigned ev_place_least(struct ev_loop *const *loops, unsigned n);

#endif
