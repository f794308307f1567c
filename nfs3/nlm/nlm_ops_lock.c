/* SPDX-License-Identifier: BSD-2-Clause */
/* The procedures of NLM for byte-range locks, for a client's lock manager, and for the end of a client; and the table of all. */
#include <errno.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs/conflict.h"
#include "nfs/caller.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nfs3_state.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/nlm/nlm_grant.h"
#include "nfs3/nlm/owners.h"
#include "nsm/nsm.h"
#include "rpc/client.h"

static enum rpc_run nlm_lock_answer(struct nfs3_op *op, const struct nlm_bytes *cookie,
				    enum nlm4_stat stat, int rc)
{
	return nlm_answer(op, &(struct nlm_result){ .cookie = cookie, .stat = stat }, rc);
}

struct nfs3_op *nlm_begin(struct rpc_request *req)
{
	const struct nfs3_server *s = req->program_ctx;

	/* The monitor's thread sends the answer. */
	return nlm_is_message(req) && !s->cfg.nsm ? NULL : nfs3_op_begin(req);
}

static struct nlm_owners *owners_of(const struct nfs3_op *op)
{
	return op->server->nlm;
}

int nlm_open(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_owner_key *key)
{
	int rc = a->fh.len ? nfs3_op_open(op, &a->fh, NFS3_OPEN_LOCK) : -EBADF;

	nlm_owner_key(owners_of(op), (const struct sockaddr *)&op->req->conn->peer, a, key);
	return rc == 0 && a->beyond ? -EFBIG : rc;
}

/*
 * Access that a lock needs. An exclusive lock keeps writers out, so the caller must be able to
 * write the file, on a writable export. A shared lock needs read or write access, since the caller
 * has opened the file somehow. The owner may lock whatever the mode says: it may have changed since
 * he opened the file.
 */
static int nlm_lock_check_access(struct nfs3_op *op, bool exclusive)
{
	const uint32_t flags = op->ctx.access.flags;
	int rc = exclusive ? -EACCES : vfs_may_read(&op->ctx, op->node[0]);

	if (flags & VFS_NO_AUTH_NLM) /* exports(5) insecure_locks */
		return exclusive && (flags & VFS_RO) ? -EROFS : 0;
	return rc == -EACCES ? vfs_may_write(&op->ctx, op->node[0]) : rc;
}

static struct vfs_lock_request nlm_lock_request_of(const struct nlm_lock_args *a)
{
	return (struct vfs_lock_request){
		.type = a->exclusive ? VFS_LOCK_WRITE : VFS_LOCK_READ,
		.offset = a->offset,
		.length = a->length ? a->length : UINT64_MAX,
		.reclaim = a->reclaim,
	};
}

/* Tests for a lock, or gets it. *c is for the caller to put. */
static int nlm_try_lock(struct nfs3_op *op, struct nlm_owner *o, const struct vfs_lock_request *r,
			bool test, struct vfs_conflict *c)
{
	struct vfs_lock_owner *locks = o ? &o->locks : NULL;
	struct vfs_node *n = op->node[0];
	int rc;

	do {
		rc = test ? vfs_lock_test(&op->ctx, n, locks, r, c)
			  : vfs_lock(&op->ctx, n, locks, r, c);
		if (rc == -RN_EDENIED)
			rc = nfs_conflict(c, rc);
	} while (rc == -RN_EYIELDED && nfs3_op_await(op, rc));
	return rc;
}

/* A call that may block does not wait for a lock that its holder is about to lose: its client is told when it gets the lock. A client
 * that reclaims waits for no such word. */
static bool nlm_await(struct nfs3_op *op, int rc, bool blocks)
{
	return (rc == -RN_EDELEG || (rc == -RN_EYIELDS && !blocks)) && nfs3_op_await(op, rc);
}

/* During grace only earlier locks may be reclaimed, afterwards none may be: clients of NFSv4 and
 * NLM wait for each other's reclaims. A client that is told of grace asks again by itself, every few
 * seconds. */
/* A client that the run before has told of a restart may come before this run takes reclaims. Linux's gives up a lock whose reclaim is refused, and
 * does not tell its user. */
static void nlm_await_reclaims(struct nfs3_op *op)
{
	const struct nfs3_config *cfg = &op->server->cfg;

	while (cfg->in_grace && cfg->in_grace(cfg->grace_ctx, NFS3_RECLAIMS_LATER) &&
	       nfs3_op_await(op, -RN_EYIELDS))
		;
}

