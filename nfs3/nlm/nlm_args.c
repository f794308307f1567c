/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nfs3_state.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/nlm/owners.h"
#include "nsm/nsm.h"

static void get_bytes(struct xdr_in *x, struct nlm_bytes *b)
{
	b->data = xdr_get_opaque(x, NLM_OPAQUE_MAX, &b->len);
}

/* A handle that is longer than this server's, or empty, matches no file. */
static void nlm_get_file(struct xdr_in *x, struct nlm_lock_args *a)
{
	struct nlm_bytes fh;

	get_bytes(x, &a->caller);
	get_bytes(x, &fh);
	get_bytes(x, &a->oh);
	if (x->err || fh.len > VFS_FH_MAX)
		return;
	a->fh.len = fh.len;
	memcpy(a->fh.data, fh.data, fh.len);
}

/* Offsets are signed, as in Linux's lockd. A range that ends beyond the largest offset has no end. */
static void get_old_range(struct xdr_in *x, struct nlm_lock_args *a)
{
	const uint32_t offset = xdr_get_u32(x), length = xdr_get_u32(x);

	a->offset = offset;
	a->length = (uint64_t)offset + length > (uint64_t)INT32_MAX + 1 ? 0 : length;
	a->beyond = offset > INT32_MAX;
}

/* nlm4_lock, or nlm_lock of the older versions. */
static void get_lock(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	nlm_get_file(x, a);
	a->svid = (int32_t)xdr_get_u32(x);
	if (old) {
		get_old_range(x, a);
		return;
	}
	a->offset = xdr_get_u64(x);
	a->length = xdr_get_u64(x);
}

static bool get_test(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	get_bytes(x, &a->cookie);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a, old);
	return !x->err;
}

static bool get_cancel(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	get_bytes(x, &a->cookie);
	a->block = xdr_get_bool(x);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a, old);
	return !x->err;
}

static bool get_lock_args(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	get_cancel(x, a, old);
	a->reclaim = xdr_get_bool(x);
	a->state = xdr_get_u32(x);
	return !x->err;
}

static bool get_unlock(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	get_bytes(x, &a->cookie);
	get_lock(x, a, old);
	return !x->err;
}

bool nlm_decode_test(struct xdr_in *x, void *args)
{
	return get_test(x, args, false);
}

bool nlm_decode_lock(struct xdr_in *x, void *args)
{
	return get_lock_args(x, args, false);
}

bool nlm_decode_cancel(struct xdr_in *x, void *args)
{
	return get_cancel(x, args, false);
}

bool nlm_decode_unlock(struct xdr_in *x, void *args)
{
	return get_unlock(x, args, false);
}

bool nlm_decode_test_old(struct xdr_in *x, void *args)
{
	return get_test(x, args, true);
}

bool nlm_decode_lock_old(struct xdr_in *x, void *args)
{
	return get_lock_args(x, args, true);
}

bool nlm_decode_cancel_old(struct xdr_in *x, void *args)
{
	return get_cancel(x, args, true);
}

bool nlm_decode_unlock_old(struct xdr_in *x, void *args)
{
	return get_unlock(x, args, true);
}

/* A bit of fsh_mode and fsh_access is that of VFS_SHARE_*. */
bool nlm_decode_share(struct xdr_in *x, void *args)
{
	struct nlm_share_args *a = args;

	get_bytes(x, &a->lock.cookie);
	nlm_get_file(x, &a->lock);
	a->mode = xdr_get_u32(x);
	a->access = xdr_get_u32(x);
	a->lock.reclaim = xdr_get_bool(x);
	return !x->err && a->mode <= VFS_SHARE_BOTH && a->access <= VFS_SHARE_BOTH;
}

/* TEST_RES carries the conflicting lock behind its status, which nobody here needs: it is skipped. */
bool nlm_decode_res(struct xdr_in *x, void *args)
{
	struct nlm_res_args *a = args;

	get_bytes(x, &a->cookie);
	a->stat = xdr_get_u32(x);
	return !x->err;
}

bool nlm_decode_free_all(struct xdr_in *x, void *args)
{
	get_bytes(x, args);
	xdr_get_u32(x);
	return !x->err;
}

/* Procedure that has the same arguments and answers in its reply. */
static uint32_t without_message(uint32_t proc)
{
	if (proc >= NLMPROC4_TEST_MSG && proc <= NLMPROC4_UNLOCK_MSG)
		return proc - NLMPROC4_TEST_MSG + NLMPROC4_TEST;
	return proc == NLMPROC4_NM_LOCK ? NLMPROC4_LOCK : proc;
}

bool nlm_skip_to_fh(struct xdr_in *x, uint32_t proc)
{
	/* Booleans between the cookie and the lock, and 1. */
	static const uint8_t bools[NLMPROC4_COUNT] = {
		[NLMPROC4_TEST] = 2,   [NLMPROC4_LOCK] = 3,  [NLMPROC4_CANCEL] = 3,
		[NLMPROC4_UNLOCK] = 1, [NLMPROC4_SHARE] = 1, [NLMPROC4_UNSHARE] = 1,
	};
	const uint32_t form = proc < NLMPROC4_COUNT ? without_message(proc) : 0;

	if (bools[form] == 0)
		return false;
	xdr_skip_opaque(x, NLM_OPAQUE_MAX);
	xdr_skip(x, 4u * (bools[form] - 1u));
	xdr_skip_opaque(x, NLM_OPAQUE_MAX); /* the caller's name */
	return !x->err;
}

