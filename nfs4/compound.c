/* SPDX-License-Identifier: BSD-2-Clause */
/* COMPOUND: the table of operations, and the loop that decodes and runs them. */
#include "nfs4/compound.h"

#include <errno.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs/conflict.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/op_table.h"
#include "nfs4/session/registry.h"
#include "nfs4/state/owner.h"
#include "rpc/worker.h"

#define POINTER(NAME, name) [OP_##NAME] = &nfs4_op_##name,
static const struct nfs4_op *const ops[NFS4_OPS] = { NFS4_OP_LIST(POINTER) };

const struct nfs4_op *nfs4_op_find(uint32_t opnum, uint32_t minor)
{
	const struct nfs4_op *op = opnum < rn_array_size(ops) ? ops[opnum] : NULL;

	if (!op || minor < op->minors.first || minor > op->minors.last)
		return NULL;
	return op;
}

/*
 * Optional operations that this server does not support (RFC 8881 section 17, RFC 7862 section 13):
 * NFS4ERR_NOTSUPP in the minor versions that define them. An operation that is added moves its row
 * from here to its own file.
 */

#define OPTIONAL(NAME, name_, first_minor, needs_)                                                 \
	const struct nfs4_op nfs4_op_##name_ = {                                                   \
		.name = #NAME,                                                                     \
		.minors = { first_minor, 2 },                                                      \
		.needs = needs_,                                                                   \
		.errors = NFS4_ERRORS_OWN,                                                         \
	}

OPTIONAL(GETDEVICELIST, getdevicelist, 1, NFS4_NEEDS_FH);

/* The loop over a COMPOUND's operations. */

bool nfs4_compound_decode(struct xdr_in *in, void *args)
{
	struct nfs4_compound_args *a = args;

	a->tag = xdr_get_opaque(in, NFS4_TAG_MAX, &a->tag_len);
	a->minor = xdr_get_u32(in);
	a->nops = xdr_get_u32(in);
	return !in->err;
}

uint32_t nfs4_minor_of(const struct rpc_request *req)
{
	const struct nfs4_compound_args *a = req->args;

	return req->proc && req->proc->decode == nfs4_compound_decode && a ? a->minor : UINT32_MAX;
}

/* Puts all that the compound holds. Returns the result for rpc_dispatch. */
static enum rpc_run end_compound(struct nfs4_compound *c, int status)
{
	if (status != NFS4_REPLAYED) {
		xdr_patch_u32(c->out, c->body_at, (uint32_t)status);
		xdr_patch_u32(c->out, c->count_at, c->done);
	}
	nfs4_clients_leave(c);
	nfs4_object_clear(&c->current);
	nfs4_object_clear(&c->saved);
	return c->no_room ? RPC_RUN_NO_ROOM : RPC_RUN_DONE;
}

/* Checks whether the operation is allowed at its position in this COMPOUND (RFC 8881 sections
 * 2.10.2.1, 16.2.3). */
static int check_position(const struct nfs4_compound *c)
{
	const unsigned flags = c->op->flags;

	if (c->minor == 0)
		return NFS4_OK;
	if (c->index > 0 && (flags & NFS4_OP_NOT_BEHIND))
		return NFS4ERR_NOT_ONLY_OP;
	if (c->index > 0)
		return flags & NFS4_OP_FIRST ? NFS4ERR_SEQUENCE_POS : NFS4_OK;
	if (flags & NFS4_OP_FIRST)
		return NFS4_OK;
	if (!(flags & NFS4_OP_ALONE))
		return NFS4ERR_OP_NOT_IN_SESSION;
	return c->nops == 1 ? NFS4_OK : NFS4ERR_NOT_ONLY_OP;
}

static int compound_decode_args(struct nfs4_compound *c)
{
	const struct nfs4_op *op = c->op;

	c->args = NULL;
	if (!op->decode)
		return NFS4_OK;
	c->args = rn_arena_alloc(&c->req->arena, op->args_size);
	if (!c->args)
		return NFS4ERR_DELAY;
	op->decode(c, c->args);
	if (!c->in->err)
		return NFS4_OK;
	/* Well-formed arguments that do not fit the arena are not malformed. */
	if (c->req->arena.overflowed)
		return c->minor == 0 ? NFS4ERR_RESOURCE : NFS4ERR_REQ_TOO_BIG;
	return NFS4ERR_BADXDR;
}

