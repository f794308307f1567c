/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/back.h"

#include <string.h>

#include "lib/util.h"
#include "nfs4/nfs4_proto.h"
#include "rpc/message.h"
#include "rpc/xdr_out.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/held.h"
#include "tests/fuzz/session/reader.h"

#define HIGHEST 15u

void ss_back_init(struct ss_back *b)
{
	b->n = 0;
	b->most = 1;
}

static void get_fh(struct ss_in *in)
{
	uint32_t len;

	ss_get_opaque(in, 128, &len);
}

static void get_bitmap(struct ss_in *in)
{
	const uint32_t n = ss_get_u32(in);

	if (n > 3)
		ss_wrong(in, "a bitmap of more than three words");
	else
		ss_get(in, (size_t)4 * n);
}

static void get_offload(struct ss_in *in)
{
	get_fh(in);
	ss_get(in, 16);
	if (ss_get_u32(in) != NFS4_OK) {
		ss_get_u64(in);
		return;
	}
	if (ss_get_u32(in) != 0)
		ss_wrong(in, "a wr_callback_id in the result of a copy");
	ss_get_u64(in);
	ss_get_u32(in);
	ss_get_u64(in);
}

/* CB_NOTIFY: stateid, handle, and changes as lists by kind. */
static void get_notify(struct ss_in *in)
{
	uint32_t len;

	ss_get(in, 16);
	get_fh(in);
	for (uint32_t n = ss_get_u32(in); n && !in->bad; n--) {
		get_bitmap(in);
		ss_get_opaque(in, 65536, &len);
	}
}

static void get_arguments(struct ss_in *in, uint32_t op)
{
	uint32_t len;

	switch (op) {
	case OP_CB_GETATTR:
		get_fh(in);
		get_bitmap(in);
		ss_count(SS_N_ASKED);
		break;
	case OP_CB_RECALL:
		ss_get(in, 16);
		ss_get_bool(in);
		get_fh(in);
		ss_count(SS_N_RECALLED);
		break;
	case OP_CB_NOTIFY:
		get_notify(in);
		break;
	case OP_CB_RECALL_ANY:
		ss_get_u32(in);
		get_bitmap(in);
		break;
	case OP_CB_RECALL_SLOT:
		ss_get_u32(in);
		break;
	case OP_CB_NOTIFY_LOCK:
		get_fh(in);
		ss_get_u64(in);
		ss_get_opaque(in, 1024, &len);
		break;
	case OP_CB_OFFLOAD:
		get_offload(in);
		ss_count(SS_N_OFFLOADED);
		break;
	default:
		ss_wrong(in, "an operation that the server has not");
	}
}

/* The operation, which is the last. */
static void get_operation(struct ss_in *in, struct ss_callback *c)
{
	c->op = ss_get_u32(in);
	get_arguments(in, c->op);
	if (!in->bad && in->left)
		ss_wrong(in, "octets behind the last operation");
}

static void get_compound(struct ss_in *in, struct ss_callback *c)
{
	uint32_t len;

	ss_get_opaque(in, 1024, &len); /* tag */
	c->minor = ss_get_u32(in);
	if (c->minor > 2)
		ss_wrong(in, "a minor version that does not exist");
	ss_get_u32(in); /* callback_ident */
	c->nops = ss_get_u32(in);
	if (c->minor == 0) {
		if (c->nops != 1)
			ss_wrong(in, "not one operation in minor version 0");
		get_operation(in, c);
		return;
	}
	if (c->nops < 1 || c->nops > 2 || ss_get_u32(in) != OP_CB_SEQUENCE) {
		ss_wrong(in, "no CB_SEQUENCE, or too many operations");
		return;
	}
	memcpy(c->session, ss_get(in, sizeof(c->session)), sizeof(c->session));
	c->seqid = ss_get_u32(in);
	c->slot = ss_get_u32(in);
	if (ss_get_u32(in) < c->slot)
		ss_wrong(in, "a highest slot below the slot");
	ss_get_bool(in);
	for (uint32_t lists = ss_get_u32(in); lists && !in->bad; lists--) {
		ss_get(in, sizeof(c->session));
		for (uint32_t n = ss_get_u32(in); n && !in->bad; n--)
			ss_get_u64(in); /* sequence id, slot */
	}
	if (c->nops > 1)
		get_operation(in, c);
	else if (in->left)
		ss_wrong(in, "octets behind the last operation");
}