enum nlm4_stat nlm_status(int rc)
{
	switch (-rc) {
	case 0:
		return NLM4_GRANTED;
	case RN_EDENIED:
	case RN_ESHARE:
	case RN_EYIELDS:
	case RN_EYIELDED:
	case RN_EUNNAMED:
		return NLM4_DENIED;
	/* the only status after which a client tries again that wants no blocking lock */
	case RN_ELEASE:
	case RN_EGRACE:
	case RN_ESOON:
	case RN_EFULL:
	case RN_EDELEG:
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

/* The older versions have the word DENIED_NOLOCKS for all that is wrong. */
static enum nlm4_stat status_of_version(uint32_t vers, enum nlm4_stat stat)
{
	return vers < NLM_VERSION && stat > NLM4_DENIED_GRACE_PERIOD ? NLM4_DENIED_NOLOCKS : stat;
}

void nlm_put_range(struct xdr_out *x, uint32_t vers, uint64_t offset, uint64_t length)
{
	if (vers == NLM_VERSION) {
		xdr_put_u64(x, offset);
		xdr_put_u64(x, length);
		return;
	}
	/* The largest offset stands for what does not fit, as with lockd. */
	xdr_put_u32(x, (uint32_t)rn_min(offset, (uint64_t)INT32_MAX));
	xdr_put_u32(x, (uint32_t)rn_min(length, (uint64_t)INT32_MAX));
}

static void put_holder(struct xdr_out *x, uint32_t vers, const struct vfs_conflict *c)
{
	const struct nlm_owner *o = nlm_owner_of(c->holder);

	xdr_put_bool(x, c->type == VFS_LOCK_WRITE);
	xdr_put_u32(x, o ? (uint32_t)o->svid : 0);
	xdr_put_opaque(x, o ? o->bytes : NULL, o ? o->oh_len : 0);
	nlm_put_range(x, vers, c->offset, c->length == UINT64_MAX ? 0 : c->length);
}

static void nlm_put_result(struct xdr_out *x, uint32_t vers, const struct nlm_result *r)
{
	const enum nlm4_stat stat = status_of_version(vers, r->stat);

	xdr_put_opaque(x, r->cookie->data, r->cookie->len);
	xdr_put_u32(x, stat);
	if (r->holder && stat == NLM4_DENIED)
		put_holder(x, vers, r->holder);
	if (r->sequence)
		xdr_put_u32(x, 0);
}

void nlm_callee(const struct rpc_conn *conn, uint32_t vers, uint32_t proc, struct nsm_callee *out)
{
	*out = (struct nsm_callee){ .prog = NLM_PROGRAM, .vers = vers, .proc = proc };
	rpc_address_of(&conn->peer, &out->peer);
	rpc_address_of(&conn->local, &out->local);
	out->tcp = strncmp(conn->ops->netid, "udp", 3) != 0;
}

/* The client sends its message again if the answer is lost. */
static void sent(void *ctx, int rc, struct xdr_in *results)
{
	(void)ctx;
	(void)rc;
	(void)results;
}

static void send_result(struct rpc_request *req, const struct nlm_result *r)
{
	const struct nfs3_server *s = req->program_ctx;
	uint8_t args[NLM_MESSAGE_MAX];
	struct nsm_callee to;
	struct xdr_out x;

	/* Nothing is sent to a host that somebody else may have named, unless an export admits it. */
	if (req->conn->ops->datagrams && req->admission < RPC_RECENT)
		return;
	xdr_out_init(&x, args, sizeof(args));
	nlm_put_result(&x, req->call.vers, r);
	nlm_callee(req->conn, req->call.vers,
		   req->call.proc - NLMPROC4_TEST_MSG + NLMPROC4_TEST_RES, &to);
	to.answer = true;
	if (!x.overflow)
		nsm_submit(s->cfg.nsm, &to, args, (uint32_t)x.used,
			   &(struct nsm_call_end){ .done = sent });
}

void nlm_reply(struct rpc_request *req, const struct nlm_result *r)
{
	if (nlm_is_message(req))
		send_result(req, r);
	else
		nlm_put_result(&req->out, req->call.vers, r);
}

enum rpc_run nlm_answer(struct nfs3_op *op, const struct nlm_result *r, int rc)
{
	struct rpc_request *req = op->req;
	struct nlm_result told = *r;
	const int is = vfs_doubt(&op->ctx, rc);

	if (is != rc)
		told.stat = nlm_status(is);
	const enum rpc_run how = nfs3_op_end(op, is);

	if (how == RPC_RUN_DONE || how == RPC_RUN_UNDONE)
		nlm_reply(req, &told);
	return how;
}
