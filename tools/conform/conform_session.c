/* SPDX-License-Identifier: BSD-2-Clause */
/* A client and a session of NFSv4.1 and up (RFC 8881 sections 18.35 to 18.37, 18.50, 18.51). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/conform/nfs4.h"

#define MESSAGE_MAX (1u << 20)

static bool cf4_exchange_id(struct cf_test *t, struct cf4_session *s, uint32_t *sequence)
{
	struct cf_call *c = cf4_new(t, s, NULL);
	char owner[64];

	snprintf(owner, sizeof(owner), "rpcrdma-conform %d %u", getpid(), c->xid);
	cf4_op(c, CF4_EXCHANGE_ID);
	xdr_put_u32(&c->rpc, getpid());
	xdr_put_u32(&c->rpc, c->xid);
	xdr_put_opaque(&c->rpc, owner, strlen(owner));
	xdr_put_u32(&c->rpc, 0); /* flags */
	xdr_put_u32(&c->rpc, 0); /* SP4_NONE */
	xdr_put_u32(&c->rpc, 0); /* no implementation id */
	struct cf_reply *r = cf_ask(t, c);
	if (!r)
		return false;
	struct xdr_in start = r->x;
	if (xdr_get_u32(&start) == CF4ERR_MINOR_VERS_MISMATCH)
		return cf_skip(t, "NFSv4.%u is not served", s->minor);
	if (!cf4_results(t, s, r, CF4_OK) || !cf4_op_done(t, r, CF4_EXCHANGE_ID, CF4_OK))
		return false;
	s->client = xdr_get_u64(&r->x);
	*sequence = xdr_get_u32(&r->x);
	return !r->x.err || cf_fail(t, "EXCHANGE_ID's result", "it is too short");
}

static void cf4_put_channel(struct xdr_out *x, uint32_t size, uint32_t ops, uint32_t slots)
{
	xdr_put_u32(x, 0); /* header pad */
	xdr_put_u32(x, size);
	xdr_put_u32(x, size);
	xdr_put_u32(x, 4096); /* cached */
	xdr_put_u32(x, ops);
	xdr_put_u32(x, slots);
	xdr_put_u32(x, 0); /* no ca_rdma_ird */
}

#define CONN_BACK_CHAN 2u

/* back NULL: its attributes are sent all the same, but none is asked for. */
static bool create_session(struct cf_test *t, struct cf4_session *s, uint32_t sequence,
			   uint32_t slots, const struct cf4_back_channel *back)
{
	static const struct cf4_back_channel unused = { 1, 4096, 0x40000000 };
	struct cf_call *c = cf4_new(t, s, NULL);

	cf4_op(c, CF4_CREATE_SESSION);
	xdr_put_u64(&c->rpc, s->client);
	xdr_put_u32(&c->rpc, sequence);
	xdr_put_u32(&c->rpc, back ? CONN_BACK_CHAN : 0);
	if (!back)
		back = &unused;
	cf4_put_channel(&c->rpc, MESSAGE_MAX, 48, slots);
	cf4_put_channel(&c->rpc, back->size, 2, back->slots);
	xdr_put_u32(&c->rpc, back->program);
	xdr_put_u32(&c->rpc, 1); /* one flavor: AUTH_NONE */
	xdr_put_u32(&c->rpc, 0);
	struct cf_reply *r = cf_ask(t, c);
	if (!r)
		return false;
	struct xdr_in start = r->x;
	if (back != &unused && xdr_get_u32(&start) == CF4ERR_TOOSMALL)
		return cf_skip(t, "the server wants callbacks longer than %u bytes", back->size);
	if (!cf4_results(t, s, r, CF4_OK) || !cf4_op_done(t, r, CF4_CREATE_SESSION, CF4_OK))
		return false;
	xdr_get_fixed(&r->x, s->id, sizeof(s->id));
	s->sequence = 1;
	xdr_get_u32(&r->x); /* sequence */
	s->has_back = xdr_get_u32(&r->x) & CONN_BACK_CHAN;
	/* header pad, sizes of request, reply and cached reply, operations */
	xdr_skip(&r->x, 5 * 4);
	s->slots = xdr_get_u32(&r->x);
	return !r->x.err || cf_fail(t, "CREATE_SESSION's result", "it is too short");
}

static bool reclaim_complete(struct cf_test *t, struct cf4_session *s)
{
	struct cf_call *c = cf4_new(t, s, NULL);

	cf4_op(c, CF4_RECLAIM_COMPLETE);
	xdr_put_bool(&c->rpc, false);
	struct cf_reply *r = cf4_ask(t, s, c);
	return r && cf4_op_done(t, r, CF4_RECLAIM_COMPLETE, CF4_OK);
}

static struct cf4_session *cf4_session_begin(struct cf_test *t, uint32_t minor, uint32_t slots,
					     const struct cf4_back_channel *back)
{
	struct cf4_session *s = cf_alloc(t, sizeof(*s));
	uint32_t sequence = 0;

	s->minor = minor;
	if (minor == 0)
		return s;
	if (!cf4_exchange_id(t, s, &sequence) || !create_session(t, s, sequence, slots, back))
		return NULL;
	t->session = s;
	return reclaim_complete(t, s) ? s : NULL;
}

struct cf4_session *cf4_begin_slots(struct cf_test *t, uint32_t minor, uint32_t slots)
{
	return cf4_session_begin(t, minor, slots, NULL);
}

struct cf4_session *cf4_begin(struct cf_test *t, uint32_t minor)
{
	return cf4_session_begin(t, minor, 1, NULL);
}

struct cf4_session *cf4_begin_back(struct cf_test *t, uint32_t minor,
				   const struct cf4_back_channel *back)
{
	struct cf4_session *s = cf4_session_begin(t, minor, 1, back);

	if (!s || s->has_back)
		return s;
	cf_skip(t, "the server gives no back channel over RDMA");
	return NULL;
}

/* Without SEQUENCE, so that it works whatever state the case left the slot in. */
void cf4_end(struct cf_test *t)
{
	struct cf4_session *s = t->session;

	t->session = NULL;
	if (!s || !t->conn || t->conn->closed)
		return;
	s->sequence = 0;
	struct cf_call *c = cf4_new(t, s, NULL);
	cf4_op(c, CF4_DESTROY_SESSION);
	xdr_put_fixed(&c->rpc, s->id, sizeof(s->id));
	if (!cf_ask_any(t, c))
		return;
	c = cf4_new(t, s, NULL);
	cf4_op(c, CF4_DESTROY_CLIENTID);
	xdr_put_u64(&c->rpc, s->client);
	cf_ask_any(t, c);
}
