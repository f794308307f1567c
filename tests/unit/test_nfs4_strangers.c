/* SPDX-License-Identifier: BSD-2-Clause */
/* Use of a client's name, ids and sessions by another host (doc/design/nfs4-clients.md). */
#include <netinet/in.h>

#include "nfs4/client/client_table.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_strangers);

static uint32_t minor;
static struct op_client one;
static struct op_owner owner = { .client = &one, .name = "owner" };
static struct op_file file;
static struct eid_result er;
static struct scid_result sr;

static void pass(uint64_t seconds)
{
	nfs4_clients_skip_time(f->server4, seconds);
	nfs4_tick(f->server4);
}

static void hold(void)
{
	const struct op_how how = { .fh = &f->root, .name = "file", .access = 3 };

	make_file("file", "text", 0666);
	cr_assert_eq(op_client_new(f, &one, minor, "one"), NFS4_OK);
	owner.seqid = 1;
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
}

static void keep_alive(void)
{
	if (minor == 0)
		cr_expect_eq(call_renew(f, one.clientid), NFS4_OK);
	else
		cr_expect_eq(call_sequence(f, &one.session), NFS4_OK);
}

static bool holds(void)
{
	return op_read(f, &one, &file.fh, &file.sid) == NFS4_OK;
}

/* Registers under the client's name with this verifier. */
static uint32_t claim(const char *verifier)
{
	const struct scid_args sa = { .owner = "one", .verifier = verifier };
	const struct eid_args ea = { .owner = "one", .verifier = verifier };

	return minor == 0 ? call_setclientid(f, &sa, &sr) : call_exchange_id(f, NULL, &ea, &er);
}

static uint32_t confirm(void)
{
	struct cs_args a = { .clientid = er.clientid,
			     .seqid = er.seqid,
			     .fore = usual_channel,
			     .back = usual_channel };
	struct cs_result r;

	return minor == 0 ? call_setclientid_confirm(f, &sr) : call_create_session(f, NULL, &a, &r);
}

static uint64_t claimed(void)
{
	return minor == 0 ? sr.clientid : er.clientid;
}

static void set_port(uint16_t port)
{
	((struct sockaddr_in *)&f->conn.peer)->sin_port = htons(port);
}

OP_MINORS_TEST(nfs4_strangers, who_knows_the_name_does_not_end_what_is_held)
{
	hold();
	fix_from(f, 9);
	cr_expect_eq(claim("restarts"), NFS4ERR_DELAY); /* the client may have moved */
	cr_expect_eq(claim("restarts"), NFS4ERR_DELAY);
	fix_from(f, 1);
	cr_expect(holds());
	pass(2);
	keep_alive();
	fix_from(f, 9);
	cr_expect_eq(claim("restarts"), NFS4ERR_CLID_INUSE); /* the client has not moved */
	f->uid = 1000;
	cr_expect_eq(claim("restarts"), NFS4ERR_CLID_INUSE);
	f->uid = 0;
	fix_from(f, 1);
	cr_expect(holds());
}

OP_MINORS_TEST(nfs4_strangers, a_client_that_restarts_goes_on_at_once)
{
	hold();
	cr_expect_eq(claim("restarts"), NFS4_OK);
	cr_expect_eq(confirm(), NFS4_OK);
	cr_expect_not(holds());
}

OP_MINORS_TEST(nfs4_strangers, one_that_restarts_elsewhere_waits_for_its_lease)
{
	hold();
	fix_from(f, 9);
	for (unsigned i = 0; i < 9; i++) {
		cr_expect_eq(claim("restarts"), NFS4ERR_DELAY);
		pass(10);
	}
	pass(5);
	cr_expect_eq(claim("restarts"), NFS4_OK);
	cr_expect_eq(confirm(), NFS4_OK);
}

OP_MINORS_TEST(nfs4_strangers, what_is_held_by_nobody_who_lives_is_taken_at_once)
{
	hold();
	pass(95);
	fix_from(f, 9);
	cr_expect_eq(claim("restarts"), NFS4_OK);
	cr_expect_eq(confirm(), NFS4_OK);
}

