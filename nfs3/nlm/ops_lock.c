/* SPDX-License-Identifier: BSD-2-Clause */
/* The procedures of NLM version 4 (RFC 1813 appendix II). */
#include <errno.h>

#include "nfs/attempt.h"
#include "nfs/caller.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/grant.h"
#include "nfs3/procs.h"
#include "nfs3/server.h"
#include "nsm/nsm.h"

static enum nlm4_stat status_of(int rc)
{
	switch (-rc) {
	case 0:
		return NLM4_GRANTED;
	case VFS_EDENIED:
	case EAGAIN:
		return NLM4_DENIED;
	/* the only status after which a client tries again that wants no blocking lock */
	case VFS_ELEASE:
	case VFS_EDELEG:
		return NLM4_DENIED_GRACE_PERIOD;
	case ENOLCK:
	case ENOMEM:
		return NLM4_DENIED_NOLOCKS;
	case ESTALE:
	case EBADF:
		return NLM4_STALE_FH;
	case EROFS:
		return NLM4_ROFS;
	case EFBIG:
	case EINVAL:
		return NLM4_FBIG;
	default:
		return NLM4_FAILED;
	}
}

static enum rpc_run answer(struct nfs3_op *op, const struct nlm_bytes *cookie, enum nlm4_stat stat,
			   int rc)
{
	xdr_put_opaque(&op->req->out, cookie->data, cookie->len);
	xdr_put_u32(&op->req->out, stat);
	return nfs3_op_end(op, rc);
}

static struct nlm_owners *owners_of(const struct nfs3_op *op)
{
	return op->server->nlm;
}

static int open_file(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_owner_key *key)
{
	int rc = a->fh.len ? nfs3_op_open(op, &a->fh, NFS3_OPEN_LOCK) : -EBADF;

	nlm_owner_key(owners_of(op), (const struct sockaddr *)&op->req->conn->peer, a, key);
	return rc;
}

/*
 * Access that a lock needs. An exclusive lock keeps writers out, so the caller must be able to
 * write the file, on a writable export. A shared lock needs read or write access, since the caller
 * has opened the file somehow. The owner may lock whatever the mode says: it may have changed since
 * he opened the file.
 */
static int check_access(struct nfs3_op *op, bool exclusive)
{
	const uint32_t flags = op->ctx.access.flags;
	int rc = exclusive ? -EACCES : vfs_may_read(&op->ctx, op->node[0]);

	if (flags & VFS_NO_AUTH_NLM) /* exports(5) insecure_locks */
		return exclusive && (flags & VFS_RO) ? -EROFS : 0;
	return rc == -EACCES ? vfs_may_write(&op->ctx, op->node[0]) : rc;
}

static struct vfs_lock_request request_of(const struct nlm_lock_args *a)
{
	return (struct vfs_lock_request){
		.type = a->exclusive ? VFS_LOCK_WRITE : VFS_LOCK_READ,
		.offset = a->offset,
		.length = a->length ? a->length : UINT64_MAX,
	};
}

struct locking {
	struct nfs3_op *op;
	struct vfs_lock_owner *locks;
	const struct vfs_lock_request *request;
	bool test;
	struct vfs_conflict *conflict;
};

static int lock_once(void *arg)
{
	const struct locking *l = arg;
	struct vfs_ctx *ctx = &l->op->ctx;
	struct vfs_node *n = l->op->node[0];
	int rc = l->test ? vfs_lock_test(ctx, n, l->locks, l->request, l->conflict)
			 : vfs_lock(ctx, n, l->locks, l->request, l->conflict);

	return rc == -VFS_EDENIED ? nfs_conflict(l->conflict, rc) : rc;
}

/* Tests for a lock, or gets it. *c is for the caller to put. */
static int try_lock(struct nfs3_op *op, struct nlm_owner *o, const struct vfs_lock_request *r,
		    bool test, struct vfs_conflict *c)
{
	struct locking l = { op, o ? &o->locks : NULL, r, test, c };

	return nfs3_op_attempt(lock_once, &l);
}

/* During grace only earlier locks may be reclaimed, afterwards none may be: clients of NFSv4 and
 * NLM wait for each other's reclaims. */
static bool wrong_time(const struct nfs3_op *op, bool reclaim)
{
	const struct nfs3_config *cfg = &op->server->cfg;

	return reclaim !=
	       (cfg->in_grace &&
		cfg->in_grace(cfg->grace_ctx, reclaim ? NFS3_RECLAIMING : NFS3_LOCKS_WAIT));
}

static void put_holder(struct xdr_out *x, const struct vfs_conflict *c)
{
	const struct nlm_owner *o = nlm_owner_of(c->holder);

	xdr_put_bool(x, c->type == VFS_LOCK_WRITE);
	xdr_put_u32(x, o ? (uint32_t)o->svid : 0);
	xdr_put_opaque(x, o ? o->bytes : NULL, o ? o->oh_len : 0);
	xdr_put_u64(x, c->offset);
	xdr_put_u64(x, c->length == UINT64_MAX ? 0 : c->length);
}

