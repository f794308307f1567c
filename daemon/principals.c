/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/principals.h"

#include <errno.h>

#include "daemon/idmap.h"
#include "daemon/daemon_tls_users.h"
#include "lib/error.h"
#include "nfs3/nfs3_server.h"
#include "rpc/principal.h"

static int by_kerberos(struct idmap *idmap, struct rpc_request *req)
{
	const struct sockaddr *peer = (const struct sockaddr *)&req->conn->peer;
	struct rpc_cred *cred = &req->call.cred;
	const int rc = idmap_principal(idmap, peer, cred->principal->name, cred->principal->len,
				       &cred->uid, &cred->gid);

	if (rc == -RN_EUNNAMED)
		return rc;
	if (rc < 0)
		cred->uid = cred->gid = (uint32_t)-1;
	cred->ngids = 0;
	return 0;
}

/*
 * Nobody knows yet whose files these are, and the call has waited long enough, or there is no room for it to wait: better no answer than a
 * wrong one. NFSv3 and NFSv4 have a word for "come again", which Linux's client obeys, while SYSTEM_ERR is an I/O error for its user. NFSv4's
 * state is that of the principal, whose name is known, but that of the certificate's user, who is not.
 */
static enum rpc_run come_again(struct rpc_request *req)
{
	const struct rpc_call *call = &req->call;
	struct rpc_cred *cred = &req->call.cred;

	if (call->prog != NFS_PROGRAM || call->vers < 3 || (call->vers > 3 && !req->secured))
		return RPC_RUN_SYSTEM_ERR;
	cred->unknown = true;
	cred->uid = cred->gid = (uint32_t)-1;
	cred->ngids = 0;
	return RPC_RUN_DONE;
}

/* 0, or -RN_EUNNAMED: the name service is being asked. */
static int principals_identify_call(const struct principals *p, struct rpc_request *req)
{
	if (req->secured)
		return by_kerberos(p->idmap, req);
	return p->users ? tls_users_identify(p->users, req) : 0;
}

enum rpc_run principals_identify(void *ctx, struct rpc_request *req)
{
	const struct principals *p = ctx;
	int rc;

	if (req->secured && !p->idmap)
		return RPC_RUN_AUTH_BADCRED;
	do
		rc = principals_identify_call(p, req);
	while (rc == -RN_EUNNAMED && rpc_try_later(req, RN_WAIT_USER, 0));
	req->call.cred.unknown = false;
	return rc == -RN_EUNNAMED ? come_again(req) : RPC_RUN_DONE;
}
