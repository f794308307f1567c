/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "daemon/counters/daemon_trace.h"
#include "daemon/workers/admission.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_view.h"
#include "rpc/program.h"
#include "vfs/vfs.h"

#define MNT 1u		    /* the only procedure of MOUNT whose result has a status */
#define NLM_LAST_RESULT 5u  /* procedures of NLM up to this one answer with a status; */
#define NLM_FIRST_SHARE 20u /* and so do SHARE, UNSHARE and NM_LOCK */
#define NLM_LAST_SHARE 22u
#define ACCEPTED_WORDS 6u /* of an accepted reply before its results: RFC 5531 section 9 */

/* The n-th word of the reply. False: it is not so long. */
static bool trace_call_reply_word(const struct xdr_out *out, size_t n, uint32_t *value)
{
	if (out->used < 4 * (n + 1))
		return false;
	*value = rn_get32(out->base + 4 * n);
	return true;
}

/* Place of the status in the reply; 0: the result has none. */
static size_t status_word(const struct rpc_request *req)
{
	const struct rpc_call *call = &req->call;
	uint32_t cookie;

	if (call->proc == 0)
		return 0;
	if (call->prog == NFS_PROGRAM || call->prog == NFSACL_PROGRAM)
		return ACCEPTED_WORDS;
	if (call->prog == MOUNT_PROGRAM)
		return call->proc == MNT ? ACCEPTED_WORDS : 0;
	if (call->prog != NLM_PROGRAM)
		return 0;
	if (call->proc > NLM_LAST_RESULT &&
	    (call->proc < NLM_FIRST_SHARE || call->proc > NLM_LAST_SHARE))
		return 0;
	/* The client's cookie comes first. */
	if (!trace_call_reply_word(&req->out, ACCEPTED_WORDS, &cookie))
		return 0;
	return ACCEPTED_WORDS + 1 + ((size_t)cookie + 3) / 4;
}

static void read_outcome(struct trace_call *t, const struct rpc_request *req)
{
	const struct xdr_out *out = &req->out;
	const size_t at = status_word(req);
	uint32_t reply_stat, first, second;

	t->outcome = TRACE_UNSENT;
	t->status = 0;
	if (!trace_call_reply_word(out, 2, &reply_stat) || !trace_call_reply_word(out, 3, &first))
		return;
	if (reply_stat == RPC_MSG_DENIED) {
		t->outcome = first == RPC_AUTH_ERROR ? TRACE_AUTH : TRACE_RPC;
		trace_call_reply_word(out, 4, &t->status);
	} else if (trace_call_reply_word(out, 5, &second) && second != RPC_SUCCESS) {
		t->outcome = TRACE_ACCEPT;
		t->status = second;
	} else if (at == 0) {
		t->outcome = TRACE_NO_ERROR;
	} else if (trace_call_reply_word(out, at, &t->status)) {
		t->outcome = TRACE_STATUS;
	}
}

static void trace_call_read_compound(struct trace_call *t, const struct rpc_request *req)
{
	struct nfs4_traced c;

	if (!nfs4_traced(req, &c))
		return;
	t->compound = true;
	t->minor = c.minor;
	t->nops = c.nops;
	t->nkept = (uint32_t)rn_min(c.nkept, TRACE_OPS);
	memcpy(t->ops, c.ops, t->nkept);
	t->clientid = c.clientid;
	if (c.fh)
		t->fh = *c.fh;
}

/* The first 8 bytes of a handle tell its export. */
static void read_handle(struct trace_call *t, const struct rpc_request *req)
{
	uint64_t head = 0;

	if (!t->fh.len && !first_handle(req, &t->fh))
		t->fh.len = 0;
	if (t->fh.len < 8)
		return;
	for (int i = 0; i < 8; i++)
		head = head << 8 | t->fh.data[i];
	t->has_export = vfs_handle_peek(head, &t->export_id);
}

static uint64_t call_bytes(const struct rpc_request *req)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < req->nseg; i++)
		n += req->seg[i].len;
	return n;
}

void trace_call_make(struct trace_call *t, const struct rpc_request *req, uint64_t took_ns,
		     bool error)
{
	const struct rpc_call *call = &req->call;

	memset(t, 0, sizeof(*t));
	t->ended_ns = rn_now_ns();
	t->wall_ns = rn_wall_ns();
	t->took_ns = took_ns;
	t->waited_ns = req->fiber->longest_ns;
	t->waited_for = req->fiber->longest_for;
	rpc_address_of(&req->conn->peer, &t->peer);
	t->port = rpc_address_port(&req->conn->peer);
	t->netid = req->conn->ops->netid;
	t->name = req->proc ? req->proc->name : NULL;
	t->xid = call->xid;
	t->prog = call->prog;
	t->vers = call->vers;
	t->proc = call->proc;
	t->has_uid = call->cred.flavor == RPC_AUTH_SYS;
	t->uid = call->cred.uid;
	t->bytes_in = call_bytes(req);
	t->bytes_out = xdr_out_total(&req->out);
	read_outcome(t, req);
	if (error && (t->outcome == TRACE_STATUS || t->outcome == TRACE_NO_ERROR))
		t->outcome = TRACE_UNSENT;
	if (req->proc) {
		trace_call_read_compound(t, req);
		read_handle(t, req);
	}
}

bool trace_call_failed(const struct trace_call *t)
{
	return t->outcome == TRACE_STATUS ? t->status != 0 : t->outcome != TRACE_NO_ERROR;
}