static enum rpc_run proc_test(struct rpc_request *req, void *args)
{
	const struct nlm_lock_args *a = args;
	const struct vfs_lock_request r = request_of(a);
	struct vfs_conflict c = { .type = r.type, .offset = r.offset, .length = r.length };
	struct nfs3_op *op = nfs3_op_begin(req);
	struct nlm_owner_key key;
	struct nlm_owner *o;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = open_file(op, a, &key);
	if (rc == 0)
		rc = check_access(op, a->exclusive);
	if (rc == 0 && wrong_time(op, false))
		return answer(op, &a->cookie, NLM4_DENIED_GRACE_PERIOD, 0);
	if (rc == 0)
		rc = nlm_owner_enter(owners_of(op), op, &key, false, &o);
	if (rc == 0) {
		rc = try_lock(op, o, &r, true, &c);
		nlm_owner_leave(owners_of(op), o);
	}
	xdr_put_opaque(&req->out, a->cookie.data, a->cookie.len);
	xdr_put_u32(&req->out, status_of(rc));
	if (status_of(rc) == NLM4_DENIED)
		put_holder(&req->out, &c);
	vfs_conflict_put(&c);
	return nfs3_op_end(op, rc);
}

/* Also settles what was granted of the range. */
static int unlock(struct nfs3_op *op, struct nlm_owner *o, const struct nlm_lock_args *a)
{
	nlm_grants_settle(o, a->offset, a->length);
	return vfs_unlock(&op->ctx, &o->locks, a->offset, a->length ? a->length : UINT64_MAX);
}

/* Puts the client on record before it gets a lock. *host is then for the caller to put. */
static int monitor(struct nfs3_op *op, const struct nlm_lock_args *a, struct nsm_host **host)
{
	const struct rpc_conn *conn = op->req->conn;
	struct nsm_peer peer = { .name = a->caller.data, .name_len = a->caller.len };
	int rc;

	*host = NULL;
	if (!a->monitor || !op->server->cfg.nsm)
		return 0;
	rpc_address_of(&conn->peer, &peer.addr);
	rpc_address_of(&conn->local, &peer.local);
	rc = nsm_host_get(op->server->cfg.nsm, &peer, host);
	if (rc == -EAGAIN)
		return op->req->must_answer ? -VFS_ELEASE : -NFS3_EWAIT;
	if (rc == 0 && a->reclaim && !nsm_host_is_former(op->server->cfg.nsm, *host)) {
		nsm_host_put(op->server->cfg.nsm, *host);
		*host = NULL;
		rc = -VFS_EDENIED;
	}
	return rc;
}

/* g: the lock is for a grant; NULL: for the call itself. */
static int lock_file(struct nfs3_op *op, const struct nlm_lock_args *a,
		     const struct nlm_owner_key *key, struct nlm_grant *g)
{
	struct vfs_lock_request r = request_of(a);
	struct vfs_conflict c = { .holder = NULL };
	struct nsm_host *host;
	struct nlm_owner *o;
	int rc = monitor(op, a, &host);

	if (rc != 0)
		return rc;
	rc = nlm_owner_enter(owners_of(op), op, key, true, &o);
	if (rc != 0) {
		if (host)
			nsm_host_put(op->server->cfg.nsm, host);
		return rc;
	}
	nlm_owner_monitor(owners_of(op), o, host, a->state);
	if (!g)
		nlm_grants_settle(o, a->offset, a->length);
	r.waiter = a->block ? key->hash : 0;
	rc = nlm_owners_have_room(owners_of(op)) ? try_lock(op, o, &r, false, &c) : -ENOLCK;
	if (rc == 0 && !nfs_still_served(&op->server->cfg.exports, op->export_id, op->req->conn)) {
		vfs_lock_drop_all(&o->locks);
		rc = -ESTALE;
	}
	if (status_of(rc) == NLM4_DENIED)
		nlm_grant_wait(op, a, o, &r, c.holder || c.kept || rc == -EAGAIN);
	else if (rc == 0 && g)
		nlm_grant_link(o, g);
	nlm_owner_leave(owners_of(op), o);
	vfs_conflict_put(&c);
	return rc;
}

static enum rpc_run run_lock(struct rpc_request *req, const struct nlm_lock_args *a)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	struct nlm_owner_key key;
	enum nlm4_stat stat;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = open_file(op, a, &key);
	if (rc == 0)
		rc = check_access(op, a->exclusive);
	/* A client that is told of grace asks again by itself, every few seconds. */
	if (rc == 0 &&
	    (wrong_time(op, a->reclaim) || (!a->reclaim && vfs_export_is_draining(op->ctx.exp))))
		return answer(op, &a->cookie, NLM4_DENIED_GRACE_PERIOD, 0);
	if (rc == 0)
		rc = lock_file(op, a, &key, NULL);
	stat = status_of(rc);
	return answer(op, &a->cookie, stat == NLM4_DENIED && a->block ? NLM4_BLOCKED : stat, rc);
}