bool nlm_wrong_time(struct nfs3_op *op, bool reclaim)
{
	const struct nfs3_config *cfg = &op->server->cfg;

	if (reclaim)
		nlm_await_reclaims(op);
	if (!reclaim && vfs_export_is_draining(op->ctx.exp))
		return true;
	return reclaim !=
	       (cfg->in_grace &&
		cfg->in_grace(cfg->grace_ctx, reclaim ? NFS3_RECLAIMING : NFS3_LOCKS_WAIT));
}

/* *c is for the caller to put. */
static int nlm_test_lock(struct nfs3_op *op, const struct nlm_owner_key *key,
			 const struct vfs_lock_request *r, struct vfs_conflict *c)
{
	struct nlm_owner *o;
	int rc;

	do {
		rc = nlm_owner_enter(owners_of(op), op, key, false, &o);
		if (rc != 0)
			return rc;
		rc = nlm_try_lock(op, o, r, true, c);
		nlm_owner_leave(owners_of(op), o);
	} while (nlm_await(op, rc, false));
	return rc;
}

static enum rpc_run proc_test(struct rpc_request *req, void *args)
{
	const struct nlm_lock_args *a = args;
	const struct vfs_lock_request r = nlm_lock_request_of(a);
	struct vfs_conflict c = { .type = r.type, .offset = r.offset, .length = r.length };
	struct nlm_result result = { .cookie = &a->cookie, .holder = &c };
	struct nfs3_op *op = nlm_begin(req);
	struct nlm_owner_key key;
	enum rpc_run how;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nlm_open(op, a, &key);
	if (rc == 0)
		rc = nlm_lock_check_access(op, a->exclusive);
	if (rc == 0 && nlm_wrong_time(op, false))
		return nlm_lock_answer(op, &a->cookie, NLM4_DENIED_GRACE_PERIOD, 0);
	if (rc == 0)
		rc = nlm_test_lock(op, &key, &r, &c);
	result.stat = nlm_status(rc);
	how = nlm_answer(op, &result, rc);
	vfs_conflict_put(&c);
	return how;
}

/* Also settles what was granted of the range. */
static int nlm_unlock(struct nfs3_op *op, struct nlm_owner *o, const struct nlm_lock_args *a)
{
	nlm_grants_settle(o, a->offset, a->length);
	return vfs_unlock(&op->ctx, &o->locks, a->offset, a->length ? a->length : UINT64_MAX);
}

/* Puts the client on record before it gets a lock. *host is then for the caller to put. flags: as nsm_host_get. */
int nlm_monitor(struct nfs3_op *op, const struct nlm_lock_args *a, unsigned flags,
		struct nsm_host **host)
{
	const struct rpc_conn *conn = op->req->conn;
	struct nsm_peer peer = { .name = a->caller.data, .name_len = a->caller.len };
	int rc;

	*host = NULL;
	if (!a->monitor || !op->server->cfg.nsm)
		return 0;
	rpc_address_of(&conn->peer, &peer.addr);
	rpc_address_of(&conn->local, &peer.local);
	if (a->reclaim)
		flags |= NSM_RECLAIM;
	if (conn->ops->datagrams)
		flags |= NSM_BY_DATAGRAM;
	if (conn->client && atomic_load(&conn->client->connected))
		flags |= NSM_CONNECTED;
	do
		rc = nsm_host_get(op->server->cfg.nsm, &peer, flags, host);
	while (rc == -RN_ESOON && rpc_try_later(op->req, RN_WAIT_RECORD, 0));
	if (rc == -EINPROGRESS)
		return -RN_ESOON;
	return rc == -EPERM ? -RN_EDENIED : rc;
}

/* Puts the client on record as nlm_monitor does, unless it does not wait and its lock would be refused: a client that asks again and
 * again for another's lock causes no writes. */
static int monitor_unless_refused(struct nfs3_op *op, const struct nlm_lock_args *a,
				  const struct nlm_owner_key *key, const struct vfs_lock_request *r,
				  struct nsm_host **host)
{
	struct vfs_conflict c = { .holder = NULL };
	int rc;

	if (a->block || a->reclaim)
		return nlm_monitor(op, a, 0, host);
	rc = nlm_monitor(op, a, NSM_ON_RECORD, host);
	if (rc != -ENOENT)
		return rc;
	rc = nlm_test_lock(op, key, r, &c);
	vfs_conflict_put(&c);
	return nlm_status(rc) == NLM4_DENIED ? rc : nlm_monitor(op, a, 0, host);
}

