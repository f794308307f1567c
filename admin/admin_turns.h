/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread for the requests of readers, so that root's wait for none of them. The users take turns, each with a request
 * at a time. A user may have so many requests wait; one more is refused. If all have too many, the oldest
 * one of the user with most is refused.
 */
#ifndef RN_ADMIN_ADMIN_TURNS_H
#define RN_ADMIN_ADMIN_TURNS_H

#include "admin/later.h"
#include "lib/jobs.h"

#define ADMIN_TURNS_MAX 48u  /* requests that wait */
#define ADMIN_TURNS_USER 12u /* and those of one user */

/* NULL: no memory. It is freed before the laters. */
struct rn_jobs *admin_turns_new(void);
/* On the thread of the control socket: has the handler of req->call run when its turn comes, or answers that too many wait. The
 * request is copied. False: there is no memory; the caller answers. */
bool admin_turns_add(struct rn_jobs *t, const struct admin_request *req);

#endif
