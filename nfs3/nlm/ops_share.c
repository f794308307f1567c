/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SHARE and UNSHARE: DOS's modes of sharing a file. Opens of NFSv4 clients and these shares keep each other
 * out. READ and WRITE of NFSv3 name no owner, so they are not refused because of a share: it binds those who
 * ask for one.
 */
#include <errno.h>

#include "nfs/conflict.h"
#include "nfs/caller.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nfs3_state.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/nlm/owners.h"
#include "nsm/nsm.h"

static enum rpc_run nlm_share_answer(struct nfs3_op *op, const struct nlm_share_args *a,
				     enum nlm4_stat stat, int rc)
{
	return nlm_answer(
		op,
		&(struct nlm_result){ .cookie = &a->lock.cookie, .stat = stat, .sequence = true },
		rc);
}

/* Checks the caller's permission like that for an NFSv4 OPEN with this access. A caller who asks for no access
 * needs any permission. */
static int nlm_share_check_access(struct nfs3_op *op, uint32_t access)
{
	const unsigned want = (access & VFS_SHARE_READ ? VFS_MAY_READ : 0) |
			      (access & VFS_SHARE_WRITE ? VFS_MAY_WRITE : 0);
	int rc;

	if ((access & VFS_SHARE_WRITE) && (op->ctx.access.flags & VFS_RO))
		return -EROFS;
	if (op->ctx.access.flags & VFS_NO_AUTH_NLM)
		return 0;
	rc = vfs_open_check(&op->ctx, op->node[0], want ? want : VFS_MAY_READ);
	return rc == -EACCES && !want ? vfs_open_check(&op->ctx, op->node[0], VFS_MAY_WRITE) : rc;
}

static int change_share(struct nlm_owner *o, const struct nlm_share_args *a)
{
	struct vfs_conflict c = { .holder = NULL };
	int rc = vfs_share_change(&o->share, (uint8_t)a->access, (uint8_t)a->mode, &c);

	if (rc == -RN_ESHARE)
		rc = nfs_conflict(&c, rc);
	vfs_conflict_put(&c);
	return rc;
}

/* A further call of the same owner changes its share. */
static int share_file(struct nfs3_op *op, const struct nlm_share_args *a,
		      const struct nlm_owner_key *key)
{
	struct nlm_owners *owners = op->server->nlm;
	struct nlm_owner *o;
	struct nsm_host *host;
	int rc = nlm_monitor(op, &a->lock, 0, &host);

	if (rc != 0)
		return rc;
	rc = nlm_owner_enter(owners, op, key, true, &o);
	if (rc != 0) {
		nsm_host_drop(op->server->cfg.nsm, host);
		return rc;
	}
	nlm_owner_monitor(owners, o, host, host ? nsm_host_state(op->server->cfg.nsm, host) : 0);
	do
		rc = change_share(o, a);
	while (rc == -RN_EYIELDED && nfs3_op_await(op, rc));
	if (rc == 0 && !nfs_still_served(&op->server->cfg.exports, op->export_id, op->req->conn)) {
		nlm_owner_drop(o);
		rc = -ESTALE;
	}
	nlm_owner_leave(owners, o);
	return rc;
}

/* True if the share denies what none may; the log has it then. */
static bool nlm_share_denies(struct nfs3_op *op, const struct nlm_share_args *a)
{
	struct nfs3_server *s = op->server;
	char client[RPC_ADDRESS_TEXT];
	struct rn_host host;
	unsigned left_out;

	if (vfs_share_may_deny(s->cfg.vfs, (uint8_t)a->mode))
		return false;
	rn_host_of((const struct sockaddr *)&op->req->conn->peer, &host);
	if (!rn_log_hosts_pass(&s->told, &host, op->req->arrived_ns, &left_out))
		return true;
	rpc_address_text(&op->req->conn->peer, client);
	rn_notice(s->cfg.log,
		  "%s: SHARE that denies others access is refused, as other members of the cluster "
		  "do not see it (%u more messages about this client were not shown)",
		  client, left_out);
	return true;
}

static enum rpc_run proc_share(struct rpc_request *req, void *args)
{
	struct nlm_share_args *a = args;
	struct nfs3_op *op = nlm_begin(req);
	struct nlm_owner_key key;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	a->lock.monitor = true;
	rc = nlm_open(op, &a->lock, &key);
	nlm_owner_key_of_share(op->server->nlm, &key);
	if (rc == 0)
		rc = nlm_share_denies(op, a) ? -RN_ESHARE : nlm_share_check_access(op, a->access);
	if (rc == 0 && nlm_wrong_time(op, a->lock.reclaim))
		return nlm_share_answer(op, a, NLM4_DENIED_GRACE_PERIOD, 0);
	if (rc == 0)
		do
			rc = share_file(op, a, &key);
		while (nfs3_op_await(op, rc));
	return nlm_share_answer(op, a, nlm_status(rc), rc);
}

/* A share that is not there is no error. */
static enum rpc_run proc_unshare(struct rpc_request *req, void *args)
{
	const struct nlm_share_args *a = args;
	struct nfs3_op *op = nlm_begin(req);
	struct nlm_owner_key key;
	struct nlm_owner *o = NULL;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nlm_open(op, &a->lock, &key);
	nlm_owner_key_of_share(op->server->nlm, &key);
	if (rc == 0)
		rc = nlm_owner_enter(op->server->nlm, op, &key, false, &o);
	if (o) {
		nlm_owner_drop(o);
		nlm_owner_leave(op->server->nlm, o);
	}
	return nlm_share_answer(op, a, nlm_status(rc), rc);
}

#define RESULT_SIZE (4 + NLM_OPAQUE_MAX + 4 + 4)

const struct rpc_proc nlm_proc_share = {
	.name = "SHARE",
	.decode = nlm_decode_share,
	.args_size = sizeof(struct nlm_share_args),
	.run = proc_share,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = RESULT_SIZE,
};

const struct rpc_proc nlm_proc_unshare = {
	.name = "UNSHARE",
	.decode = nlm_decode_share,
	.args_size = sizeof(struct nlm_share_args),
	.run = proc_unshare,
	.flags = RPC_NONIDEMPOTENT | RPC_FOR_RECENT,
	.reply_size = RESULT_SIZE,
};
