/* SPDX-License-Identifier: BSD-2-Clause */
/* The callback path of a session: binding, the probe, answers of all kinds, and SEQUENCE's flags. */
#include <errno.h>
#include <string.h>

#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/session.h"
#include "nfs4/session/session_private.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_client_calls.h"

NFS3_SUITE(nfs4_cb_path);

#define DOWN (SEQ4_STATUS_CB_PATH_DOWN | SEQ4_STATUS_CB_PATH_DOWN_SESSION)
#define FAULT SEQ4_STATUS_BACKCHANNEL_FAULT

static struct fix4_session s;
static struct cb_call c;

static void begin(void)
{
	cbs_on(f);
	cr_assert_eq(fix4_session_new(f, &s, 1, "client", false), NFS4_OK);
}

/* BIND_CONN_TO_SESSION; the direction given, or 100 and more for a failure. */
static uint32_t bind_conn(uint32_t dir)
{
	uint32_t status;

	fix4_begin_bare(f, 1, "");
	fix4_op(f, OP_BIND_CONN_TO_SESSION);
	xdr_put_fixed(&f->out, s.id, sizeof(s.id));
	xdr_put_u32(&f->out, dir);
	xdr_put_bool(&f->out, false);
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_BIND_CONN_TO_SESSION);
	xdr_skip(&f->in, NFS4_SESSIONID_SIZE);
	return xdr_get_u32(&f->in);
}

Test(nfs4_cb_path, the_first_sequence_has_it_probed)
{
	NEED_FIXTURE();
	begin();
	/* The client may not know the session before. */
	cr_expect_eq(cbs_count(), 0);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.prog, 0x40000000);
	cr_expect_eq(c.vers, 1);
	cr_expect_eq(c.proc, 1);
	cr_expect_eq(c.flavor, RPC_AUTH_NONE);
	cr_expect_eq(c.minor, 1);
	cr_expect_eq(c.ident, 0);
	cr_expect_eq(c.nops, 1);
	cr_expect_arr_eq(c.session, s.id, sizeof(s.id));
	cr_expect_eq(c.seqid, 1);
	cr_expect_eq(c.slot, 0);
	cr_expect_eq(c.highest, 0);
	cr_expect_not(c.cache_this);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_expect_eq(cbs_count(), 0);
}

Test(nfs4_cb_path, minor_version_2)
{
	NEED_FIXTURE();
	cbs_on(f);
	cr_assert_eq(fix4_session_new(f, &s, 2, "client", false), NFS4_OK);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.minor, 2);
}

Test(nfs4_cb_path, no_answer)
{
	NEED_FIXTURE();
	begin();
	cbs_sequence(f, &s);
	cr_assert(cbs_take(&c));
	cbs_time_out(f);
	cr_expect_eq(cbs_sequence(f, &s), DOWN);
	cr_expect_eq(cbs_sequence(f, &s), DOWN);
	cr_expect_eq(cbs_count(), 0);
	/* A late answer changes nothing. */
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(cbs_sequence(f, &s), DOWN);
	/* The client binds its connection again, which is bound to both. */
	cr_expect_eq(bind_conn(3), 3);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_assert(cbs_take(&c));
	/* Slot 0 is not used any more: its sequence id is not known. */
	cr_expect_eq(c.slot, 1);
	cr_expect_eq(c.seqid, 1);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(cbs_sequence(f, &s), 0);
}

Test(nfs4_cb_path, slots_that_are_lost_are_a_fault)
{
	NEED_FIXTURE();
	begin();
	for (unsigned i = 0; i < 15; i++) {
		cr_assert_eq(cbs_sequence(f, &s), 0);
		cr_assert(cbs_take(&c));
		cr_expect_eq(c.slot, i);
		cbs_time_out(f);
		cr_assert_eq(cbs_sequence(f, &s), DOWN);
		cr_assert_eq(bind_conn(3), 3);
	}
	cbs_sequence(f, &s);
	cbs_time_out(f);
	cr_expect_eq(cbs_sequence(f, &s), FAULT);
	bind_conn(3);
	cr_expect_eq(cbs_sequence(f, &s), FAULT);
}

