/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests about exports that may wait for file systems: the main thread works on them (daemon/tasks.h), and
 * the peer is answered then.
 */
#ifndef RN_DAEMON_ADMIN_EXPORTS_TASK_H
#define RN_DAEMON_ADMIN_EXPORTS_TASK_H

#include "daemon/admin/control_private.h"

/* A request, with copies of what it has. */
struct exports_task {
	struct control *control;
	uid_t uid;   /* of the peer */
	char *query; /* or NULL */
	char *body;  /* NUL-terminated */
	size_t body_len;
};

/* Has run called on the main thread, to fill the reply. */
void exports_task_start(struct control *c, const struct admin_request *req, struct admin_reply *r,
			void (*run)(const struct exports_task *t, struct admin_reply *r));

#endif
