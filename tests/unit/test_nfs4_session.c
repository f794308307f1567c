/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions from CREATE_SESSION to DESTROY_CLIENTID (RFC 8881 sections 18.33 to 18.37, 18.47, 18.50,
 * 18.51). */
#include "nfs4/client/client_table.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_text.h"

NFS3_SUITE(nfs4_session);

static struct cs_args a;
static struct cs_result r;

/* Makes an unconfirmed client, and arguments for its first session. */
static void new_client(const char *owner)
{
	const struct eid_args e = { .owner = owner, .verifier = "verf0001" };
	struct eid_result er;

	cr_assert_eq(call_exchange_id(f, NULL, &e, &er), NFS4_OK);
	a = (struct cs_args){ .clientid = er.clientid,
			      .seqid = er.seqid,
			      .fore = usual_channel,
			      .back = usual_channel };
}

static uint32_t create(void)
{
	return call_create_session(f, NULL, &a, &r);
}

Test(nfs4_session, create)
{
	struct fix4_session s;

	NEED_FIXTURE();
	new_client("one");
	cr_expect_eq(create(), NFS4_OK);
	whole();
	cr_expect_eq(r.seqid, a.seqid);
	cr_expect_eq(r.flags, 0);
	use_session(&s, a.clientid, &r);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}

Test(nfs4_session, the_slot_of_create_session)
{
	struct cs_result first;

	NEED_FIXTURE();
	new_client("one");
	a.seqid--;
	cr_expect_eq(create(), NFS4ERR_SEQ_MISORDERED);
	a.seqid += 2;
	cr_expect_eq(create(), NFS4ERR_SEQ_MISORDERED);
	a.seqid--;
	cr_expect_eq(create(), NFS4_OK);
	first = r;
	/* A retry makes no new session and does not check its arguments. */
	a.fore.max_request = 1;
	cr_expect_eq(create(), NFS4_OK);
	cr_expect_arr_eq(r.id, first.id, sizeof(r.id));
	cr_expect_eq(r.seqid, first.seqid);
	cr_expect_eq(r.fore.max_request, first.fore.max_request);
	/* The next call fails, and its retry gets the same error. */
	a.seqid++;
	cr_expect_eq(create(), NFS4ERR_TOOSMALL);
	a.fore = usual_channel;
	cr_expect_eq(create(), NFS4ERR_TOOSMALL);
	a.seqid++;
	cr_expect_eq(create(), NFS4_OK);
	cr_expect_neq(memcmp(r.id, first.id, sizeof(r.id)), 0);
	a.seqid -= 2;
	cr_expect_eq(create(), NFS4ERR_SEQ_MISORDERED);
	a.seqid += 4;
	cr_expect_eq(create(), NFS4ERR_SEQ_MISORDERED);
}

Test(nfs4_session, its_retry_within_another_session)
{
	struct fix4_session s;
	struct cs_result first;

	NEED_FIXTURE();
	new_client("one");
	cr_assert_eq(create(), NFS4_OK);
	first = r;
	use_session(&s, a.clientid, &r);
	cr_expect_eq(call_create_session(f, &s, &a, &r), NFS4_OK);
	cr_expect_arr_eq(r.id, first.id, sizeof(r.id));
	a.seqid++;
	cr_expect_eq(call_create_session(f, &s, &a, &r), NFS4_OK);
	cr_expect_neq(memcmp(r.id, first.id, sizeof(r.id)), 0);
}

Test(nfs4_session, who_may_confirm)
{
	NEED_FIXTURE();
	new_client("one");
	f->uid = 1000;
	cr_expect_eq(create(), NFS4ERR_CLID_INUSE);
	f->uid = 0;
	f->flavor = RPC_AUTH_NONE;
	cr_expect_eq(create(), NFS4ERR_CLID_INUSE);
	f->flavor = RPC_AUTH_SYS;
	cr_expect_eq(create(), NFS4_OK);
	a.clientid++;
	cr_expect_eq(create(), NFS4ERR_STALE_CLIENTID);
	a.clientid ^= 1ull << 63;
	cr_expect_eq(create(), NFS4ERR_STALE_CLIENTID);
}