static bool is_new(const struct ss_back *b, uint32_t xid)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->call[i].xid == xid)
			return false;
	return true;
}

const char *ss_back_take(struct ss_back *b, const uint8_t *msg, size_t len)
{
	struct ss_in in = { .p = msg, .left = len };
	struct ss_callback c = { .xid = ss_get_u32(&in) };
	uint32_t n;

	if (ss_get_u32(&in) != RPC_CALL || ss_get_u32(&in) != RPC_VERSION)
		ss_wrong(&in, "no call of RPC version 2");
	ss_get_u32(&in); /* the program that the client has named */
	if (ss_get_u32(&in) != NFS4_CB_VERSION)
		ss_wrong(&in, "another version of the program");
	c.proc = ss_get_u32(&in);
	for (unsigned i = 0; i < 2; i++) {
		ss_get_u32(&in);
		ss_get_opaque(&in, RPC_AUTH_BYTES_MAX, &n);
	}
	if (c.proc > NFSPROC4_CB_COMPOUND)
		ss_wrong(&in, "a procedure that does not exist");
	if (c.proc == NFSPROC4_CB_COMPOUND)
		get_compound(&in, &c);
	if (!is_new(b, c.xid))
		ss_wrong(&in, "the xid of a call that waits");
	if (in.bad)
		return in.bad;
	if (b->n == SS_BACK_KEPT) /* given up by the server, over TCP */
		memmove(b->call, b->call + 1, --b->n * sizeof(b->call[0]));
	b->call[b->n++] = c;
	ss_count(SS_N_CALLED);
	return NULL;
}

static void put_words(struct xdr_out *x, const uint32_t *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		xdr_put_u32(x, words[i]);
}

static enum ss_answer kind_of(const struct ss_reaction *r)
{
	return r->how & SS_ANSWER_KIND;
}

static uint32_t sequence_status(enum ss_answer kind)
{
	switch (kind) {
	case SS_ANSWER_DELAY:
		return NFS4ERR_DELAY;
	case SS_ANSWER_BADSESSION:
		return NFS4ERR_BADSESSION;
	case SS_ANSWER_BADSLOT:
		return NFS4ERR_BADSLOT;
	case SS_ANSWER_BAD_HIGH_SLOT:
		return NFS4ERR_BAD_HIGH_SLOT;
	case SS_ANSWER_MISORDERED:
		return NFS4ERR_SEQ_MISORDERED;
	case SS_ANSWER_UNCACHED:
		return NFS4ERR_RETRY_UNCACHED_REP;
	default:
		return NFS4_OK;
	}
}

static void put_result(struct xdr_out *x, const struct ss_reaction *r, const struct ss_callback *c,
		       uint32_t status)
{
	xdr_put_u32(x, c->op);
	xdr_put_u32(x, status);
	if (c->op == OP_CB_GETATTR && status == NFS4_OK)
		ss_held_put(x, r->values, r->data, r->len);
}

/* Minor version 0 has no CB_SEQUENCE: errors of that are the operation's. */
static void put_results_40(struct xdr_out *x, const struct ss_reaction *r,
			   const struct ss_callback *c)
{
	const enum ss_answer kind = kind_of(r);
	const uint32_t sequence = sequence_status(kind);
	const uint32_t status = kind == SS_ANSWER_OP_DELAY ? NFS4ERR_DELAY : sequence;

	xdr_put_u32(x, status);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 1);
	put_result(x, r, c, status);
}

