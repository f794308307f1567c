/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread for the requests of readers, so that root's wait for none of them. The users take turns, each with a request
 * at a time. A user, and all of them, may have so many requests wait; one more is refused.
 */
#ifndef RN_ADMIN_ADMIN_TURNS_H
#define RN_ADMIN_ADMIN_TURNS_H

#include "admin/later.h"

#define ADMIN_TURNS_MAX 48u  /* requests that wait */
#define ADMIN_TURNS_USER 12u /* and those of one user */

struct admin_turns;

/* Starts the thread, with all signals blocked. NULL: no memory. */
struct admin_turns *admin_turns_new(void);
/* Waits for the handler that runs; others that wait are not run. Before the laters are freed. NULL is allowed. */
void admin_turns_free(struct admin_turns *t);
/* On the thread of the control socket: has the handler of req->call run when its turn comes. The request is copied. False: too
 * many wait, or there is no memory; the caller answers. */
bool admin_turns_add(struct admin_turns *t, const struct admin_request *req);

#endif
