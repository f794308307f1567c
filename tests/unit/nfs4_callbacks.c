/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_callbacks.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/util.h"

#define SEEN_MAX 256u

static struct {
	uint8_t msg[SEEN_MAX][RPC_CALLBACK_SIZE];
	uint32_t len[SEEN_MAX];
	unsigned n, taken;
	int refuse;
	uint32_t limit;
} seen;

static struct rpc_conn_ops ops;

static int on_call(struct rpc_conn *conn, const uint8_t *msg, uint32_t len)
{
	(void)conn;
	if (seen.refuse)
		return seen.refuse;
	if (len > seen.limit)
		return -EMSGSIZE;
	cr_assert_lt(seen.n, SEEN_MAX);
	cr_assert_leq(len, RPC_CALLBACK_SIZE);
	memcpy(seen.msg[seen.n], msg, len);
	seen.len[seen.n++] = len;
	return 0;
}

void cbs_on(struct fixture *f)
{
	memset(&seen, 0, sizeof(seen));
	seen.limit = RPC_CALLBACK_SIZE;
	ops = *f->conn.ops;
	ops.call = on_call;
	f->conn.ops = &ops;
	f->back_channel = true;
}

unsigned cbs_count(void)
{
	return seen.n - seen.taken;
}

void cbs_refuse(int rc)
{
	seen.refuse = rc;
}

void cbs_limit(uint32_t len)
{
	seen.limit = len;
}

static void get_header(struct xdr_in *x, struct cb_call *c)
{
	c->xid = xdr_get_u32(x);
	cr_expect_eq(xdr_get_u32(x), RPC_CALL);
	cr_expect_eq(xdr_get_u32(x), RPC_VERSION);
	c->prog = xdr_get_u32(x);
	c->vers = xdr_get_u32(x);
	c->proc = xdr_get_u32(x);
	c->flavor = xdr_get_u32(x);
	const uint8_t *cred = xdr_get_opaque(x, RPC_AUTH_BYTES_MAX, &c->cred_len);
	cr_assert_not_null(cred);
	memcpy(c->cred, cred, c->cred_len);
	cr_expect_eq(xdr_get_u64(x), 0); /* verifier */
}

static void get_fh(struct xdr_in *x, struct cb_call *c)
{
	const uint8_t *p = xdr_get_opaque(x, NFS4_FHSIZE, &c->fh.len);

	cr_assert_not_null(p);
	memcpy(c->fh.data, p, c->fh.len);
}

static void get_recall(struct xdr_in *x, struct cb_call *c)
{
	nfs4_get_stateid(x, &c->stateid);
	cr_expect_not(xdr_get_bool(x), "truncate");
	get_fh(x, c);
}

static void get_layoutrecall(struct xdr_in *x, struct cb_call *c)
{
	cr_expect_eq(xdr_get_u32(x), LAYOUT4_FLEX_FILES);
	cr_expect_eq(xdr_get_u32(x), LAYOUTIOMODE4_ANY);
	cr_expect_not(xdr_get_bool(x), "changed");
	cr_expect_eq(xdr_get_u32(x), LAYOUT4_RET_REC_FILE);
	get_fh(x, c);
	cr_expect_eq(xdr_get_u64(x), 0);
	cr_expect_eq(xdr_get_u64(x), UINT64_MAX);
	nfs4_get_stateid(x, &c->stateid);
}

static void get_getattr(struct xdr_in *x, struct cb_call *c)
{
	get_fh(x, c);
	cr_expect_eq(xdr_get_u32(x), 1, "words of the bitmap");
	c->wants = xdr_get_u32(x);
}

static void get_recall_any(struct xdr_in *x, struct cb_call *c)
{
	c->keep = xdr_get_u32(x);
	cr_expect_eq(xdr_get_u32(x), 1, "words of the mask");
	c->types = xdr_get_u32(x);
}