/* g: the lock is for a grant; NULL: for the call itself. */
static int lock_file(struct nfs3_op *op, const struct nlm_lock_args *a,
		     const struct nlm_owner_key *key, struct nlm_grant *g)
{
	struct vfs_lock_request r = nlm_lock_request_of(a);
	struct vfs_conflict c = { .holder = NULL };
	struct nsm_host *host;
	struct nlm_owner *o;
	int rc = monitor_unless_refused(op, a, key, &r, &host);

	if (rc != 0)
		return rc;
	rc = nlm_owner_enter(owners_of(op), op, key, true, &o);
	if (rc != 0) {
		nsm_host_drop(op->server->cfg.nsm, host);
		return rc;
	}
	nlm_owner_monitor(owners_of(op), o, host, a->state);
	if (!g) {
		nlm_grants_settle(o, a->offset, a->length);
		nlm_grants_forget(op->server->grants, key->hash);
	}
	r.waiter = a->block ? key->hash : 0;
	rc = nlm_owner_has_room(owners_of(op), o) ? nlm_try_lock(op, o, &r, false, &c) : -ENOLCK;
	if (rc == 0 && !nfs_still_served(&op->server->cfg.exports, op->export_id, op->req->conn)) {
		nlm_owner_drop(o);
		rc = -ESTALE;
	}
	if (nlm_status(rc) == NLM4_DENIED)
		nlm_grant_wait(op, a, o, &r,
			       &(struct nlm_refusal){ .by_local = !c.holder && !c.kept &&
								  rc == -RN_EDENIED,
						      .grant = g });
	else if (rc == 0 && g)
		nlm_grant_link(o, g);
	nlm_owner_leave(owners_of(op), o);
	vfs_conflict_put(&c);
	return rc;
}

static enum rpc_run nlm_run_lock(struct rpc_request *req, const struct nlm_lock_args *a)
{
	struct nfs3_op *op = nlm_begin(req);
	struct nlm_owner_key key;
	enum nlm4_stat stat;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nlm_open(op, a, &key);
	if (rc == 0)
		rc = nlm_lock_check_access(op, a->exclusive);
	if (rc == 0)
		do /* grace may end during a wait */
			rc = nlm_wrong_time(op, a->reclaim) ? -RN_EGRACE
							    : lock_file(op, a, &key, NULL);
		while (nlm_await(op, rc, a->block && !a->reclaim));
	stat = nlm_status(rc);
	return nlm_lock_answer(op, &a->cookie,
			       stat == NLM4_DENIED && a->block ? NLM4_BLOCKED : stat, rc);
}

int nlm_grant_lock(struct nfs3_op *op, const struct nlm_lock_args *a, struct nlm_grant *g)
{
	struct nlm_owner_key key;
	int rc = nlm_open(op, a, &key);

	if (rc == 0)
		rc = nlm_lock_check_access(op, a->exclusive);
	if (rc == 0 && nlm_wrong_time(op, false))
		rc = -RN_EGRACE;
	return rc == 0 ? lock_file(op, a, &key, g) : rc;
}

int nlm_grant_unlock(struct nfs3_op *op, const struct nlm_lock_args *a, const struct nlm_grant *g)
{
	struct nlm_owner_key key;
	struct nlm_owner *o;
	int rc = nlm_open(op, a, &key);

	if (rc == 0)
		rc = nlm_owner_enter(owners_of(op), op, &key, false, &o);
	if (rc == 0 && o) {
		if (!nlm_grant_is_settled(g))
			rc = nlm_unlock(op, o, a);
		nlm_owner_leave(owners_of(op), o);
	}
	return rc;
}

static enum rpc_run proc_lock(struct rpc_request *req, void *args)
{
	struct nlm_lock_args *a = args;

	a->monitor = true;
	return nlm_run_lock(req, a);
}

static enum rpc_run proc_nm_lock(struct rpc_request *req, void *args)
{
	return nlm_run_lock(req, args);
}

static enum rpc_run proc_cancel(struct rpc_request *req, void *args)
{
	const struct nlm_lock_args *a = args;
	struct nfs3_op *op = nlm_begin(req);
	struct nlm_owner_key key;
	struct nlm_owner *o = NULL;
	struct vfs_file *f;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nlm_open(op, a, &key);
	if (rc == 0)
		rc = vfs_file_get(&op->ctx, op->node[0], &f);
	if (rc == 0) {
		vfs_lock_forget_waiter(f, key.hash);
		vfs_file_put(f);
		nlm_grants_forget(op->server->grants, key.hash);
		rc = nlm_owner_enter(owners_of(op), op, &key, false, &o);
	}
	/* The lock may have been granted, and the client not know it yet. */
	if (o && nlm_grants_settle(o, a->offset, a->length))
		rc = nlm_unlock(op, o, a);
	nlm_owner_leave(owners_of(op), o);
	return nlm_lock_answer(op, &a->cookie, nlm_status(rc), rc);
}

