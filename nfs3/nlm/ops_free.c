/* SPDX-License-Identifier: BSD-2-Clause */
/* FREE_ALL, and other ends of all that a client has. */
#include <errno.h>

#include "lib/error.h"
#include "nfs/caller.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/owners.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_state.h"
#include "nsm/nsm.h"

struct freeing {
	struct rpc_request *req;
	bool unknown; /* for some export it is not known yet whether the client may use it */
};

/* True if the call may touch the caller's locks below that export. The call names no file, so the
 * ports and flavours that each export accepts are checked here. */
static bool may_free(void *arg, uint32_t export_id)
{
	struct freeing *freeing = arg;
	struct rpc_request *req = freeing->req;
	const struct nfs3_server *s = req->program_ctx;
	const struct vfs_exports *exports = &s->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&req->conn->peer;
	struct vfs_access access;
	struct vfs_export *exp;
	const int rc = exports->by_id(exports->ctx, export_id, peer, &exp, &access);

	freeing->unknown |= rc == -RN_EUNNAMED;
	if (rc < 0)
		return false;
	vfs_export_put(exp);
	return nfs_check_port(&access, req->conn) == 0 &&
	       nfs_transport_allowed(&req->call.cred, &access) &&
	       ((access.flags & VFS_NO_AUTH_NLM) || nfs_flavor_allowed(&req->call.cred, &access));
}

/* A client has restarted: its locks are obsolete. Only locks from the caller's own address are
 * released. It has no new ones below an export that is not known to admit it, so they may be dropped
 * later. */
static enum rpc_run proc_free_all(struct rpc_request *req, void *args)
{
	struct nfs3_server *s = req->program_ctx;
	struct freeing freeing = { .req = req };
	const struct nlm_freed freed = {
		.peer = (const struct sockaddr *)&req->conn->peer,
		.caller = args,
		.may_free = may_free,
		.arg = &freeing,
	};

	/* The call names no file. In a datagram anybody could say this of the client. */
	if (req->conn->ops->datagrams)
		return RPC_RUN_DONE;
	do {
		freeing.unknown = false;
		nlm_owners_drop_client(s->nlm, &freed);
	} while (freeing.unknown && rpc_try_later(req, RN_WAIT_NAME, 0));
	/* The reply has no status: an error of RPC makes the client send the call again. */
	return freeing.unknown ? RPC_RUN_SYSTEM_ERR : RPC_RUN_DONE;
}

bool nlm_host_rebooted(struct nfs3_server *s, const struct nsm_reboot *r)
{
	return nlm_owners_drop_rebooted(s->nlm, r);
}

uint64_t nlm_revoke_exports(struct nfs3_server *s, const struct vfs_exports_lost *lost)
{
	return nlm_owners_revoke(s->nlm, lost);
}

uint64_t nlm_count_exports(struct nfs3_server *s, const struct vfs_exports_lost *lost)
{
	return nlm_owners_count(s->nlm, lost);
}

const struct rpc_proc nlm_proc_free_all = {
	.name = "FREE_ALL",
	.decode = nlm_decode_free_all,
	.args_size = sizeof(struct nlm_bytes),
	.run = proc_free_all,
	.flags = RPC_FOR_FORMER,
};