Test(nfs4_session, flags_and_security)
{
	static const struct {
		uint32_t flags;
		bool gss, gss_only;
		uint32_t status;
	} rows[] = {
		{ 0, false, false, NFS4_OK },
		/* Persistence, back channel and RDMA step-up are not granted. */
		{ CREATE_SESSION4_FLAG_PERSIST, false, false, NFS4_OK },
		{ CREATE_SESSION4_FLAG_CONN_BACK_CHAN, false, false, NFS4_OK },
		{ CREATE_SESSION4_FLAG_CONN_RDMA, false, false, NFS4_OK },
		{ 7, false, false, NFS4_OK },
		{ 8, false, false, NFS4ERR_INVAL },
		{ 0x80000000, false, false, NFS4ERR_INVAL },
		/* One supported kind of several is enough. */
		{ 0, true, false, NFS4_OK },
		{ 0, false, true, NFS4ERR_NOENT },
	};

	NEED_FIXTURE();
	new_client("one");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		a.flags = rows[i].flags;
		a.gss = rows[i].gss;
		a.gss_only = rows[i].gss_only;
		cr_expect_eq(create(), rows[i].status, "row %zu", i);
		cr_expect_eq(r.flags, 0);
		a.seqid++;
	}
}

Test(nfs4_session, what_the_fore_channel_agrees_on)
{
	struct nfs4_channel *c = &a.fore;
	const uint32_t io = f ? f->server4->cfg.max_io : 0;

	NEED_FIXTURE();
	new_client("one");
	*c = (struct nfs4_channel){ .header_pad = 64,
				    .max_request = UINT32_MAX,
				    .max_reply = UINT32_MAX,
				    .max_cached = UINT32_MAX,
				    .max_ops = UINT32_MAX,
				    .max_requests = UINT32_MAX,
				    .nird = 1,
				    .ird = 5 };
	cr_assert_eq(create(), NFS4_OK);
	cr_expect_eq(r.fore.header_pad, 0);
	cr_expect_geq(r.fore.max_request, io + 1024);
	cr_expect_leq(r.fore.max_request, io + 65536);
	cr_expect_geq(r.fore.max_reply, io + 1024);
	cr_expect_eq(r.fore.max_cached, NFS4_CACHED_MOST);
	cr_expect_eq(r.fore.max_ops, 128);
	cr_expect_eq(r.fore.max_requests, NFS4_SLOTS_FIRST);
	cr_expect_eq(r.fore.nird, 1);
	cr_expect_eq(r.fore.ird, 5);
	/* Limits never exceed the offer, except for minimums without which no call would work. */
	*c = (struct nfs4_channel){ .max_request = 1000, .max_reply = 900, .max_cached = 2000 };
	a.seqid++;
	cr_assert_eq(create(), NFS4_OK);
	cr_expect_eq(r.fore.max_request, 1000);
	cr_expect_eq(r.fore.max_reply, 900);
	cr_expect_eq(r.fore.max_cached, 900);
	cr_expect_eq(r.fore.max_ops, 2);
	cr_expect_eq(r.fore.max_requests, 1);
	cr_expect_eq(r.fore.nird, 0);
}

Test(nfs4_session, channels_that_nothing_fits)
{
	static const struct {
		uint32_t request, reply, status;
	} rows[] = {
		{ 0, 1000, NFS4ERR_TOOSMALL },	 { 20, 1000, NFS4ERR_TOOSMALL },
		{ 255, 1000, NFS4ERR_TOOSMALL }, { 256, 1000, NFS4_OK },
		{ 1000, 0, NFS4ERR_TOOSMALL },	 { 1000, 159, NFS4ERR_TOOSMALL },
		{ 1000, 160, NFS4_OK },
	};

	NEED_FIXTURE();
	new_client("one");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		a.fore.max_request = rows[i].request;
		a.fore.max_reply = rows[i].reply;
		cr_expect_eq(create(), rows[i].status, "row %zu", i);
		a.seqid++;
	}
}

