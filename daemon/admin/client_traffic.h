/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a client's row that tell of its calls and connections. */
#ifndef RN_DAEMON_ADMIN_CLIENT_TRAFFIC_H
#define RN_DAEMON_ADMIN_CLIENT_TRAFFIC_H

#include <jansson.h>
#include <stdbool.h>

#include "nfs4/nfs4_view.h"
#include "daemon/daemon_tls_users.h"
#include "rpc/conns.h"

/* Where a client's connections are looked up, and the users of their certificates. */
struct client_traffic {
	struct rpc_conns *conns;
	struct tls_users *users; /* or NULL */
};

/* detail: with the numbers of each operation, and a list of the connections. */
void client_add_traffic(json_t *row, const struct nfs4_view_client *v,
			const struct client_traffic *from, bool detail);

#endif
