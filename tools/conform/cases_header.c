/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers with wrong fixed words, and words that no client sends: RFC 8166 sections 4.2, 4.5 and
 * 4.6. */
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_call.h"
#include "tools/conform/nfs3.h"

#define QUIET_MS 50

/* Encodes a NULL call; stores its xid in *xid. */
static size_t null_bytes(struct cf_test *t, uint8_t *msg, uint32_t *xid)
{
	struct cf_call *c = cf3_null(t);

	*xid = c->xid;
	return cf_call_encode(c, msg);
}

static void header_put_word(uint8_t *p, uint32_t v)
{
	p[0] = v >> 24;
	p[1] = v >> 16;
	p[2] = v >> 8;
	p[3] = v;
}

/* ---- version ----------------------------------------------------------------------------------
 */

static void version(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	c->vers = t->arg;
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return;
	if (r->h.proc != CF_ERROR || r->h.err != CF_ERR_VERS) {
		cf_fail(t, "RDMA_ERROR, ERR_VERS", "something else");
		cf_seen_words(t, r->msg, r->len);
	} else if (r->h.vers_low > 1 || r->h.vers_high < 1) {
		cf_fail(t, "a range of versions that includes 1", "%u to %u", r->h.vers_low,
			r->h.vers_high);
	} else {
		cf_alive(t);
	}
}

/* A server must check the version first, as the meaning of the rest depends on it. */
static void version_before_rest(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	c->vers = 2;
	c->proc = 77;
	struct cf_reply *r = cf_ask_any(t, c);
	if (r && (r->h.proc != CF_ERROR || r->h.err != CF_ERR_VERS))
		cf_fail(t, "RDMA_ERROR, ERR_VERS", "something else");
	cf_alive(t);
}

/* ---- procedures -------------------------------------------------------------------------------
 */

static void unknown_proc(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	c->proc = t->arg;
	if (cf_refused(t, c))
		cf_alive(t);
}

/* Sends RDMA_MSGP, whose header has two more words before the lists. */
static void msgp(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	uint8_t *msg = cf_alloc(t, CF_INLINE_MAX);
	struct xdr_out x;

	xdr_out_init(&x, msg, CF_INLINE_MAX);
	cf_put_fixed(&x, c->xid, CF_VERSION, 32, CF_MSGP);
	xdr_put_u32(&x, 64);
	xdr_put_u32(&x, 64);
	cf_put_lists(&x, &c->lists);
	xdr_put_fixed(&x, c->rpc.base, xdr_out_pos(&c->rpc));
	if (cf_refused_bytes(t, msg, xdr_out_pos(&x), c->xid))
		cf_alive(t);
}

/* Sends a message that the server must ignore without ending the connection. An answer would arrive
 * before that to the next NULL call, or soon after. */
static void vanishes(struct cf_test *t, const uint8_t *msg, size_t len)
{
	if (cf_alive(t) && cf_send_bytes(t, msg, len) && cf_alive(t))
		cf_silence(t, QUIET_MS);
}

static void header_done(struct cf_test *t)
{
	uint8_t msg[64];
	struct xdr_out x;

	xdr_out_init(&x, msg, sizeof(msg));
	cf_put_fixed(&x, cf_xid(t), CF_VERSION, 32, CF_DONE);
	/* 16 bytes: as RFC 8166 defines it; 28 bytes: as long as other messages */
	vanishes(t, msg, t->arg);
}

static void error_from_client(struct cf_test *t)
{
	uint8_t msg[64] = { 0 };
	struct xdr_out x;

	xdr_out_init(&x, msg, sizeof(msg));
	cf_put_fixed(&x, cf_xid(t), CF_VERSION, 32, CF_ERROR);
	xdr_put_u32(&x, t->arg);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 1);
	vanishes(t, msg, t->arg == CF_ERR_CHUNK ? 20 : 28);
}

/* Sends a burst of ignored messages, as many as there are credits. None may use up a Receive. */
static void error_burst(struct cf_test *t)
{
	uint8_t msg[28] = { 0 };
	struct xdr_out x;

	if (!cf_alive(t))
		return;
	xdr_out_init(&x, msg, sizeof(msg));
	cf_put_fixed(&x, cf_xid(t), CF_VERSION, 32, t->arg);
	xdr_put_u32(&x, CF_ERR_CHUNK);
	for (int i = 0; i < 300; i++) {
		if (!cf_send_bytes(t, msg, sizeof(msg)))
			return;
		if (i % 16 == 15 && !cf_alive(t))
			return;
	}
	cf_alive(t);
}

