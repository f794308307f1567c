/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/told.h"

#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"

bool nfs4_told_begin(struct nfs4_compound *c, enum rn_level level, struct nfs4_told *t)
{
	const struct sockaddr_storage *peer = &c->req->conn->peer;
	struct rn_host host;

	if (!rn_log_wants(c->server->cfg.log, level))
		return false;
	rn_host_of((const struct sockaddr *)peer, &host);
	if (!rn_log_hosts_pass(&c->server->told, &host, c->req->arrived_ns, &t->left_out))
		return false;
	rpc_address_text(peer, t->client);
	return true;
}

void nfs4_told_end(struct nfs4_compound *c, const struct nfs4_told *t)
{
	if (t->left_out)
		rn_notice(c->server->cfg.log, "%s: %u more messages about NFSv4 are not shown",
			  t->client, t->left_out);
}
