/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/principals.h"

#include <errno.h>

#include "daemon/idmap.h"
#include "daemon/tls_users.h"
#include "rpc/principal.h"

static enum rpc_run by_kerberos(struct idmap *idmap, struct rpc_request *req)
{
	const struct sockaddr *peer = (const struct sockaddr *)&req->conn->peer;
	struct rpc_cred *cred = &req->call.cred;
	const int rc = idmap_principal(idmap, peer, cred->principal->name, cred->principal->len,
				       &cred->uid, &cred->gid);

	/* Nobody knows yet whose files these are: better no answer than a wrong one. */
	if (rc == -EAGAIN)
		return req->must_answer ? RPC_RUN_SYSTEM_ERR : RPC_RUN_AGAIN;
	if (rc < 0)
		cred->uid = cred->gid = (uint32_t)-1;
	cred->ngids = 0;
	return RPC_RUN_DONE;
}

enum rpc_run principals_identify(void *ctx, struct rpc_request *req)
{
	const struct principals *p = ctx;

	if (req->secured)
		return p->idmap ? by_kerberos(p->idmap, req) : RPC_RUN_AUTH_BADCRED;
	return p->users ? tls_users_identify(p->users, req) : RPC_RUN_DONE;
}