Test(nfs4_session, the_back_channel_is_the_clients_to_size)
{
	NEED_FIXTURE();
	new_client("one");
	a.back = (struct nfs4_channel){ .header_pad = 8,
					.max_request = 4096,
					.max_reply = 4096,
					.max_cached = 0,
					.max_ops = 2,
					.max_requests = 16 };
	cr_assert_eq(create(), NFS4_OK);
	cr_expect_eq(r.back.header_pad, 0);
	cr_expect_eq(r.back.max_request, 4096);
	cr_expect_eq(r.back.max_reply, 4096);
	cr_expect_eq(r.back.max_cached, 0);
	cr_expect_eq(r.back.max_ops, 2);
	cr_expect_eq(r.back.max_requests, 16);
}

/* Refused whether or not this connection is to be its first: another may be bound to it later. */
Test(nfs4_session, back_channels_that_no_callback_fits)
{
	static const struct {
		uint32_t request, reply, ops, requests, status, status_if_asked;
	} rows[] = {
		{ 10, 10, 2, 1, NFS4ERR_TOOSMALL, NFS4ERR_TOOSMALL },
		{ 511, 128, 2, 1, NFS4ERR_TOOSMALL, NFS4ERR_TOOSMALL },
		{ 512, 127, 2, 1, NFS4ERR_TOOSMALL, NFS4ERR_TOOSMALL },
		{ 512, 128, 1, 1, NFS4ERR_TOOSMALL, NFS4ERR_TOOSMALL },
		{ 512, 128, 2, 0, NFS4_OK, NFS4ERR_TOOSMALL },
		{ 512, 128, 2, 1, NFS4_OK, NFS4_OK },
	};

	NEED_FIXTURE();
	new_client("one");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		a.back.max_request = rows[i].request;
		a.back.max_reply = rows[i].reply;
		a.back.max_ops = rows[i].ops;
		a.back.max_requests = rows[i].requests;
		a.flags = 0;
		cr_expect_eq(create(), rows[i].status, "row %zu", i);
		a.seqid++;
		a.flags = CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
		cr_expect_eq(create(), rows[i].status_if_asked, "row %zu, asked for", i);
		a.seqid++;
	}
}

Test(nfs4_session, two_words_of_ird_are_no_xdr)
{
	NEED_FIXTURE();
	new_client("one");
	a.fore.nird = 2; /* only one of them is put */
	cr_expect_eq(create(), NFS4ERR_BADXDR);
}

static struct nfs4_session *inside(const uint8_t id[NFS4_SESSIONID_SIZE])
{
	return nfs4_session_get(f->server4->clients, id);
}

/* At the limit, the oldest session without a running call makes room. */
Test(nfs4_session, so_many_of_a_client)
{
	struct nfs4_session *first, *all[NFS4_SESSIONS_PER_CLIENT];
	uint8_t ids[NFS4_SESSIONS_PER_CLIENT][NFS4_SESSIONID_SIZE];

	NEED_FIXTURE();
	new_client("one");
	for (unsigned i = 0; i < NFS4_SESSIONS_PER_CLIENT; i++, a.seqid++) {
		cr_assert_eq(create(), NFS4_OK);
		memcpy(ids[i], r.id, sizeof(r.id));
	}
	first = inside(ids[0]);
	first->busy++;
	cr_expect_eq(create(), NFS4_OK);
	a.seqid++;
	cr_expect_eq(call_destroy_session(f, NULL, ids[1]), NFS4ERR_BADSESSION);
	cr_expect_eq(call_destroy_session(f, NULL, ids[0]), NFS4ERR_DELAY);
	memcpy(ids[1], r.id, sizeof(r.id));
	for (unsigned i = 0; i < NFS4_SESSIONS_PER_CLIENT; i++) {
		all[i] = inside(ids[i]);
		all[i]->busy++;
	}
	cr_expect_eq(create(), NFS4ERR_NOSPC);
	first->busy--;
	for (unsigned i = 0; i < NFS4_SESSIONS_PER_CLIENT; i++) {
		all[i]->busy--;
		nfs4_session_put(all[i]);
	}
	nfs4_session_put(first);
}