/* Operations that do not check an export themselves are only for hosts that some export admits.
 * Strangers never get here; a host that was admitted until lately may give back its state. */
static int check_admission(const struct nfs4_compound *c)
{
	const enum rpc_admission admission = c->req->admission;

	if (admission == RPC_ADMITTED || (c->op->flags & NFS4_OP_FOR_RECENT) ||
	    (c->op->needs & NFS4_NEEDS_FH))
		return NFS4_OK;
	if (admission == RPC_UNKNOWN)
		return NFS4ERR_DELAY;
	/* Among the statuses that all operations may answer, only this one is a refusal. */
	return c->op->flags & NFS4_OP_SETS_FH ? NFS4_OK : NFS4ERR_SERVERFAULT;
}

static int check_op(struct nfs4_compound *c)
{
	const struct nfs4_op *op = c->op;
	int status;

	if (!op)
		return NFS4ERR_OP_ILLEGAL;
	if (op->gone_from > 0 && c->minor >= op->gone_from)
		return NFS4ERR_NOTSUPP;
	status = check_position(c);
	if (status == NFS4_OK && !op->run)
		status = NFS4ERR_NOTSUPP;
	if (status == NFS4_OK)
		status = check_admission(c);
	if (status != NFS4_OK)
		return status;
	status = compound_decode_args(c);
	if (status != NFS4_OK)
		return status;
	/* A Read chunk that no argument uses is a violation, too (RFC 8166 section 6.1). */
	if (c->index + 1 == c->nops && xdr_in_placed_left(c->in))
		return NFS4ERR_BADXDR;
	if ((op->needs & NFS4_NEEDS_FH) && c->current.kind == NFS4_NOWHERE)
		return NFS4ERR_NOFILEHANDLE;
	if ((op->needs & NFS4_NEEDS_FH) && c->current.kind == NFS4_GONE)
		return NFS4ERR_STALE;
	if ((op->needs & NFS4_NEEDS_SAVED_FH) && c->saved.kind == NFS4_NOWHERE)
		return NFS4ERR_NOFILEHANDLE;
	if ((op->needs & NFS4_NEEDS_FH) && !(op->flags & NFS4_OP_AT_ABSENT) &&
	    nfs4_object_is_absent(&c->current))
		return NFS4ERR_MOVED;
	if (op->flags & NFS4_OP_CHANGES)
		return nfs4_reserve_reply(c, op->reply_max);
	return nfs4_grow_reply(c, op->reply_max);
}

/* Reads the next operation's number, puts it and a place for its status, and runs it. */
static int start_op(struct nfs4_compound *c)
{
	int status;

	rn_arena_rewind(&c->req->arena, c->arena_at);
	c->keep_body = false;
	c->opnum = xdr_get_u32(c->in);
	c->op = c->in->err ? NULL : nfs4_op_find(c->opnum, c->minor);
	if (!c->op)
		c->opnum = OP_ILLEGAL;
	if (c->index < NFS4_RAN_MAX)
		c->ran[c->index] = c->op ? (uint8_t)c->opnum : 0;
	rpc_call_show_op(c->req, c->opnum);
	xdr_put_u32(c->out, c->opnum);
	c->status_at = xdr_out_pos(c->out);
	xdr_put_u32(c->out, NFS4_OK);
	if (c->in->err)
		return NFS4ERR_BADXDR;
	status = check_op(c);
	if (status != NFS4_OK)
		return status;
	if (c->op->flags & NFS4_OP_SETS_FH)
		c->has_current_sid = false;
	if (!(c->op->flags & NFS4_OP_EVENT_THREAD))
		rpc_move(c->req);
	return c->op->run(c, c->args);
}

static void count_outcome(struct nfs4_compound *c, int status)
{
	struct nfs4_counts *n = c->counts;

	if (status != NFS4_OK)
		nfs4_count(&n->errors, 1);
	else
		nfs4_count(c->op->flags & NFS4_OP_CHANGES ? &n->bytes_written : &n->bytes_read,
			   c->moved);
	c->moved = 0;
}

static inline void count_op(struct nfs4_compound *c, int status)
{
	if (!c->counts)
		return;
	nfs4_count(&c->counts->op[c->op ? c->opnum : 0], 1);
	if (status != NFS4_OK || c->moved)
		count_outcome(c, status);
}