/* ---- too short --------------------------------------------------------------------------------
 */

/* Below 28 bytes not even the xid can be trusted (section 4.5). */
static void below_minimum(struct cf_test *t)
{
	uint8_t msg[4096];
	uint32_t xid;

	null_bytes(t, msg, &xid);
	vanishes(t, msg, t->arg);
}

/* Cuts a header with lists of all kinds at every word from 28 bytes on. */
static void cut_lists(struct cf_test *t)
{
	uint8_t msg[4096];
	struct cf_call *c = cf3_null(t);
	struct cf_window *w = cf_window_new(t->conn, 8192);

	if (!w)
		return;
	cf_add_read(&c->lists, 40, cf_window_seg(w, 0, 100));
	cf_add_read(&c->lists, 40, cf_window_seg(w, 100, 100));
	cf_add_seg(cf_add_write(&c->lists), cf_window_seg(w, 1024, 1024));
	cf_add_seg(&c->lists.write[0], cf_window_seg(w, 2048, 1024));
	cf_add_seg(cf_add_reply(&c->lists), cf_window_seg(w, 4096, 4096));
	size_t full = cf_call_encode(c, msg) - xdr_out_pos(&c->rpc);
	for (size_t len = 28; len < full; len += t->arg) {
		uint32_t xid = cf_xid(t);
		header_put_word(msg, xid);
		if (!cf_refused_bytes(t, msg, len, xid)) {
			size_t at = strlen(t->seen);
			snprintf(t->seen + at, sizeof(t->seen) - at, " (cut at byte %zu)", len);
			return;
		}
	}
	cf_alive(t);
}

/* Sends a whole header with a truncated RPC message. This is no header error, so the call must only
 * have no effect and the server must go on. */
static void cut_call(struct cf_test *t)
{
	uint8_t msg[4096];
	uint32_t xid;

	null_bytes(t, msg, &xid);
	if (cf_send_bytes(t, msg, 28 + t->arg))
		cf_not_carried_out(t, xid);
}

static void header_two_xids(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	xdr_patch_u32(&c->rpc, 0, c->xid ^ 0x01000000);
	if (!cf_send(t, c))
		return;
	struct cf_reply *r = cf_next(t);
	if (r && r->h.xid != c->xid)
		cf_fail(t, "an answer with the transport header's xid", "%08x, not %08x", r->h.xid,
			c->xid);
	if (r)
		cf_alive(t);
}

/* Sends a reply to no call. Section 4.5 defines no answer to it. */
static void header_rpc_reply(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	uint8_t *msg = cf_alloc(t, CF_INLINE_MAX);

	xdr_patch_u32(&c->rpc, 4, 1); /* REPLY */
	vanishes(t, msg, cf_call_encode(c, msg));
}

/* ---- RPC --------------------------------------------------------------------------------------
 */

static void accept_status(struct cf_test *t)
{
	static const struct {
		uint32_t prog, vers, proc;
		enum cf_accept want;
	} ask[] = {
		{ 399999, 1, 0, CF_PROG_UNAVAIL },
		{ CF_PROG_NFS, 99, 0, CF_PROG_MISMATCH },
		{ CF_PROG_NFS, 3, 99, CF_PROC_UNAVAIL },
	};
	struct cf_call *c = cf_call_new(t, ask[t->arg].prog, ask[t->arg].vers, ask[t->arg].proc);
	struct cf_reply *r = cf_ask_any(t, c);

	if (r && cf_expect_accept(t, r, ask[t->arg].want))
		cf_alive(t);
}

static void rpc_version(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	xdr_patch_u32(&c->rpc, 8, 3);
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return;
	if (r->h.proc == CF_ERROR || r->accepted || r->stream_len < 16 ||
	    cf_word(r->stream + 12) != 0) {
		cf_fail(t, "MSG_DENIED, RPC_MISMATCH (RFC 5531 9)", "something else");
		cf_seen_words(t, r->msg, r->len);
	} else {
		cf_alive(t);
	}
}

/* Calls with missing arguments: second half of section 4.5.2. */
static void header_garbage_args(struct cf_test *t)
{
	struct cf_reply *r = cf_ask_any(t, cf3_new(t, t->arg));

	if (r && cf_expect_accept(t, r, CF_GARBAGE_ARGS))
		cf_alive(t);
}