Test(nfs4_session, so_many_of_all)
{
	NEED_FIXTURE();
	f->server4->cfg.max_sessions = 2;
	for (unsigned i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%u", i);
		new_client(name);
		cr_expect_eq(create(), i < 2 ? NFS4_OK : NFS4ERR_NOSPC);
	}
	/* A failed CREATE_SESSION does not confirm the client. */
	cr_expect_eq(call_destroy_clientid(f, NULL, a.clientid), NFS4_OK);
}

/* Sessions of silent clients do not count against others; a client that returns does not evict
 * others. */
Test(nfs4_session, so_many_of_all_who_are_there)
{
	NEED_FIXTURE();
	f->server4->cfg.max_sessions = 1;
	new_client("one");
	cr_expect_eq(create(), NFS4_OK);
	nfs4_clients_skip_time(f->server4, 120);
	nfs4_tick(f->server4);
	a.seqid++;
	cr_expect_eq(create(), NFS4ERR_NOSPC);
	nfs4_clients_skip_time(f->server4, 120);
	nfs4_tick(f->server4);
	new_client("two");
	cr_expect_eq(create(), NFS4_OK);
	nfs4_clients_skip_time(f->server4, 60);
	nfs4_tick(f->server4);
	new_client("three");
	cr_expect_eq(create(), NFS4ERR_NOSPC);
}

/* The same request succeeds once there is memory. */
Test(nfs4_session, no_memory)
{
	struct rn_budget *b = f ? &f->budget : NULL;
	size_t max;

	NEED_FIXTURE();
	new_client("one");
	max = b->max;
	b->max = b->used;
	cr_expect_eq(create(), NFS4ERR_DELAY);
	b->max = max;
	cr_expect_eq(create(), NFS4_OK);
}

Test(nfs4_session, destroy)
{
	struct fix4_session s, t;
	uint8_t id[NFS4_SESSIONID_SIZE];

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	confirmed_client(f, "two", "verf0001", &t);
	memcpy(id, s.id, sizeof(id));
	/* Destroys a session of another client, from within a session. */
	cr_expect_eq(call_destroy_session(f, &t, id), NFS4_OK);
	cr_expect_eq(call_destroy_session(f, &t, id), NFS4ERR_BADSESSION);
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_BADSESSION);
	cr_expect_eq(call_destroy_session(f, NULL, id), NFS4ERR_BADSESSION);
	/* Destroys its own session; the client stays. */
	memcpy(id, t.id, sizeof(id));
	cr_expect_eq(call_destroy_session(f, &t, id), NFS4_OK);
	cr_expect_eq(call_sequence(f, &t), NFS4ERR_BADSESSION);
	cr_expect_eq(call_destroy_clientid(f, NULL, t.clientid), NFS4_OK);
}

Test(nfs4_session, destroy_must_come_last_in_its_own)
{
	struct fix4_session s;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	fix4_begin(f, &s);
	fix4_op(f, OP_DESTROY_SESSION);
	xdr_put_fixed(&f->out, s.id, sizeof(s.id));
	fix4_op(f, OP_PUTROOTFH);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOT_ONLY_OP);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}

Test(nfs4_session, destroy_waits_for_requests_under_way)
{
	struct nfs4_session *in;
	struct fix4_session s;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	in = inside(s.id);
	in->busy++;
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4ERR_DELAY);
	cr_expect_eq(call_destroy_session(f, &s, s.id), NFS4ERR_DELAY);
	in->busy--;
	nfs4_session_put(in);
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4_OK);
}

