/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The group whose members may read on the control socket. Name services are asked by a thread of askers
 * (daemon/names/names.h), as one that is silent must hold up neither the start nor the stop of the server. Until
 * the answer only root may use the socket.
 */
#ifndef RN_DAEMON_ADMIN_READERS_H
#define RN_DAEMON_ADMIN_READERS_H

#include "admin/admin.h"
#include "daemon/names/names.h"

struct readers;

/* Asks for the group of that name, a constant. The readers are to be forgotten before the server is freed, which
 * is before askers_close(). NULL: no memory. */
struct readers *readers_ask(struct askers *askers, const char *group, struct admin_server *server,
			    const struct rn_logger *log);
/* An answer that comes later changes nothing. Frees, or leaves that to the answer. NULL is allowed. */
void readers_forget(struct readers *r);

#endif
