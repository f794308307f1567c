/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/caller_image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rpc/principal.h"

struct rpc_saved_caller rpc_caller_save(const struct image_writer *w, const struct rpc_conn *conn,
					const struct rpc_cred *cred)
{
	struct rpc_saved_caller s = {
		.reliable = conn->ops->reliable,
		.keeps_port = conn->ops->keeps_port,
		.datagrams = conn->ops->datagrams,
		.mapped = cred->mapped,
		.unknown = cred->unknown,
		.peer = conn->peer,
		.local = conn->local,
		.conn = image_is_for_elsewhere(w) ? 0 : conn->id,
		.flavor = cred->flavor,
		.sec = cred->sec,
		.uid = cred->uid,
		.gid = cred->gid,
		.ngids = cred->ngids,
		.protection = (uint8_t)cred->protection,
	};

	snprintf(s.netid, sizeof(s.netid), "%s", conn->ops->netid);
	memcpy(s.gids, cred->gids, sizeof(s.gids));
	if (cred->principal)
		s.principal = (struct image_bytes){ (const uint8_t *)cred->principal->name,
						    (uint32_t)cred->principal->len };
	return s;
}

static void load_cred(const struct rpc_saved_caller *s, struct rpc_cred *out)
{
	*out = (struct rpc_cred){
		.flavor = (enum rpc_auth_flavor)s->flavor,
		.sec = (enum rpc_sec)s->sec,
		.protection = (enum rpc_protection)s->protection,
		.mapped = s->mapped,
		.unknown = s->unknown,
		.uid = s->uid,
		.gid = s->gid,
		.ngids = s->ngids,
	};
	memcpy(out->gids, s->gids, sizeof(out->gids));
}

int rpc_caller_load(const struct rpc_saved_caller *saved, struct rpc_clients *clients,
		    struct rpc_loaded_caller *out)
{
	if (saved->ngids > RPC_AUTH_SYS_GIDS_MAX || saved->protection > RPC_MUTUAL_TLS ||
	    saved->netid[sizeof(saved->netid) - 1] != '\0')
		return -EPROTO;
	memcpy(out->netid, saved->netid, sizeof(out->netid));
	out->ops = (struct rpc_conn_ops){ .netid = out->netid,
					  .reliable = saved->reliable,
					  .keeps_port = saved->keeps_port,
					  .datagrams = saved->datagrams };
	out->conn = (struct rpc_conn){
		.ops = &out->ops, .peer = saved->peer, .local = saved->local, .id = saved->conn
	};
	load_cred(saved, &out->cred);
	if (clients)
		out->conn.client = rpc_client_get(clients, &saved->peer);
	if (saved->principal.at)
		out->cred.principal =
			rpc_principal_new((const char *)saved->principal.at, saved->principal.len);
	if ((!clients || out->conn.client) && (!saved->principal.at || out->cred.principal))
		return 0;
	rpc_caller_put(out);
	return -ENOMEM;
}

void rpc_caller_put(struct rpc_loaded_caller *caller)
{
	rpc_client_put(caller->conn.client);
	rpc_principal_put(caller->cred.principal);
	caller->conn.client = NULL;
	caller->cred.principal = NULL;
}
