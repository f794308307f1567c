/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions over RDMA: slots and credits are independent (RFC 8267 section 6.6), a transport error
 * leaves the slot usable, and replies of NFSv4.1 whose length the client cannot know (section
 * 6.2.2).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"
#include "tools/conform/nfs4.h"

#define SLOTS_MAX 64u

/* ---- a slot after ERR_CHUNK -------------------------------------------------------------------
 */

/* Status of a SEQUENCE alone on the slot; UINT32_MAX after a verdict. */
static uint32_t sequence_status(struct cf_test *t, struct cf4_session *s, uint32_t sequence)
{
	struct cf_reply *r = cf_ask(t, cf4_new_on(t, s, 0, sequence));

	return r ? cf_peek_status(r) : UINT32_MAX;
}

/*
 * Recovers as a client does after a transport error on slot 0. It cannot know whether the server
 * has seen the SEQUENCE, so it tries the next number, and after SEQ_MISORDERED the same number
 * again. One of the two must be right.
 */
static void slot_goes_on(struct cf_test *t, struct cf4_session *s, uint32_t sequence)
{
	uint32_t status = sequence_status(t, s, sequence + 1);

	if (status == CF4ERR_SEQ_MISORDERED) {
		status = sequence_status(t, s, sequence);
		sequence--;
	}
	if (status != CF4_OK && status != UINT32_MAX)
		cf_fail(t, "a slot that goes on after a transport error", "status %u", status);
	if (status == CF4_OK && sequence_status(t, s, sequence + 2) != CF4_OK)
		cf_fail(t, "the slot's next sequence number", "it is refused");
	s->sequence = sequence + 3;
}

/* Sends lists that no reply header of 1024 bytes can return. */
static void after_err_chunk(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);
	uint8_t private[CF_PRIVATE_SIZE];

	cf_private_encode(private, false, 4096, CF_INLINE_MIN);
	o.private_data = private;
	o.private_len = sizeof(private);
	o.recv_size = CF_INLINE_MIN;
	if (!cf_open(t, &o))
		return;
	if (t->conn->call_inline < 2048) {
		cf_skip(t, "the server takes no messages longer than %u bytes",
			t->conn->call_inline);
		return;
	}
	struct cf4_session *s = cf4_begin(t, t->arg);
	if (!s)
		return;
	struct cf_call *c = cf4_new_on(t, s, 0, s->sequence);
	cf4_putrootfh(c);
	cf4_getattr(c);
	if (!cf_offer_write(t, c, 4096, 32) || !cf_offer_reply(t, c, 4096, 32))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (r && cf_expect_err_chunk(t, r))
		slot_goes_on(t, s, s->sequence);
}

/* READ that fits neither inline nor any chunk; any answer of the server is accepted. */
static void after_long_read(struct cf_test *t)
{
	struct cf4_session *s = cf4_begin(t, t->arg);
	struct cf_fh fh3, fh;

	if (!s || !cf3_make_file(t, "v4-session", 20000, &fh3) ||
	    !cf4_handle(t, s, "v4-session", &fh))
		return;
	uint32_t sequence = s->sequence;
	struct cf_call *c = cf4_new_on(t, s, 0, sequence);
	cf4_putfh(c, &fh);
	cf4_read(c, 0, 20000);
	if (cf_ask_any(t, c))
		slot_goes_on(t, s, sequence);
}

/* The session's other slots are not affected. */
static void other_slots(struct cf_test *t)
{
	struct cf4_session *s = cf4_begin_slots(t, t->arg, 4);

	if (!s)
		return;
	if (s->slots < 2) {
		cf_skip(t, "the server grants one slot");
		return;
	}
	struct cf_call *c = cf4_new_on(t, s, 1, 1);
	c->proc = CF_MSGP; /* ERR_CHUNK: the server has not seen a call */
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r || !cf_expect_err_chunk(t, r) || sequence_status(t, s, s->sequence++) != CF4_OK)
		return;
	r = cf_ask(t, cf4_new_on(t, s, 1, 1));
	if (r)
		cf4_results(t, s, r, CF4_OK);
}

/* ---- slots and credits ------------------------------------------------------------------------
 */

static bool slot_answered(struct cf_test *t, unsigned i, struct cf_call *c, struct cf_reply *r)
{
	(void)i;
	(void)c;
	if (!cf_expect_success(t, r))
		return false;
	uint32_t status = cf_peek_status(r);
	return status == CF4_OK ||
	       cf_fail(t, "a free slot takes its SEQUENCE", "status %u", status);
}

/* Sends the next SEQUENCE on each slot, the last slot first, with at most `window` of them in
 * flight. */
