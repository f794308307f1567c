/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nlm/nlm_answer.h"

#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/ops.h"
#include "nfs3/nfs3_state.h"
#include "nsm/nsm.h"

enum nlm4_stat nlm_status(int rc)
{
	switch (-rc) {
	case 0:
		return NLM4_GRANTED;
	case RN_EDENIED:
	case RN_ESHARE:
	case RN_EYIELDS:
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
	if (req->conn->ops->datagrams && req->standing < RPC_FORMER)
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
	const enum rpc_run how = nfs3_op_end(op, rc);

	if (how == RPC_RUN_DONE || how == RPC_RUN_UNDONE)
		nlm_reply(req, r);
	return how;
}