static enum rpc_run proc_unlock(struct rpc_request *req, void *args)
{
	const struct nlm_lock_args *a = args;
	struct nfs3_op *op = nlm_begin(req);
	struct nlm_owner_key key;
	struct nlm_owner *o;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nlm_open(op, a, &key);
	if (rc == 0)
		rc = nlm_owner_enter(owners_of(op), op, &key, false, &o);
	if (rc == 0 && o) {
		rc = nlm_unlock(op, o, a);
		nlm_owner_leave(owners_of(op), o);
	}
	return nlm_lock_answer(op, &a->cookie, nlm_status(rc), rc);
}

/* Through the reply cache: a LOCK that comes again after the UNLOCK would stay for ever. */
#define RESULT_SIZE (4 + NLM_OPAQUE_MAX + 4)
#define MESSAGE_SIZE 4u /* at least; the reply is empty */

#define ROW(row, text, decoder, proc, bits, size)                                                  \
	const struct rpc_proc row = {                                                              \
		.name = text,                                                                      \
		.decode = decoder,                                                                 \
		.args_size = sizeof(struct nlm_lock_args),                                         \
		.run = proc,                                                                       \
		.flags = bits,                                                                     \
		.reply_size = size,                                                                \
	}

/* A procedure and its message, for version 4 and for the older ones. */
#define ROWS(name, text, proc, bits, size, message)                                                \
	ROW(nlm_proc_##name, text, nlm_decode_##name, proc, bits, size);                           \
	ROW(nlm_proc_##name##_old, text, nlm_decode_##name##_old, proc, bits, size);               \
	ROW(nlm_proc_##name##_msg, text "_MSG", nlm_decode_##name, proc, bits, message);           \
	ROW(nlm_proc_##name##_msg_old, text "_MSG", nlm_decode_##name##_old, proc, bits, message)

ROWS(test, "TEST", proc_test, 0, 0, 0);
ROWS(lock, "LOCK", proc_lock, RPC_NONIDEMPOTENT, RESULT_SIZE, MESSAGE_SIZE);
ROWS(cancel, "CANCEL", proc_cancel, RPC_NONIDEMPOTENT | RPC_FOR_RECENT, RESULT_SIZE, MESSAGE_SIZE);
ROWS(unlock, "UNLOCK", proc_unlock, RPC_NONIDEMPOTENT | RPC_FOR_RECENT, RESULT_SIZE, MESSAGE_SIZE);
ROW(nlm_proc_nm_lock, "NM_LOCK", nlm_decode_lock, proc_nm_lock, RPC_NONIDEMPOTENT, RESULT_SIZE);
ROW(nlm_proc_nm_lock_old, "NM_LOCK", nlm_decode_lock_old, proc_nm_lock, RPC_NONIDEMPOTENT,
    RESULT_SIZE);

/* Procedures for a client's lock manager, which this server is not, and the answer to GRANTED_MSG. */

/* This server waits for nobody's lock. */
static enum rpc_run proc_granted(struct rpc_request *req, void *args)
{
	const struct nlm_lock_args *a = args;
	const struct nfs3_server *s = req->program_ctx;

	if (nlm_is_message(req) && !s->cfg.nsm)
		return RPC_RUN_SYSTEM_ERR;
	nlm_reply(req, &(struct nlm_result){ .cookie = &a->cookie, .stat = NLM4_DENIED });
	return RPC_RUN_DONE;
}

static enum rpc_run proc_granted_res(struct rpc_request *req, void *args)
{
	const struct nlm_res_args *a = args;
	const struct nfs3_server *s = req->program_ctx;

	nlm_grants_answered(s->grants, &req->conn->peer, &a->cookie, a->stat);
	return RPC_RUN_DONE;
}

#define GRANTED_ROW(row, text, decoder)                                                            \
	const struct rpc_proc row = {                                                              \
		.name = text,                                                                      \
		.decode = decoder,                                                                 \
		.args_size = sizeof(struct nlm_lock_args),                                         \
		.run = proc_granted,                                                               \
	}

GRANTED_ROW(nlm_proc_granted, "GRANTED", nlm_decode_test);
GRANTED_ROW(nlm_proc_granted_old, "GRANTED", nlm_decode_test_old);
GRANTED_ROW(nlm_proc_granted_msg, "GRANTED_MSG", nlm_decode_test);
GRANTED_ROW(nlm_proc_granted_msg_old, "GRANTED_MSG", nlm_decode_test_old);

/* The server sends no messages that these would answer. */
const struct rpc_proc nlm_proc_test_res = { .name = "TEST_RES" };
const struct rpc_proc nlm_proc_lock_res = { .name = "LOCK_RES" };
const struct rpc_proc nlm_proc_cancel_res = { .name = "CANCEL_RES" };
const struct rpc_proc nlm_proc_unlock_res = { .name = "UNLOCK_RES" };

const struct rpc_proc nlm_proc_granted_res = {
	.name = "GRANTED_RES",
	.decode = nlm_decode_res,
	.args_size = sizeof(struct nlm_res_args),
	.run = proc_granted_res,
	.flags = RPC_FOR_RECENT,
};

/* FREE_ALL, and other ends of all that a client has. */

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

void nlm_save(struct nfs3_server *s, struct image_writer *w)
{
	nlm_owners_save(s->nlm, w);
	nlm_grants_save(s->grants, w);
}

int nlm_load(struct nfs3_server *s, struct image_reader *image)
{
	const int rc = nlm_owners_load(s->nlm, s->cfg.vfs, image);

	return rc ? rc : nlm_grants_load(s->grants, image);
}

const struct rpc_proc nlm_proc_free_all = {
	.name = "FREE_ALL",
	.decode = nlm_decode_free_all,
	.args_size = sizeof(struct nlm_bytes),
	.run = proc_free_all,
	.flags = RPC_FOR_RECENT,
};

/* The versions of NLM, and their procedures by number. */

/* old: empty, or _old for the versions with offsets of 32 bits. */
#define COMMON_PROCS(old)                                                                          \
	[NLMPROC4_NULL] = &rpc_proc_null, [NLMPROC4_TEST] = &nlm_proc_test##old,                   \
	[NLMPROC4_LOCK] = &nlm_proc_lock##old, [NLMPROC4_CANCEL] = &nlm_proc_cancel##old,          \
	[NLMPROC4_UNLOCK] = &nlm_proc_unlock##old, [NLMPROC4_GRANTED] = &nlm_proc_granted##old,    \
	[NLMPROC4_TEST_MSG] = &nlm_proc_test_msg##old,                                             \
	[NLMPROC4_LOCK_MSG] = &nlm_proc_lock_msg##old,                                             \
	[NLMPROC4_CANCEL_MSG] = &nlm_proc_cancel_msg##old,                                         \
	[NLMPROC4_UNLOCK_MSG] = &nlm_proc_unlock_msg##old,                                         \
	[NLMPROC4_GRANTED_MSG] = &nlm_proc_granted_msg##old,                                       \
	[NLMPROC4_TEST_RES] = &nlm_proc_test_res, [NLMPROC4_LOCK_RES] = &nlm_proc_lock_res,        \
	[NLMPROC4_CANCEL_RES] = &nlm_proc_cancel_res,                                              \
	[NLMPROC4_UNLOCK_RES] = &nlm_proc_unlock_res,                                              \
	[NLMPROC4_GRANTED_RES] = &nlm_proc_granted_res

#define SHARE_PROCS(old)                                                                           \
	[NLMPROC4_SHARE] = &nlm_proc_share, [NLMPROC4_UNSHARE] = &nlm_proc_unshare,                \
	[NLMPROC4_NM_LOCK] = &nlm_proc_nm_lock##old, [NLMPROC4_FREE_ALL] = &nlm_proc_free_all

static const struct rpc_proc *const v1_procs[NLMPROC_V1_COUNT] = { COMMON_PROCS(_old) };
static const struct rpc_proc *const v3_procs[NLMPROC4_COUNT] = { COMMON_PROCS(_old),
								 SHARE_PROCS(_old) };
static const struct rpc_proc *const v4_procs[NLMPROC4_COUNT] = { COMMON_PROCS(), SHARE_PROCS() };

static const struct rpc_version versions[] = {
	{ .vers = 1, .procs = v1_procs, .nprocs = NLMPROC_V1_COUNT },
	{ .vers = 3, .procs = v3_procs, .nprocs = NLMPROC4_COUNT },
	{ .vers = NLM_VERSION, .procs = v4_procs, .nprocs = NLMPROC4_COUNT },
};

void nlm_program(struct nfs3_server *s, struct rpc_program *nlm)
{
	*nlm = (struct rpc_program){
		.prog = NLM_PROGRAM,
		.name = "nlm",
		.versions = versions,
		.nversions = rn_array_size(versions),
		.ctx = s,
	};
}