static void get_notify(struct xdr_in *x, struct cb_call *c)
{
	nfs4_get_stateid(x, &c->stateid);
	get_fh(x, c);
	c->nchanges = xdr_get_u32(x);
	c->changes_len = (uint32_t)x->left;
	xdr_get_fixed(x, c->changes, c->changes_len);
}

static void get_notify_lock(struct xdr_in *x, struct cb_call *c)
{
	const uint8_t *p;

	get_fh(x, c);
	c->clientid = xdr_get_u64(x);
	p = xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &c->owner_len);
	cr_assert_not_null(p);
	memcpy(c->owner, p, c->owner_len);
}

static void get_offload(struct xdr_in *x, struct cb_call *c)
{
	const uint8_t *p = xdr_get_opaque(x, NFS4_FHSIZE, &c->fh.len);

	cr_assert_not_null(p);
	memcpy(c->fh.data, p, c->fh.len);
	nfs4_get_stateid(x, &c->sid);
	c->status = xdr_get_u32(x);
	if (c->status == NFS4_OK)
		cr_expect_eq(xdr_get_u32(x), 0, "wr_callback_id is set");
	c->count = xdr_get_u64(x);
	if (c->status != NFS4_OK)
		return;
	c->committed = xdr_get_u32(x);
	c->verifier = xdr_get_u64(x);
}

static void get_referring(struct xdr_in *x, struct cb_call *c)
{
	c->nreferring = xdr_get_u32(x);
	cr_assert_leq(c->nreferring, 1);
	if (c->nreferring == 0)
		return;
	xdr_get_fixed(x, c->ref_session, sizeof(c->ref_session));
	cr_assert_eq(xdr_get_u32(x), 1);
	c->ref_seqid = xdr_get_u32(x);
	c->ref_slot = xdr_get_u32(x);
}

bool cbs_take(struct cb_call *c)
{
	struct rpc_seg seg;
	struct xdr_in x;
	uint32_t len;

	memset(c, 0, sizeof(*c));
	if (cbs_count() == 0) {
		seen.n = seen.taken = 0;
		return false;
	}
	seg = (struct rpc_seg){ .base = seen.msg[seen.taken], .len = seen.len[seen.taken] };
	seen.taken++;
	xdr_in_init(&x, &seg, 1, NULL);
	get_header(&x, c);
	xdr_get_opaque(&x, 1024, &len); /* tag */
	c->minor = xdr_get_u32(&x);
	c->ident = xdr_get_u32(&x);
	c->nops = xdr_get_u32(&x);
	cr_expect_eq(xdr_get_u32(&x), OP_CB_SEQUENCE);
	xdr_get_fixed(&x, c->session, sizeof(c->session));
	c->seqid = xdr_get_u32(&x);
	c->slot = xdr_get_u32(&x);
	c->highest = xdr_get_u32(&x);
	c->cache_this = xdr_get_bool(&x);
	get_referring(&x, c);
	if (c->nops > 1)
		c->op = xdr_get_u32(&x);
	if (c->op == OP_CB_GETATTR)
		get_getattr(&x, c);
	if (c->op == OP_CB_RECALL)
		get_recall(&x, c);
	if (c->op == OP_CB_LAYOUTRECALL)
		get_layoutrecall(&x, c);
	if (c->op == OP_CB_NOTIFY_DEVICEID) {
		cr_expect_eq(xdr_get_u32(&x), 1);
		cr_expect_eq(xdr_get_u32(&x), 1);
		cr_expect_eq(xdr_get_u32(&x), 1u << NOTIFY_DEVICEID4_DELETE);
		cr_expect_eq(xdr_get_u32(&x), 4 + NFS4_DEVICEID_SIZE);
		cr_expect_eq(xdr_get_u32(&x), LAYOUT4_FLEX_FILES);
		xdr_get_fixed(&x, c->device, sizeof(c->device));
	}
	if (c->op == OP_CB_RECALL_ANY)
		get_recall_any(&x, c);
	if (c->op == OP_CB_RECALL_SLOT)
		c->target = xdr_get_u32(&x);
	if (c->op == OP_CB_NOTIFY)
		get_notify(&x, c);
	if (c->op == OP_CB_NOTIFY_LOCK)
		get_notify_lock(&x, c);
	if (c->op == OP_CB_OFFLOAD)
		get_offload(&x, c);
	cr_assert_not(x.err, "the call is cut short");
	cr_assert_eq(x.left, 0, "%zu bytes behind the call", x.left);
	return true;
}