/* True for an operation with others behind it whose time is counted as that of the next one, as reading the clock would take
 * a good part of it: a SEQUENCE, which touches no file; and a PUTFH on an event thread, which finds its file in memory or
 * moves. */
static bool is_untimed(const struct nfs4_compound *c, int status)
{
	const bool quick =
		c->opnum == OP_SEQUENCE || (c->opnum == OP_PUTFH && rpc_on_event_thread(c->req));

	return quick && status == NFS4_OK && c->index < c->nops && c->index <= NFS4_RAN_MAX;
}

/* The operation began when the one before it ended, so the clock is read once for each. Those that were untimed are told
 * with it: there always is one behind them, as only a SEQUENCE is answered by a cached reply. */
static void observe_timed(struct nfs4_compound *c, int status)
{
	const struct nfs4_config *cfg = &c->server->cfg;
	const uint64_t now = rn_now_ns();
	const struct nfs4_op_end end = {
		.minor = c->minor,
		.opnum = c->opnum,
		.status = (uint32_t)status,
		.elapsed_ns = now - c->op_began_ns,
		.before = c->untimed ? &c->ran[c->index - 1 - c->untimed] : NULL,
		.nbefore = c->untimed,
	};

	cfg->observe_op(cfg->observe_ctx, c->req, &end);
	c->untimed = 0;
	c->op_began_ns = now;
	c->req->ended_ns = c->index < c->nops ? 0 : now;
}

static inline void observe_op(struct nfs4_compound *c, int status)
{
	if (!c->server->cfg.observe_op)
		return;
	if (is_untimed(c, status))
		c->untimed++;
	else
		observe_timed(c, status);
}

/* Holders answer a recall within a round trip or two, or have to write data first; a name service of the site answers as soon.
 * The client sleeps 0.1 s and more after NFS4ERR_DELAY, so a short wait is worth while; nfsd's is as long. */
#define NFS4_PATIENCE_NS (30 * RN_NS_PER_MS)

/* Some clients give up a mount whose first calls are answered NFS4ERR_DELAY. */
#define NFS4_MOUNT_PATIENCE_NS (12 * RN_NS_PER_SECOND)

/* Each operation has its own time (end_op), until one has used it up: then no other of the COMPOUND waits. */
bool nfs4_await(struct nfs4_compound *c, int rc)
{
	const bool mounts = c->op && (c->op->flags & NFS4_OP_MOUNTS);

	return nfs_await(c->req, rc, mounts ? NFS4_MOUNT_PATIENCE_NS : NFS4_PATIENCE_NS);
}

bool nfs4_try_again(struct nfs4_compound *c, int status)
{
	return nfs4_await(c, status == NFS4_HELD      ? -RN_EDELEG
			     : status == NFS4_YIELDED ? -RN_EYIELDED
						      : 0);
}

/*
 * The transport reports the failure to the client. The reply that the slot or the duplicate request
 * cache keeps for a retry says that the operation can be tried again. That is correct: the
 * operation has changed nothing, while those before it have run.
 */
static int compound_no_room(struct nfs4_compound *c)
{
	c->no_room = true;
	return NFS4ERR_DELAY;
}

/*
 * True if the client should come again for names. A result with very many of them might never
 * find all known: it gets numbers, which are correct as well. Only operations that change
 * nothing put names.
 */
#define NAMES_UNKNOWN_MAX 64u

static bool lacks_names(struct nfs4_compound *c)
{
	const uint32_t n = c->names_unknown;

	c->names_unknown = 0;
	return n > 0 && n <= NAMES_UNKNOWN_MAX;
}

/* An error that vfs_doubt() takes as it takes the one behind the status. */
static int compound_error_of(int status)
{
	switch (status) {
	case NFS4_CUT_OFF:
		return -ENOTCONN;
	case NFS4ERR_STALE:
	case NFS4ERR_IO:
	case NFS4ERR_ACCESS:
	case NFS4ERR_PERM:
	case NFS4ERR_SERVERFAULT:
		return -EIO;
	default:
		return 0;
	}
}

int nfs4_doubt(struct nfs4_compound *c, int status)
{
	struct vfs_ctx *ctx = &c->current.ctx;

	if (ctx->exp && vfs_doubt(ctx, compound_error_of(status)) == -RN_ESOON)
		return NFS4ERR_DELAY;
	return status == NFS4_CUT_OFF ? NFS4ERR_SERVERFAULT : status;
}