static bool all_slots(struct cf_test *t, struct cf4_session *s, unsigned n, uint32_t sequence,
		      unsigned window)
{
	struct cf_call *calls[SLOTS_MAX];

	for (unsigned i = 0; i < n; i++) {
		unsigned slot = n - 1 - i;
		/* Slot 0 has had RECLAIM_COMPLETE. */
		calls[i] = cf4_new_on(t, s, slot, slot ? sequence : sequence + s->sequence - 1);
		calls[i]->credits = window;
		cf4_putrootfh(calls[i]);
		cf4_getattr(calls[i]);
	}
	return cf_many(t, calls, n, window, slot_answered);
}

/* Uses t->arg credits and all slots. */
static void slots(struct cf_test *t)
{
	struct cf4_session *s = cf4_begin_slots(t, 1, SLOTS_MAX);

	if (!s)
		return;
	if (s->slots == 0 || s->slots > SLOTS_MAX) {
		cf_fail(t, "some of the slots that were asked for", "%u", s->slots);
		return;
	}
	unsigned window = cf_credits(t, (uint32_t)t->arg);
	for (uint32_t round = 1; window && round <= 3; round++)
		if (!all_slots(t, s, s->slots, round, window))
			return;
}

/* Uses one slot while calls without a slot take all credits. */
static void credits_without_slots(struct cf_test *t)
{
	struct cf4_session *s = cf4_begin(t, 1);
	unsigned window = s ? cf_credits(t, 32) : 0;
	struct cf_call *calls[32];

	if (!window)
		return;
	for (unsigned round = 0; round < 3; round++) {
		calls[0] = cf4_new(t, s, NULL);
		cf4_putrootfh(calls[0]);
		for (unsigned i = 1; i < window; i++)
			calls[i] = cf_call_new_none(t, CF_PROG_NFS, 4, 0);
		if (!cf_many(t, calls, window, window, NULL))
			return;
	}
	cf_alive(t);
}

/* ---- long replies of unknown length -----------------------------------------------------------
 */

static void put_exchange_id(struct cf_call *c)
{
	char owner[64];

	snprintf(owner, sizeof(owner), "rpcrdma-conform id %d %u", getpid(), c->xid);
	cf4_op(c, CF4_EXCHANGE_ID);
	xdr_put_u32(&c->rpc, getpid());
	xdr_put_u32(&c->rpc, c->xid);
	xdr_put_opaque(&c->rpc, owner, strlen(owner));
	xdr_put_u32(&c->rpc, 0); /* flags */
	xdr_put_u32(&c->rpc, 0); /* SP4_NONE */
	xdr_put_u32(&c->rpc, 0); /* no implementation id */
}

/* Checks all of EXCHANGE_ID4resok and the end of the reply. */
static bool exchange_id_done(struct cf_test *t, struct cf_reply *r, uint64_t *client)
{
	uint32_t len;

	*client = xdr_get_u64(&r->x);
	xdr_skip(&r->x, 4 + 4); /* sequence, flags */
	if (xdr_get_u32(&r->x) != 0)
		return cf_fail(t, "SP4_NONE, as was asked for", "another protection");
	xdr_get_u64(&r->x);		   /* minor id of the owner */
	xdr_get_opaque(&r->x, 1024, &len); /* major id */
	xdr_get_opaque(&r->x, 1024, &len); /* scope */
	for (uint32_t n = xdr_get_u32(&r->x); n && !r->x.err; n--) {
		xdr_get_opaque(&r->x, 1024, &len); /* domain */
		xdr_get_opaque(&r->x, 1024, &len); /* name */
		xdr_skip(&r->x, 12);		   /* date */
	}
	return (!r->x.err && !r->x.left) ||
	       cf_fail(t, "EXCHANGE_ID's result up to the end of the reply", "%zu bytes are left",
		       r->x.left);
}

static void v4_session_exchange_id(struct cf_test *t)
{
	struct cf4_session none = { .minor = 1 };
	uint64_t client;

	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf4_new(t, &none, "id");
	put_exchange_id(c);
	if (!cf_offer_reply(t, c, 4096, t->arg))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf4_results(t, &none, r, CF4_OK) ||
	    !cf4_op_done(t, r, CF4_EXCHANGE_ID, CF4_OK) || !exchange_id_done(t, r, &client))
		return;
	c = cf4_new(t, &none, NULL);
	cf4_op(c, CF4_DESTROY_CLIENTID);
	xdr_put_u64(&c->rpc, client);
	cf_ask(t, c);
}

#define WORDS 3u

static void put_getattr(struct cf_call *c, const uint32_t *mask)
{
	cf4_putrootfh(c);
	cf4_op(c, CF4_GETATTR);
	xdr_put_u32(&c->rpc, WORDS);
	for (unsigned i = 0; i < WORDS; i++)
		xdr_put_u32(&c->rpc, mask[i]);
}