#define VERSION(n)                                                                                 \
	{                                                                                          \
		"vers-" #n, "RFC 8166 4.5.1", "version " #n ": ERR_VERS with the range served",    \
			version, n, 0                                                              \
	}
#define SHORT(n)                                                                                   \
	{                                                                                          \
		"short-" #n, "RFC 8166 4.5", "a message of " #n " bytes is silently discarded",    \
			below_minimum, n, 0                                                        \
	}
#define CUT(n)                                                                                     \
	{                                                                                          \
		"call-cut-" #n, "RFC 8166 4.5.2",                                                  \
			"an inline call of " #n " bytes is not carried out", cut_call, n, 0        \
	}

static const struct cf_case cases[] = {
	VERSION(0),
	VERSION(2),
	VERSION(255),
	VERSION(0xffffffff),
	{ "vers-first", "RFC 8166 7", "another version: ERR_VERS, whatever follows",
	  version_before_rest, 0, 0 },
	{ "proc-5", "RFC 8166 4.5.2", "rdma_proc 5: ERR_CHUNK", unknown_proc, 5, 0 },
	{ "proc-6", "RFC 8166 4.5.2", "rdma_proc 6: ERR_CHUNK", unknown_proc, 6, 0 },
	{ "proc-max", "RFC 8166 4.5.2", "rdma_proc 2^32-1: ERR_CHUNK", unknown_proc, 0xffffffff,
	  0 },
	{ "msgp", "RFC 8166 4.6.1", "RDMA_MSGP: ERR_CHUNK", msgp, 0, 0 },
	{ "done", "RFC 8166 4.6.2", "RDMA_DONE is silently discarded", header_done, 28, 0 },
	{ "done-16", "RFC 8166 4.6.2", "RDMA_DONE without a body is silently discarded",
	  header_done, 16, 0 },
	{ "error-vers", "RFC 8166 4.2.4", "ERR_VERS from a client is silently discarded",
	  error_from_client, CF_ERR_VERS, 0 },
	{ "error-chunk", "RFC 8166 4.2.4", "ERR_CHUNK from a client is silently discarded",
	  error_from_client, CF_ERR_CHUNK, 0 },
	{ "error-unknown", "RFC 8166 4.5", "an RDMA_ERROR that cannot be decoded is discarded",
	  error_from_client, 99, 0 },
	{ "error-burst", "RFC 8166 4.2.4", "300 RDMA_ERROR messages eat up no Receive", error_burst,
	  CF_ERROR, CF_LONG },
	{ "done-burst", "RFC 8166 4.6.2", "300 RDMA_DONE messages eat up no Receive", error_burst,
	  CF_DONE, CF_LONG },
	SHORT(1),
	SHORT(4),
	SHORT(15),
	SHORT(16),
	SHORT(20),
	SHORT(24),
	SHORT(27),
	{ "cut-lists", "RFC 8166 4.5.2", "lists cut at every word: ERR_CHUNK", cut_lists, 4,
	  CF_LONG },
	{ "cut-lists-bytes", "RFC 8166 4.5.2", "lists cut within words: ERR_CHUNK", cut_lists, 3,
	  CF_LONG },
	CUT(0),
	CUT(4),
	CUT(8),
	CUT(20),
	CUT(39),
	{ "two-xids", "RFC 8166 4.5.2", "an RPC message with another xid than its header",
	  header_two_xids, 0, 0 },
	{ "rpc-reply", "RFC 8166 4", "an RPC reply to no call is discarded", header_rpc_reply, 0,
	  0 },
	{ "prog-unavail", "RFC 5531 9", "an unknown program: PROG_UNAVAIL", accept_status, 0, 0 },
	{ "prog-mismatch", "RFC 5531 9", "an unknown version: PROG_MISMATCH", accept_status, 1, 0 },
	{ "proc-unavail", "RFC 5531 9", "an unknown procedure: PROC_UNAVAIL", accept_status, 2, 0 },
	{ "rpc-version", "RFC 5531 9", "RPC version 3: RPC_MISMATCH", rpc_version, 0, 0 },
	{ "garbage-getattr", "RFC 8166 4.5.2", "GETATTR without arguments: GARBAGE_ARGS",
	  header_garbage_args, CF3_GETATTR, 0 },
	{ "garbage-write", "RFC 8166 4.5.2", "WRITE without arguments: GARBAGE_ARGS",
	  header_garbage_args, CF3_WRITE, 0 },
};

const struct cf_group cf_group_header = { "header", 501, cases, rn_array_size(cases) };