Test(nfs4_cb_path, answers_to_the_sequence)
{
	static const struct {
		uint32_t status, flags;
		bool again; /* tried again at the next SEQUENCE */
	} rows[] = {
		{ NFS4_OK, 0, false },
		{ NFS4ERR_DELAY, 0, true },
		{ NFS4ERR_BADSLOT, FAULT, false }, /* slot 0 */
		{ NFS4ERR_BADSESSION, FAULT, false },
		{ NFS4ERR_DEADSESSION, FAULT, false },
		{ NFS4ERR_SEQ_MISORDERED, FAULT, false },
		{ NFS4ERR_SEQ_FALSE_RETRY, FAULT, false },
		{ NFS4ERR_RETRY_UNCACHED_REP, 0, false },
		{ NFS4ERR_OP_NOT_IN_SESSION, DOWN, false },
		{ 123456, DOWN, false },
	};

	NEED_FIXTURE();
	cbs_on(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char name[2] = { (char)('a' + i), 0 };

		cr_assert_eq(fix4_session_new(f, &s, 1, name, false), NFS4_OK);
		cbs_sequence(f, &s);
		cr_assert(cbs_take(&c));
		cbs_answer(f, &c, rows[i].status, 0);
		cr_expect_eq(cbs_sequence(f, &s), rows[i].flags, "row %zu", i);
		cr_expect_eq(cbs_take(&c), rows[i].again, "row %zu", i);
		if (rows[i].again)
			cbs_answer(f, &c, NFS4_OK, 0);
	}
}

#define RPC_OK RPC_REPLY, RPC_MSG_ACCEPTED, 0, 0, RPC_SUCCESS

Test(nfs4_cb_path, answers_that_are_wrong)
{
	static const struct {
		uint32_t words[16];
		unsigned n;
	} rows[] = {
		{ { RPC_REPLY, RPC_MSG_DENIED, RPC_AUTH_ERROR, RPC_AUTH_BADCRED }, 4 },
		{ { RPC_REPLY, RPC_MSG_ACCEPTED, 0, 0, RPC_PROG_UNAVAIL }, 5 },
		{ { RPC_REPLY, RPC_MSG_ACCEPTED, 0, 0 }, 4 },
		{ { RPC_OK }, 5 },
		{ { RPC_OK, NFS4_OK, 0, 0 }, 8 },
		{ { RPC_OK, NFS4_OK, 0, 1, OP_CB_RECALL, NFS4_OK }, 10 },
		{ { RPC_OK, NFS4_OK, 0, 1, OP_CB_SEQUENCE }, 9 },
		{ { RPC_OK, NFS4_OK, 0, 1, OP_CB_SEQUENCE, NFS4_OK }, 10 },
		/* another session's id, and slot */
		{ { RPC_OK, NFS4_OK, 0, 1, OP_CB_SEQUENCE, NFS4_OK, 1, 2, 3, 4, 1 }, 15 },
		{ { RPC_OK, NFS4_OK, 0, UINT32_MAX, OP_CB_SEQUENCE, NFS4_OK }, 10 },
		{ { RPC_OK, NFS4_OK, UINT32_MAX, 1, OP_CB_SEQUENCE, NFS4_OK }, 10 },
		{ { RPC_OK, NFS4ERR_MINOR_VERS_MISMATCH, 0, 0 }, 8 },
	};

	NEED_FIXTURE();
	cbs_on(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char name[2] = { (char)('a' + i), 0 };

		cr_assert_eq(fix4_session_new(f, &s, 1, name, false), NFS4_OK);
		cbs_sequence(f, &s);
		cr_assert(cbs_take(&c));
		cbs_answer_words(f, &c, rows[i].words, rows[i].n);
		cr_expect_eq(cbs_sequence(f, &s), DOWN, "row %zu", i);
	}
}