/* Result of GETATTR: its bitmap, and the cursor behind the length of its values. */
static bool getattr_done(struct cf_test *t, struct cf4_session *s, struct cf_reply *r,
			 uint32_t *mask, uint32_t *len)
{
	if (!r || !cf4_results(t, s, r, CF4_OK) || !cf4_op_done(t, r, CF4_PUTROOTFH, CF4_OK) ||
	    !cf4_op_done(t, r, CF4_GETATTR, CF4_OK))
		return false;
	memset(mask, 0, WORDS * sizeof(*mask));
	uint32_t n = xdr_get_u32(&r->x);
	for (uint32_t i = 0; i < n && !r->x.err; i++) {
		uint32_t word = xdr_get_u32(&r->x);
		if (i < WORDS)
			mask[i] = word;
	}
	*len = xdr_get_u32(&r->x);
	return !r->x.err || cf_fail(t, "GETATTR's result", "it is too short");
}

/* Asks for every attribute that the server supports for its root, on a connection with short
 * messages. */
static void all_attributes(struct cf_test *t)
{
	uint32_t mask[WORDS] = { 1 }, got[WORDS], len; /* supported_attrs */

	if (!cf_open_small(t))
		return;
	struct cf4_session *s = cf4_begin(t, t->arg);
	if (!s)
		return;
	struct cf_call *c = cf4_new(t, s, NULL);
	put_getattr(c, mask);
	struct cf_reply *r = cf_ask(t, c);
	if (!getattr_done(t, s, r, got, &len))
		return;
	uint32_t n = xdr_get_u32(&r->x);
	for (uint32_t i = 0; i < n && i < WORDS; i++)
		mask[i] = xdr_get_u32(&r->x);
	mask[0] &= ~(1u << 11); /* rdattr_error is for READDIR */
	/* For SETATTR: time_access_set and time_modify_set; retention_set, retentevt_set,
	 * mode_set_masked and mode_umask. */
	mask[1] &= ~(1u << 16 | 1u << 22);
	mask[2] &= ~(1u << 6 | 1u << 8 | 1u << 10 | 1u << 17);
	c = cf4_new(t, s, NULL);
	put_getattr(c, mask);
	if (!cf_offer_reply(t, c, 16384, 5))
		return;
	r = cf_ask(t, c);
	if (!getattr_done(t, s, r, got, &len))
		return;
	for (unsigned i = 0; i < WORDS; i++)
		if (got[i] & ~mask[i])
			cf_fail(t, "no attribute that was not asked for", "word %u: %08x", i,
				got[i] & ~mask[i]);
	if (r->x.left != len)
		cf_fail(t, "the values up to the end of the reply", "%u bytes of %zu", len,
			r->x.left);
}

#define OWN (CF_NFS4 | CF_OWN_CONN)

static const struct cf_case cases[] = {
	{ "v41-slot-err-chunk", "RFC 8267 6.6", "a slot can be used again after ERR_CHUNK",
	  after_err_chunk, 1, OWN },
	{ "v42-slot-err-chunk", "RFC 8267 6.6", "NFSv4.2: a slot can be used again after ERR_CHUNK",
	  after_err_chunk, 2, OWN },
	{ "v41-slot-long-read", "RFC 8267 6.6",
	  "a slot can be used again after a READ that has no room", after_long_read, 1, CF_NFS4 },
	{ "v41-slot-others", "RFC 8267 6.6", "ERR_CHUNK on one slot does not concern another",
	  other_slots, 1, CF_NFS4 },
	{ "v41-slots-credits-1", "RFC 8267 6.6", "all slots in turn, with one credit", slots, 1,
	  CF_NFS4 },
	{ "v41-slots-credits-8", "RFC 8267 6.6", "more slots than credits in use", slots, 8,
	  CF_NFS4 },
	{ "v41-slots-credits-32", "RFC 8267 6.6", "32 credits, and what slots there are", slots, 32,
	  CF_NFS4 },
	{ "v41-credits-no-slots", "RFC 8267 6.6", "more credits than slots", credits_without_slots,
	  0, CF_NFS4 },
	{ "v41-exchange-id-chunk", "RFC 8267 6.2.2", "EXCHANGE_ID with a Reply chunk",
	  v4_session_exchange_id, 1, OWN },
	{ "v41-exchange-id-segments", "RFC 8267 6.4.2",
	  "EXCHANGE_ID with a Reply chunk of sixteen segments", v4_session_exchange_id, 16, OWN },
	{ "v40-all-attributes", "RFC 8267 6.2.1", "GETATTR of everything, with a Reply chunk",
	  all_attributes, 0, OWN },
	{ "v41-all-attributes", "RFC 8267 6.2.2",
	  "NFSv4.1: GETATTR of everything, with a Reply chunk", all_attributes, 1, OWN },
	{ "v42-all-attributes", "RFC 8267 6.2.2",
	  "NFSv4.2: GETATTR of everything, with a Reply chunk", all_attributes, 2, OWN },
};

const struct cf_group cf_group_v4_session = { "v4-session", 2301, cases, rn_array_size(cases) };