/* Ends the operation under way. Returns the status for the loop to continue with. */
static int end_op(struct nfs4_compound *c, int status)
{
	const size_t body = c->status_at + 4;

	if (c->out->overflow || nfs4_reply_is_too_big(c)) {
		size_t with = xdr_out_total(c->out);

		/* Only an operation that has changed nothing can exceed the reserved size. */
		xdr_out_rewind(c->out, body);
		c->keep_body = false;
		status = nfs4_reply_too_big(c, with - xdr_out_total(c->out));
	}
	if (lacks_names(c)) {
		c->keep_body = false;
		status = NFS4ERR_DELAY;
	}
	status = status == NFS4_NO_ROOM ? compound_no_room(c)
					: nfs4_status_for(c->op, c->minor, nfs4_doubt(c, status));
	if (status != NFS4_OK && !c->keep_body) {
		xdr_out_rewind(c->out, body);
		if (c->op && (c->op->flags & NFS4_OP_FAILS_WITH_BITMAP) &&
		    c->out->size - c->out->used >= 4)
			xdr_put_u32(c->out, 0);
	}
	xdr_patch_u32(c->out, c->status_at, (uint32_t)status);
	if (c->seq_owner)
		nfs4_seq_done(c, status);
	c->req->wait_until_ns = 0; /* the next operation may wait as long: nfs4_await() */
	c->done++;
	c->index++;
	count_op(c, status);
	observe_op(c, status);
	return status;
}

static enum rpc_run run_ops(struct nfs4_compound *c)
{
	int status = NFS4_OK;

	while (c->index < c->nops && status == NFS4_OK) {
		status = start_op(c);
		if (status == NFS4_REPLAYED)
			break;
		status = end_op(c, status);
	}
	return end_compound(c, status);
}

static struct nfs4_compound *new_compound(struct rpc_request *req,
					  const struct nfs4_compound_args *a)
{
	struct nfs4_compound *c = rn_arena_alloc(&req->arena, sizeof(*c));

	if (!c)
		return NULL;
	req->op = c;
	c->req = req;
	c->server = req->program_ctx;
	c->in = &req->in;
	c->out = &req->out;
	c->minor = a->minor;
	c->nops = a->nops;
	c->reply_limit = SIZE_MAX;
	c->cached_limit = SIZE_MAX;
	c->arena_at = req->arena.used;
	if (c->server->cfg.observe_op)
		c->op_began_ns =
			rpc_on_event_thread(req) && req->run_ns ? req->run_ns : rn_now_ns();
	return c;
}

/* Checks that need no look at the operations. */
static int check_compound(const struct nfs4_compound *c)
{
	const struct nfs4_config *cfg = &c->server->cfg;

	if (c->minor < cfg->minor_min || c->minor > cfg->minor_max)
		return NFS4ERR_MINOR_VERS_MISMATCH;
	/* In later minor versions SEQUENCE compares with the session's limit. */
	if (c->minor == 0 && c->nops > NFS4_OPS_MAX)
		return NFS4ERR_RESOURCE;
	return NFS4_OK;
}

/* True if a COMPOUND that begins like this is denied as one from a stranger. */
static bool compound_is_denied(const struct rpc_request *req, const struct nfs4_compound_args *a)
{
	struct xdr_in in = req->in;
	const struct nfs4_op *first;

	if (req->admission != RPC_RECENT || a->nops == 0)
		return false;
	first = nfs4_op_find(xdr_get_u32(&in), a->minor);
	return !first || !(first->flags & NFS4_OP_FOR_RECENT);
}

enum rpc_run nfs4_compound_run(struct rpc_request *req, void *args)
{
	const struct nfs4_compound_args *a = args;
	struct nfs4_compound *c;
	int status;

	if (compound_is_denied(req, a))
		return RPC_RUN_AUTH_BADCRED;
	c = new_compound(req, a);
	if (!c)
		return RPC_RUN_SYSTEM_ERR;
	c->body_at = xdr_out_pos(c->out);
	xdr_put_u32(c->out, NFS4_OK);
	xdr_put_opaque(c->out, a->tag, a->tag_len);
	c->count_at = xdr_out_pos(c->out);
	xdr_put_u32(c->out, 0);
	status = check_compound(c);
	return status == NFS4_OK ? run_ops(c) : end_compound(c, status);
}