/* A client with two addresses: an address from which it has used its ids is its own. */
OP_MINORS_TEST(nfs4_strangers, a_client_of_several_addresses)
{
	hold();
	fix_from(f, 2);
	cr_expect_eq(claim("verifier"), NFS4_OK); /* trunking: the same client */
	cr_expect_eq(claimed(), one.clientid);
	keep_alive();
	cr_expect(holds());
	cr_expect_eq(claim("restarts"), NFS4_OK);
	cr_expect_eq(confirm(), NFS4_OK);
	cr_expect_not(holds());
}

/* More addresses than the server remembers: the first one and the last ones stay. */
OP_MINORS_TEST(nfs4_strangers, a_client_of_many_addresses)
{
	hold();
	for (uint8_t i = 2; i < 12; i++) {
		fix_from(f, i);
		keep_alive();
	}
	fix_from(f, 2);
	cr_expect_eq(claim("restarts"), NFS4ERR_DELAY);
	fix_from(f, 11);
	cr_expect_eq(claim("restarts"), NFS4_OK);
	fix_from(f, 1);
	cr_expect_eq(claim("restarts"), NFS4_OK);
	cr_expect(holds());
}

/* An unprivileged process of the client's machine registers. */
OP_MINORS_TEST(nfs4_strangers, an_unprivileged_port)
{
	hold();
	set_port(40000);
	cr_expect_eq(claim("restarts"), NFS4ERR_DELAY);
	cr_expect(holds());
	set_port(900);
	cr_expect_eq(claim("restarts"), NFS4_OK);
}

OP_MINORS_TEST(nfs4_strangers, a_client_without_privileged_ports)
{
	set_port(40000);
	hold();
	set_port(40001);
	cr_expect_eq(claim("restarts"), NFS4_OK);
	cr_expect_eq(confirm(), NFS4_OK);
}

/* A verifier is the time of the client's start, so all but some bits may be known. */
OP_MINORS_TEST(nfs4_strangers, verifiers_are_not_to_be_found_out)
{
	char guess[16];

	hold();
	fix_from(f, 9);
	for (unsigned i = 0; i < 200; i++) {
		snprintf(guess, sizeof(guess), "%08u", i);
		cr_expect_neq(claim(guess), NFS4_OK);
	}
	cr_expect_neq(claim("verifier"), NFS4_OK);
	fix_from(f, 1);
	cr_expect_eq(claim("verifier"), NFS4_OK);
	cr_expect_eq(claimed(), one.clientid);
	pass(50);
	keep_alive();
	pass(50);
	fix_from(f, 9);
	cr_expect_eq(claim("verifier"), NFS4_OK);
}

/* Whichever registers first, both can be confirmed. */
OP_MINORS_TEST(nfs4_strangers, registering_under_a_name_that_somebody_else_claims)
{
	struct eid_result his;
	struct scid_result hiss;

	cr_assert_eq(claim("verifier"), NFS4_OK);
	his = er;
	hiss = sr;
	fix_from(f, 9);
	cr_expect_eq(claim("verf0002"), NFS4_OK);
	fix_from(f, 1);
	er = his;
	sr = hiss;
	cr_expect_eq(confirm(), NFS4_OK);
}