/* DESTROY_SESSION must come over a connection that the session has used. */
Test(nfs4_session, destroy_over_a_foreign_connection)
{
	struct fix4_session s, t;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	f->conn.id = 2;
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
	/* A call in another session does not bind the connection. */
	confirmed_client(f, "two", "verf0001", &t);
	cr_expect_eq(call_destroy_session(f, &t, s.id), NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
	/* SEQUENCE and BIND_CONN_TO_SESSION bind the connection, but a SEQUENCE with a bad slot
	 * does not. */
	f->conn.id = 3;
	s.slot = 100000;
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_BADSLOT);
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
	s.slot = 0;
	s.seqid = 1;
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	for (f->conn.id = 4; f->conn.id < 3 + NFS4_CONNS_PER_SESSION; f->conn.id++)
		cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	f->conn.id = 3;
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4_OK);
	f->conn.id = 1000;
	cr_expect_eq(call_destroy_session(f, NULL, t.id), NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
	fix4_begin_bare(f, 1, "");
	fix4_op(f, OP_BIND_CONN_TO_SESSION);
	xdr_put_fixed(&f->out, t.id, sizeof(t.id));
	xdr_put_u32(&f->out, 3);
	xdr_put_bool(&f->out, false);
	cr_expect_eq(fix4_send(f), NFS4_OK);
	cr_expect_eq(call_destroy_session(f, NULL, t.id), NFS4_OK);
}

Test(nfs4_session, destroy_clientid)
{
	struct fix4_session s, t;
	struct nfs4_held held;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	confirmed_client(f, "two", "verf0001", &t);
	cr_expect_eq(call_destroy_clientid(f, NULL, s.clientid), NFS4ERR_CLIENTID_BUSY);
	cr_expect_eq(call_destroy_clientid(f, &s, s.clientid), NFS4ERR_CLIENTID_BUSY);
	cr_expect_eq(call_destroy_session(f, &t, s.id), NFS4_OK);
	cr_expect_eq(call_destroy_clientid(f, &t, s.clientid), NFS4_OK);
	cr_expect_eq(call_destroy_clientid(f, &t, s.clientid), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(call_destroy_clientid(f, NULL, s.clientid), NFS4ERR_STALE_CLIENTID);
	new_client("three");
	cr_expect_eq(call_destroy_clientid(f, NULL, a.clientid), NFS4_OK);
	cr_expect_eq(create(), NFS4ERR_STALE_CLIENTID);
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.clients, 1);
	cr_expect_eq(held.sessions, 1);
}

Test(nfs4_session, bind_conn_to_session)
{
	static const struct {
		uint32_t asked, status, given;
	} rows[] = {
		/* A request that insists on a back channel is refused. */
		{ 1, NFS4_OK, 1 },	  { 2, NFS4ERR_INVAL, 0 },  { 3, NFS4_OK, 1 },
		{ 7, NFS4ERR_INVAL, 0 },  { 0, NFS4ERR_BADXDR, 0 }, { 4, NFS4ERR_BADXDR, 0 },
		{ 8, NFS4ERR_BADXDR, 0 },
	};
	struct fix4_session s;
	uint8_t id[NFS4_SESSIONID_SIZE];

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fix4_begin_bare(f, 1, "");
		fix4_op(f, OP_BIND_CONN_TO_SESSION);
		xdr_put_fixed(&f->out, s.id, sizeof(s.id));
		xdr_put_u32(&f->out, rows[i].asked);
		xdr_put_bool(&f->out, true);
		cr_expect_eq(fix4_send(f), rows[i].status, "row %zu", i);
		fix4_result(f, OP_BIND_CONN_TO_SESSION);
		if (rows[i].status != NFS4_OK)
			continue;
		xdr_get_fixed(&f->in, id, sizeof(id));
		cr_expect_arr_eq(id, s.id, sizeof(id));
		cr_expect_eq(xdr_get_u32(&f->in), rows[i].given);
		cr_expect_not(xdr_get_bool(&f->in));
		whole();
	}
	s.id[15] ^= 1;
	fix4_begin_bare(f, 1, "");
	fix4_op(f, OP_BIND_CONN_TO_SESSION);
	xdr_put_fixed(&f->out, s.id, sizeof(s.id));
	xdr_put_u32(&f->out, 1);
	xdr_put_bool(&f->out, false);
	cr_expect_eq(fix4_send(f), NFS4ERR_BADSESSION);
}