int nlm_grant_lock(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_grant *g)
{
	struct nlm_owner_key key;
	int rc = open_file(op, a, &key);

	if (rc == 0)
		rc = check_access(op, a->exclusive);
	if (rc == 0 && (wrong_time(op, false) || vfs_export_is_draining(op->ctx.exp)))
		rc = -VFS_ELEASE;
	return rc == 0 ? lock_file(op, a, &key, g) : rc;
}

int nlm_grant_unlock(struct nfs3_op *op, const struct nlm_lock_args *a, const struct nlm_grant *g)
{
	struct nlm_owner_key key;
	struct nlm_owner *o;
	int rc = open_file(op, a, &key);

	if (rc == 0)
		rc = nlm_owner_enter(owners_of(op), op, &key, false, &o);
	if (rc == 0 && o) {
		if (!nlm_grant_is_settled(g))
			rc = unlock(op, o, a);
		nlm_owner_leave(owners_of(op), o);
	}
	return rc;
}

static enum rpc_run proc_lock(struct rpc_request *req, void *args)
{
	struct nlm_lock_args *a = args;

	a->monitor = true;
	return run_lock(req, a);
}

static enum rpc_run proc_nm_lock(struct rpc_request *req, void *args)
{
	return run_lock(req, args);
}

static enum rpc_run proc_cancel(struct rpc_request *req, void *args)
{
	const struct nlm_lock_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct nlm_owner_key key;
	struct nlm_owner *o = NULL;
	struct vfs_file *f;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = open_file(op, a, &key);
	if (rc == 0)
		rc = vfs_file_get(&op->ctx, op->node[0], &f);
	if (rc == 0) {
		vfs_lock_forget_waiter(f, key.hash);
		vfs_file_put(f);
		rc = nlm_owner_enter(owners_of(op), op, &key, false, &o);
	}
	/* The lock may have been granted, and the client not know it yet. */
	if (o && nlm_grants_settle(o, a->offset, a->length))
		rc = unlock(op, o, a);
	nlm_owner_leave(owners_of(op), o);
	return answer(op, &a->cookie, status_of(rc), rc);
}

static enum rpc_run proc_unlock(struct rpc_request *req, void *args)
{
	const struct nlm_lock_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct nlm_owner_key key;
	struct nlm_owner *o;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = open_file(op, a, &key);
	if (rc == 0)
		rc = nlm_owner_enter(owners_of(op), op, &key, false, &o);
	if (rc == 0 && o) {
		rc = unlock(op, o, a);
		nlm_owner_leave(owners_of(op), o);
	}
	return answer(op, &a->cookie, status_of(rc), rc);
}

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

	freeing->unknown |= rc == -EAGAIN;
	if (rc < 0)
		return false;
	vfs_export_put(exp);
	return nfs_check_port(&access, req->conn) == 0 &&
	       ((access.flags & VFS_NO_AUTH_NLM) || nfs_flavor_allowed(&req->call.cred, &access));
}

/* A client has restarted: its locks are obsolete. Only locks from the caller's own address are
 * released. It has no new ones below an export that is not known to admit it, so the call may be
 * run again. */
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

	nlm_owners_drop_client(s->nlm, &freed);
	if (!freeing.unknown)
		return RPC_RUN_DONE;
	/* The reply has no status: an error of RPC makes the client send the call again. */
	return req->must_answer ? RPC_RUN_SYSTEM_ERR : RPC_RUN_AGAIN;
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

/* Through the reply cache: a LOCK that comes again after the UNLOCK would stay for ever. */
#define RESULT_SIZE (4 + NLM_OPAQUE_MAX + 4)

const struct rpc_proc nlm_proc_test = {
	.name = "TEST",
	.decode = nlm_decode_test,
	.args_size = sizeof(struct nlm_lock_args),
	.run = proc_test,
};

const struct rpc_proc nlm_proc_lock = {
	.name = "LOCK",
	.decode = nlm_decode_lock,
	.args_size = sizeof(struct nlm_lock_args),
	.run = proc_lock,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = RESULT_SIZE,
};

const struct rpc_proc nlm_proc_cancel = {
	.name = "CANCEL",
	.decode = nlm_decode_cancel,
	.args_size = sizeof(struct nlm_lock_args),
	.run = proc_cancel,
	.flags = RPC_NONIDEMPOTENT | RPC_FOR_FORMER,
	.reply_size = RESULT_SIZE,
};

const struct rpc_proc nlm_proc_unlock = {
	.name = "UNLOCK",
	.decode = nlm_decode_unlock,
	.args_size = sizeof(struct nlm_lock_args),
	.run = proc_unlock,
	.flags = RPC_NONIDEMPOTENT | RPC_FOR_FORMER,
	.reply_size = RESULT_SIZE,
};

const struct rpc_proc nlm_proc_nm_lock = {
	.name = "NM_LOCK",
	.decode = nlm_decode_lock,
	.args_size = sizeof(struct nlm_lock_args),
	.run = proc_nm_lock,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = RESULT_SIZE,
};

const struct rpc_proc nlm_proc_free_all = {
	.name = "FREE_ALL",
	.decode = nlm_decode_free_all,
	.args_size = sizeof(struct nlm_bytes),
	.run = proc_free_all,
	.flags = RPC_FOR_FORMER,
};