OP_MINORS_TEST(nfs4_strangers, ids_are_no_neighbours)
{
	uint64_t last = 0, id, steps[3] = { 0 };
	char name[16];

	for (unsigned i = 0; i < 40; i++) {
		struct op_client cl;

		snprintf(name, sizeof(name), "client %u", i);
		cr_assert_eq(op_client_new(f, &cl, minor, name), NFS4_OK);
		id = cl.clientid;
		steps[0] += (uint32_t)id - (uint32_t)last < 1000;
		steps[1] += id >> 32 == last >> 32;
		steps[2] += id - last < 1000;
		last = id;
	}
	for (unsigned i = 0; i < 3; i++)
		cr_expect_leq(steps[i], 1, "%u", i);
	cr_expect_eq(call_renew(f, last + 1), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(call_renew(f, last ^ 1ull << 40), NFS4ERR_STALE_CLIENTID);
	for (uint64_t i = 1; i < 2000; i++)
		cr_expect_eq(call_renew(f, last + i), NFS4ERR_STALE_CLIENTID);
}

Test(nfs4_strangers, the_kept_answer_of_create_session)
{
	struct fix4_session s;
	struct cs_args a = { .seqid = 1, .fore = usual_channel, .back = usual_channel };
	struct cs_result r;

	NEED_FIXTURE();
	a.clientid = confirmed_client(f, "one", "verifier", &s);
	cr_expect_eq(call_create_session(f, NULL, &a, &r), NFS4_OK);
	cr_expect_arr_eq(r.id, s.id, sizeof(s.id));
	f->uid = 1000;
	cr_expect_eq(call_create_session(f, NULL, &a, &r), NFS4ERR_CLID_INUSE);
	a.seqid++;
	cr_expect_eq(call_create_session(f, NULL, &a, &r), NFS4ERR_CLID_INUSE);
	f->uid = 0;
	f->flavor = RPC_AUTH_NONE;
	cr_expect_eq(call_create_session(f, NULL, &a, &r), NFS4ERR_CLID_INUSE);
	f->flavor = RPC_AUTH_SYS;
	a.seqid--;
	fix_from(f, 9);
	cr_expect_eq(call_create_session(f, NULL, &a, &r), NFS4ERR_SEQ_MISORDERED);
	fix_from(f, 1);
	cr_expect_eq(call_create_session(f, NULL, &a, &r), NFS4_OK);
	cr_expect_arr_eq(r.id, s.id, sizeof(s.id));
}

Test(nfs4_strangers, who_registers_confirms)
{
	NEED_FIXTURE();
	minor = 1;
	cr_assert_eq(claim("verifier"), NFS4_OK);
	fix_from(f, 9);
	cr_expect_eq(confirm(), NFS4ERR_CLID_INUSE);
	fix_from(f, 1);
	cr_expect_eq(confirm(), NFS4_OK);
}

static uint32_t bind_conn(const struct fix4_session *s)
{
	fix4_begin_bare(f, 1, "");
	fix4_op(f, OP_BIND_CONN_TO_SESSION);
	xdr_put_fixed(&f->out, s->id, sizeof(s->id));
	xdr_put_u32(&f->out, 1);
	xdr_put_bool(&f->out, false);
	return fix4_send(f);
}

/* Users of the client do not normally know its session id. A user who does must not act as the
 * client. */
Test(nfs4_strangers, another_principal)
{
	struct fix4_session s;
	uint8_t id[NFS4_SESSIONID_SIZE];

	NEED_FIXTURE();
	confirmed_client(f, "one", "verifier", &s);
	memcpy(id, s.id, sizeof(id));
	f->uid = 1000;
	cr_expect_eq(call_sequence(f, &s), NFS4_OK); /* the client calls for its users */
	cr_expect_eq(bind_conn(&s), NFS4ERR_BADSESSION);
	cr_expect_eq(call_destroy_session(f, NULL, id), NFS4ERR_WRONG_CRED);
	cr_expect_eq(call_destroy_session(f, &s, id), NFS4ERR_WRONG_CRED);
	cr_expect_eq(call_destroy_clientid(f, NULL, s.clientid), NFS4ERR_WRONG_CRED);
	cr_expect_eq(call_reclaim_complete(f, &s, false), NFS4ERR_WRONG_CRED);
	f->uid = 0;
	cr_expect_eq(bind_conn(&s), NFS4_OK);
	cr_expect_eq(call_reclaim_complete(f, &s, false), NFS4_OK);
	cr_expect_eq(call_destroy_session(f, NULL, id), NFS4_OK);
	f->uid = 1000;
	cr_expect_eq(call_destroy_clientid(f, NULL, s.clientid), NFS4ERR_WRONG_CRED);
	f->uid = 0;
	cr_expect_eq(call_destroy_clientid(f, NULL, s.clientid), NFS4_OK);
}