/* The results of CB_COMPOUND. */
static void put_results(struct xdr_out *x, const struct ss_reaction *r, const struct ss_callback *c)
{
	const enum ss_answer kind = kind_of(r);
	const uint32_t sequence = sequence_status(kind);
	const uint32_t status = kind == SS_ANSWER_OP_DELAY && c->nops > 1 ? NFS4ERR_DELAY : NFS4_OK;
	const uint32_t target = kind == SS_ANSWER_ONE_SLOT ? 0 : HIGHEST;

	if (c->minor == 0) {
		put_results_40(x, r, c);
		return;
	}
	xdr_put_u32(x, sequence ? sequence : status);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, sequence ? 1 : c->nops);
	xdr_put_u32(x, OP_CB_SEQUENCE);
	xdr_put_u32(x, sequence);
	if (sequence)
		return;
	xdr_put_fixed(x, c->session, sizeof(c->session));
	xdr_put_u32(x, c->seqid);
	xdr_put_u32(x, c->slot + (kind == SS_ANSWER_OTHER_ECHO));
	xdr_put_u32(x, HIGHEST);
	xdr_put_u32(x, target);
	if (c->nops > 1)
		put_result(x, r, c, status);
}

/* The reply behind xid and direction. */
static void put_reply(struct xdr_out *x, const struct ss_reaction *r, const struct ss_callback *c)
{
	const enum ss_answer kind = kind_of(r);
	static const uint32_t denied[] = { RPC_MSG_DENIED, RPC_AUTH_ERROR, RPC_AUTH_BADCRED };
	uint32_t head[] = { RPC_MSG_ACCEPTED, 0, 0, RPC_SUCCESS };

	switch (kind) {
	case SS_ANSWER_DENIED:
		put_words(x, denied, rn_array_size(denied));
		return;
	case SS_ANSWER_NO_PROGRAM:
	case SS_ANSWER_GARBAGE:
		head[3] = kind == SS_ANSWER_GARBAGE ? RPC_GARBAGE_ARGS : RPC_PROG_UNAVAIL;
		break;
	case SS_ANSWER_CUT:
		put_words(x, head, 2);
		return;
	default:
		break;
	}
	put_words(x, head, rn_array_size(head));
	if (head[3] == RPC_SUCCESS && c->proc == NFSPROC4_CB_COMPOUND)
		put_results(x, r, c);
}

unsigned ss_back_waiting(const struct ss_back *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->n; i++)
		n += !b->call[i].answered;
	return n;
}

size_t ss_back_answer(struct ss_back *b, const struct ss_reaction *r, uint8_t *out, uint32_t *xid,
		      uint32_t *credits)
{
	static const uint32_t grants[] = { 8, 1, 0, UINT32_MAX };
	const enum ss_answer kind = kind_of(r);
	struct ss_callback c;
	struct xdr_out x;

	if (!b->n)
		return 0;
	c = b->call[0];
	if (kind == SS_ANSWER_OTHER_XID) {
		c.xid += 0x1000;
	} else if (r->how & SS_ANSWER_AGAIN) {
		b->call[0].answered = true;
	} else {
		memmove(b->call, b->call + 1, --b->n * sizeof(b->call[0]));
	}
	*xid = c.xid;
	*credits = grants[(r->how & SS_ANSWER_CREDITS) >> 4];
	b->most = rn_max(b->most, *credits);
	ss_count(SS_N_CB_ANSWERED);
	xdr_out_init(&x, out, SS_ANSWER_MAX);
	xdr_put_u32(&x, c.xid);
	xdr_put_u32(&x, RPC_REPLY);
	if (r->how & SS_ANSWER_DATA)
		xdr_put_fixed(&x, r->data, (uint32_t)rn_min(r->len, SS_ANSWER_MAX - 8));
	else
		put_reply(&x, r, &c);
	return x.used;
}