Test(nfs4_session, backchannel_ctl)
{
	struct fix4_session s;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	fix4_begin(f, &s);
	fix4_op(f, OP_BACKCHANNEL_CTL);
	xdr_put_u32(&f->out, 0x40000001);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, RPC_AUTH_SYS);
	xdr_put_u32(&f->out, 0);
	fix4_name(f, "host");
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 2);
	xdr_put_u64(&f->out, 0);
	cr_expect_eq(fix4_send(f), NFS4_OK);
	fix4_begin(f, &s);
	fix4_op(f, OP_BACKCHANNEL_CTL);
	xdr_put_u32(&f->out, 0x40000001);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, RPC_RPCSEC_GSS);
	xdr_put_u32(&f->out, 1);
	fix4_name(f, "one");
	fix4_name(f, "two");
	cr_expect_eq(fix4_send(f), NFS4ERR_NOENT);
	/* RPCSEC_GSS among other flavours is not chosen. */
	fix4_begin(f, &s);
	fix4_op(f, OP_BACKCHANNEL_CTL);
	xdr_put_u32(&f->out, 0x40000001);
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, RPC_RPCSEC_GSS);
	xdr_put_u32(&f->out, 1);
	fix4_name(f, "one");
	fix4_name(f, "two");
	xdr_put_u32(&f->out, RPC_AUTH_NONE);
	cr_expect_eq(fix4_send(f), NFS4_OK);
	/* A count without the items behind it. */
	fix4_begin(f, &s);
	fix4_op(f, OP_BACKCHANNEL_CTL);
	xdr_put_u32(&f->out, 0x40000001);
	xdr_put_u32(&f->out, UINT32_MAX);
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
}

Test(nfs4_session, set_ssv_without_ssv)
{
	struct fix4_session s;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	fix4_begin(f, &s);
	fix4_op(f, OP_SET_SSV);
	fix4_name(f, "secret");
	fix4_name(f, "digest");
	cr_expect_eq(fix4_send(f), NFS4ERR_INVAL);
}

Test(nfs4_session, reclaim_complete)
{
	struct fix4_session s;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	/* RECLAIM_COMPLETE of one file system: none migrates, so the call has no effect. */
	cr_expect_eq(call_reclaim_complete(f, &s, true), NFS4ERR_NOFILEHANDLE);
	fix4_begin(f, &s);
	fix4_op(f, OP_PUTROOTFH);
	fix4_op(f, OP_RECLAIM_COMPLETE);
	xdr_put_bool(&f->out, true);
	cr_expect_eq(fix4_send(f), NFS4_OK);
	cr_expect_eq(call_reclaim_complete(f, &s, false), NFS4_OK);
	cr_expect_eq(call_reclaim_complete(f, &s, false), NFS4ERR_COMPLETE_ALREADY);
}

Test(nfs4_session, only_within_a_session)
{
	static const uint32_t ops[] = { OP_BACKCHANNEL_CTL, OP_SET_SSV, OP_RECLAIM_COMPLETE };

	NEED_FIXTURE();
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		fix4_begin_bare(f, 1, "");
		fix4_op(f, ops[i]);
		cr_expect_eq(fix4_send(f), NFS4ERR_OP_NOT_IN_SESSION, "%s", nfs4_op_text(ops[i]));
	}
}

Test(nfs4_session, memory_comes_back)
{
	struct fix4_session s;
	size_t used;

	NEED_FIXTURE();
	confirmed_client(f, "warm", "verf0001", &s);
	used = f->budget.used;
	confirmed_client(f, "one", "verf0001", &s);
	s.cache_this = true;
	for (unsigned i = 0; i < 3; i++) {
		s.slot = i * 3;
		s.seqid = 1;
		cr_expect_eq(call_sequence(f, &s), i * 3 < 8 ? NFS4_OK : NFS4ERR_BADSLOT);
	}
	cr_expect_gt(f->budget.used, used);
	cr_expect_eq(call_destroy_session(f, NULL, s.id), NFS4_OK);
	cr_expect_eq(call_destroy_clientid(f, NULL, s.clientid), NFS4_OK);
	cr_expect_eq(f->budget.used, used);
}