Test(nfs4_cb_path, a_wrong_echo)
{
	struct cb_call bent;

	NEED_FIXTURE();
	for (unsigned i = 0; i < 3; i++) {
		char name[2] = { (char)('a' + i), 0 };

		cbs_on(f);
		cr_assert_eq(fix4_session_new(f, &s, 1, name, false), NFS4_OK);
		cbs_sequence(f, &s);
		cr_assert(cbs_take(&c));
		bent = c;
		bent.seqid += i == 0;
		bent.slot += i == 1;
		bent.session[15] ^= i == 2;
		cbs_answer(f, &bent, NFS4_OK, NFS4_OK);
		cr_expect_eq(cbs_sequence(f, &s), DOWN, "row %u", i);
	}
}

Test(nfs4_cb_path, the_connection_is_lost)
{
	NEED_FIXTURE();
	begin();
	cbs_probed(f, &s);
	cbs_lose(f);
	cr_expect_eq(cbs_sequence(f, &s), DOWN);
	/* SEQUENCE alone binds the new connection to the fore channel only. */
	cr_expect_eq(cbs_sequence(f, &s), DOWN);
	cr_expect_eq(bind_conn(3), 3);
	cr_expect_eq(cbs_sequence(f, &s), 0);
}

Test(nfs4_cb_path, lost_with_a_call_under_way)
{
	NEED_FIXTURE();
	begin();
	cbs_sequence(f, &s);
	cr_assert(cbs_take(&c));
	cbs_lose(f);
	cr_expect_eq(cbs_sequence(f, &s), DOWN);
	cr_expect_eq(bind_conn(7), NFS4ERR_INVAL); /* it is the fore channel's already */
	cr_expect_eq(bind_conn(3), 3);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.slot, 1);
}

Test(nfs4_cb_path, what_bind_conn_to_session_gives)
{
	NEED_FIXTURE();
	begin();
	cr_expect_eq(bind_conn(1), NFS4ERR_INVAL); /* would take the back channel away */
	cr_expect_eq(bind_conn(2), NFS4ERR_INVAL);
	cr_expect_eq(bind_conn(3), 3);
	cr_expect_eq(bind_conn(7), 3);
	cbs_lose(f);
	cr_expect_eq(bind_conn(2), 2);
	cr_expect_eq(bind_conn(2), 2);
	cr_expect_eq(bind_conn(3), NFS4ERR_INVAL);
	cbs_lose(f);
	cr_expect_eq(bind_conn(7), 3);
	cbs_lose(f);
	cr_expect_eq(bind_conn(1), 1);
	cr_expect_eq(bind_conn(2), NFS4ERR_INVAL);
	cr_expect_eq(bind_conn(3), 3);
}

/* A second session of the client of s. */
static void second_session(struct fix4_session *other)
{
	const struct eid_args e = { .owner = "client", .verifier = "verifier" };
	struct cs_args a = { .clientid = s.clientid,
			     .flags = CREATE_SESSION4_FLAG_CONN_BACK_CHAN,
			     .fore = usual_channel,
			     .back = usual_channel };
	struct cs_result r;
	struct eid_result er;

	cr_assert_eq(call_exchange_id(f, NULL, &e, &er), NFS4_OK);
	a.seqid = er.seqid;
	cr_assert_eq(call_create_session(f, NULL, &a, &r), NFS4_OK);
	cr_expect_eq(r.flags, CREATE_SESSION4_FLAG_CONN_BACK_CHAN);
	use_session(other, s.clientid, &r);
}

Test(nfs4_cb_path, a_session_with_another_path)
{
	struct fix4_session other;

	NEED_FIXTURE();
	begin();
	cbs_probed(f, &s);
	second_session(&other);
	cbs_sequence(f, &other);
	cr_assert(cbs_take(&c));
	cbs_time_out(f);
	cr_expect_eq(cbs_sequence(f, &other), SEQ4_STATUS_CB_PATH_DOWN_SESSION);
	cr_expect_eq(cbs_sequence(f, &s), 0);
}

static bool is_chosen(const struct fix4_session *want)
{
	struct nfs4_client *cl = nfs4_client_get(f->server4->clients, s.clientid);
	struct nfs4_session *got = nfs4_cb_session(cl);
	const bool is = got && memcmp(got->id, want->id, sizeof(got->id)) == 0;

	nfs4_session_put(got);
	nfs4_client_put(cl);
	return is;
}

