/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies on their way to the peer, and errors that no handler makes. */
#ifndef RN_ADMIN_ADMIN_REPLY_H
#define RN_ADMIN_ADMIN_REPLY_H

#include "admin/admin.h"

/* The word for programs of errors that HTTP itself has. */
const char *admin_code(int status);

struct evbuffer;

/* Puts the reply into the buffer, and lets go of it. */
void admin_reply_put(struct admin_reply *r, struct evbuffer *out);
/* Lets go of a reply that nobody gets. */
void admin_reply_drop(struct admin_reply *r);

#endif