static void put_answer(struct xdr_out *x, const struct cb_call *c, uint32_t sequence,
		       uint32_t status, uint32_t target)
{
	const bool both = c->nops > 1 && sequence == NFS4_OK;

	rpc_put_accepted(x, c->xid, RPC_SUCCESS);
	xdr_put_u32(x, both ? status : sequence);
	xdr_put_u32(x, 0); /* tag */
	xdr_put_u32(x, both ? 2 : 1);
	xdr_put_u32(x, OP_CB_SEQUENCE);
	xdr_put_u32(x, sequence);
	if (sequence != NFS4_OK)
		return;
	xdr_put_fixed(x, c->session, sizeof(c->session));
	xdr_put_u32(x, c->seqid);
	xdr_put_u32(x, c->slot);
	xdr_put_u32(x, 15);
	xdr_put_u32(x, target);
	if (both) {
		xdr_put_u32(x, c->op);
		xdr_put_u32(x, status);
	}
}

static void answer(struct fixture *f, const struct cb_call *c, uint32_t sequence, uint32_t status,
		   uint32_t target)
{
	uint8_t buf[256];
	struct xdr_out x;

	xdr_out_init(&x, buf, sizeof(buf));
	put_answer(&x, c, sequence, status, target);
	rpc_backchannel_reply(&f->conn, buf, (uint32_t)x.used);
}

void cbs_answer(struct fixture *f, const struct cb_call *c, uint32_t sequence, uint32_t status)
{
	answer(f, c, sequence, status, 15);
}

void cbs_answer_target(struct fixture *f, const struct cb_call *c, uint32_t target)
{
	answer(f, c, NFS4_OK, NFS4_OK, target);
}

void cbs_answer_attrs(struct fixture *f, const struct cb_call *c, uint64_t change, uint64_t size)
{
	uint8_t buf[256];
	struct xdr_out x;

	xdr_out_init(&x, buf, sizeof(buf));
	put_answer(&x, c, NFS4_OK, NFS4_OK, 15);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, c->wants);
	xdr_put_u32(&x, 16);
	xdr_put_u64(&x, change);
	xdr_put_u64(&x, size);
	rpc_backchannel_reply(&f->conn, buf, (uint32_t)x.used);
}

void cbs_answer_words(struct fixture *f, const struct cb_call *c, const uint32_t *words, unsigned n)
{
	uint8_t buf[256];
	struct xdr_out x;

	xdr_out_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, c->xid);
	for (unsigned i = 0; i < n; i++)
		xdr_put_u32(&x, words[i]);
	rpc_backchannel_reply(&f->conn, buf, (uint32_t)x.used);
}

void cbs_time_out(struct fixture *f)
{
	rpc_backchannel_expire(&f->conn, UINT64_MAX);
}

void cbs_lose(struct fixture *f)
{
	fix_close_back(f);
	f->conn.id++;
}

uint32_t cbs_sequence(struct fixture *f, struct fix4_session *s)
{
	fix4_begin(f, s);
	return fix4_send(f) == NFS4_OK ? s->status_flags : UINT32_MAX;
}

void cbs_probed(struct fixture *f, struct fix4_session *s)
{
	struct cb_call c;

	cr_assert_eq(cbs_sequence(f, s), 0);
	cr_assert(cbs_take(&c), "no probe");
	cr_expect_eq(c.nops, 1);
	cr_expect_arr_eq(c.session, s->id, sizeof(c.session));
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
}