Test(nfs4_cb_path, the_session_that_callbacks_go_to)
{
	struct fix4_session other;

	NEED_FIXTURE();
	begin();
	cr_expect(is_chosen(&s)); /* no other, so it is worth a try */
	cbs_probed(f, &s);
	second_session(&other);
	/* The client may not know the new one. */
	cr_expect(is_chosen(&s));
	cbs_probed(f, &other);
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4_OK);
	cr_expect(is_chosen(&other));
}

Test(nfs4_cb_path, clients_that_want_none)
{
	NEED_FIXTURE();
	cbs_on(f);
	f->back_channel = false;
	cr_assert_eq(fix4_session_new(f, &s, 1, "client", false), NFS4_OK);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_expect_eq(cbs_count(), 0);
	/* Until it binds a connection. */
	cr_expect_eq(bind_conn(3), 3);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_expect_eq(cbs_count(), 1);
}

static uint32_t create(struct cs_args *a, struct cs_result *r)
{
	static const char *const names = "abcdefghijklmnop";
	static unsigned next;
	char name[2] = { names[next++], 0 };
	const struct eid_args e = { .owner = name, .verifier = "verifier" };
	struct eid_result er;

	cr_assert_eq(call_exchange_id(f, NULL, &e, &er), NFS4_OK);
	a->clientid = er.clientid;
	a->seqid = er.seqid;
	return call_create_session(f, NULL, a, r);
}

Test(nfs4_cb_path, back_channels_that_nothing_fits)
{
	static const struct {
		struct nfs4_channel ch;
		uint32_t flags, status, given;
	} rows[] = {
		{ { .max_request = 512, .max_reply = 128, .max_ops = 2, .max_requests = 1 },
		  2,
		  NFS4_OK,
		  2 },
		{ { .max_request = 511, .max_reply = 128, .max_ops = 2, .max_requests = 1 },
		  2,
		  NFS4ERR_TOOSMALL,
		  0 },
		{ { .max_request = 512, .max_reply = 127, .max_ops = 2, .max_requests = 1 },
		  2,
		  NFS4ERR_TOOSMALL,
		  0 },
		{ { .max_request = 512, .max_reply = 128, .max_ops = 1, .max_requests = 1 },
		  2,
		  NFS4ERR_TOOSMALL,
		  0 },
		{ { .max_request = 512, .max_reply = 128, .max_ops = 2, .max_requests = 0 },
		  2,
		  NFS4ERR_TOOSMALL,
		  0 },
		/* No back channel is asked for. */
		{ { .max_request = 0 }, 0, NFS4_OK, 0 },
	};

	NEED_FIXTURE();
	cbs_on(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cs_args a = { .flags = rows[i].flags,
				     .fore = usual_channel,
				     .back = rows[i].ch };
		struct cs_result r;

		cr_expect_eq(create(&a, &r), rows[i].status, "row %zu", i);
		cr_expect_eq(r.flags, rows[i].given, "row %zu", i);
	}
	/* The last one has no path, so no connection can be bound. */
	fix4_session_new(f, &s, 1, "q", false);
}

Test(nfs4_cb_path, a_transport_without_calls)
{
	NEED_FIXTURE();
	f->back_channel = true;
	cr_assert_eq(fix4_session_new(f, &s, 1, "client", false), NFS4_OK);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_expect_eq(bind_conn(3), 1);
}

Test(nfs4_cb_path, the_credential_that_the_client_lists)
{
	static const uint8_t cred[] = { 0, 0,	0, 7, 0, 0,   0, 4, 'h', 'o', 's', 't', 0, 0,
					0, 100, 0, 0, 0, 200, 0, 0, 0,	 1,   0,   0,	0, 24 };

	NEED_FIXTURE();
	begin();
	fix4_begin(f, &s);
	fix4_op(f, OP_BACKCHANNEL_CTL);
	xdr_put_u32(&f->out, 0x40001234);
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, RPC_AUTH_SYS);
	xdr_put_u32(&f->out, 7);
	fix4_name(f, "host");
	xdr_put_u32(&f->out, 100);
	xdr_put_u32(&f->out, 200);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 24);
	xdr_put_u32(&f->out, RPC_AUTH_NONE);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	/* That COMPOUND's SEQUENCE has sent the first probe. */
	cr_assert(cbs_take(&c));
	cbs_answer(f, &c, NFS4ERR_DELAY, 0);
	cbs_sequence(f, &s);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.prog, 0x40001234);
	cr_expect_eq(c.flavor, RPC_AUTH_SYS);
	cr_assert_eq(c.cred_len, sizeof(cred));
	cr_expect_arr_eq(c.cred, cred, sizeof(cred));
}

Test(nfs4_cb_path, the_end_of_a_session_with_a_call_under_way)
{
	NEED_FIXTURE();
	begin();
	cbs_sequence(f, &s);
	cr_assert(cbs_take(&c));
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4_OK);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	cr_expect_eq(cbs_count(), 0);
}

Test(nfs4_cb_path, memory_comes_back)
{
	size_t used;

	NEED_FIXTURE();
	begin();
	used = f->budget.used;
	for (unsigned i = 0; i < 3; i++) {
		struct fix4_session t;

		cr_assert_eq(fix4_session_new(f, &t, 1, "other", false), NFS4_OK);
		cbs_sequence(f, &t);
		cr_expect_gt(f->budget.used, used);
		cr_assert(cbs_take(&c));
		if (i == 1)
			cbs_time_out(f);
		else
			cbs_answer(f, &c, NFS4_OK, NFS4_OK);
		cr_expect_eq(call_destroy_session(f, NULL, t.id), NFS4_OK);
		cr_expect_eq(call_destroy_clientid(f, NULL, t.clientid), NFS4_OK);
		cr_expect_eq(f->budget.used, used, "round %u", i);
	}
}

/* Sessions that are idle do not read in SEQUENCE's replies that they should use fewer slots. */
Test(nfs4_cb_path, slots_of_an_idle_session_are_recalled)
{
	struct nfs4_session *in;
	size_t max;

	NEED_FIXTURE();
	begin();
	cbs_probed(f, &s);
	in = nfs4_session_get(f->server4->clients, s.id);
	cr_expect_not(nfs4_client_recall_slots(in->client), "it has just sent a request");
	cr_expect_not(nfs4_client_recall_slots(in->client), "memory is not short");
	max = f->budget.max;
	f->budget.max = f->budget.used + 100;
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_expect_not(nfs4_client_recall_slots(in->client), "it is not idle");
	cr_expect_eq(cbs_count(), 0);
	cr_expect(nfs4_client_recall_slots(in->client));
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.op, OP_CB_RECALL_SLOT);
	cr_expect_arr_eq(c.session, s.id, sizeof(s.id));
	cr_expect_eq(c.target, NFS4_SLOTS_LEAST - 1);
	cr_expect_not(nfs4_client_recall_slots(in->client), "it is asked once");
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	/* Two requests on a slot show that it knows; those under way before could use any slot. */
	cr_expect_eq(in->nslots, 16u);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_expect_eq(in->nslots, 16u);
	cr_expect_eq(cbs_sequence(f, &s), 0);
	cr_expect_eq(in->nslots, NFS4_SLOTS_LEAST);
	cr_expect_not(nfs4_client_recall_slots(in->client));
	cr_expect_not(nfs4_client_recall_slots(in->client), "it has no more");
	f->budget.max = max;
	nfs4_session_put(in);
}

/* The end of the session, or of its path, while its slots are recalled. */
Test(nfs4_cb_path, a_session_that_goes_while_its_slots_are_recalled)
{
	struct nfs4_client *cl;
	size_t max;

	NEED_FIXTURE();
	begin();
	cbs_probed(f, &s);
	cl = nfs4_client_get(f->server4->clients, s.clientid);
	max = f->budget.max;
	f->budget.max = f->budget.used + 100;
	cr_expect_not(nfs4_client_recall_slots(cl));
	cr_expect(nfs4_client_recall_slots(cl));
	f->budget.max = max;
	cr_assert(cbs_take(&c));
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4_OK);
	cbs_answer(f, &c, NFS4_OK, NFS4ERR_DELAY);
	cr_expect_not(nfs4_client_recall_slots(cl));
	nfs4_client_put(cl);
}
